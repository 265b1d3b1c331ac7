from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from latlab.findings import MemoryLoaded
from latlab.run.model import Estimate, Json
from latlab.run.run import Run, load
from latlab.view.reading import concluded


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


def with_findings(run: Run, *found: Json) -> Run:
    derived = run.select("memory.loaded", kind="derived")[0]
    return Run(run.header, [msgspec.structs.replace(derived, findings=each) for each in found])


def test_what_a_probe_concluded_has_its_types(run: Run) -> None:
    found = concluded(run, MemoryLoaded)
    assert found is not None
    first = found.curves[0]
    assert (first.read_percent, first.threads, first.idle_ns) == (100, 3, 114.2)
    assert first.peak_bytes_per_s == Estimate(value=7.4e10)


@pytest.mark.parametrize("damaged", [None, [], "x", {"curves": 3}, {"curves": [{"read_percent": "all"}]}])
def test_what_does_not_fit_is_no_finding(run: Run, damaged: Json) -> None:
    assert concluded(with_findings(run, damaged), MemoryLoaded) is None


def test_the_last_conclusion_that_can_be_read_is_the_one(run: Run) -> None:
    curve = {"read_percent": 100, "threads": 2, "of_a_newer_latlab": 1}
    one, two = {"curves": [curve | {"threads": 1}]}, {"curves": [curve]}
    found = concluded(with_findings(run, one, two, "damaged"), MemoryLoaded)
    assert found is not None
    assert [each.threads for each in found.curves] == [2]


def test_a_run_without_the_probe_has_no_finding(run: Run) -> None:
    assert concluded(Run(run.header, ()), MemoryLoaded) is None
