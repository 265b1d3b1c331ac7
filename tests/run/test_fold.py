"""The core's fold, as Python calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from latlab import _core
from latlab.run import model, reader

DATA = Path(__file__).resolve().parents[1] / "data"


def a_run() -> tuple[bytes, list[dict[str, Any]]]:
    """The header of some run, and a point of it in four rounds on two CPUs."""
    path = next(iter(sorted(DATA.rglob("*.latlab.jsonl"))))
    header = model.ENCODER.encode(reader.read(path).header)
    point = {
        "line": "record", "probe": "kernel.mutex", "method": 1, "unit": "ns", "kind": "batch_mean",
        "point": {"operation": "lock"}, "stopped_by": "planned", "samples": 3, "values": [1.0, 2.0, 3.0],
    }  # fmt: skip
    medians = (10.0, 12.0, 10.4, 12.2)
    lines = [
        point | {"round": number, "cpu": number % 2, "summary": {"p50": p50}}
        for number, p50 in enumerate(medians)
    ]
    return header, lines


def folded(header: bytes, lines: list[dict[str, Any]]) -> list[model.Record]:
    raw = _core.fold(header, [json.dumps(line).encode() for line in lines])
    return msgspec.json.decode(raw, type=list[model.Record])


def test_rounds_are_one_figure_with_its_range() -> None:
    (figure,) = folded(*a_run())
    assert figure.summary is not None
    assert figure.summary.p50 is not None
    low, high = figure.summary.intervals["p50"]
    assert low < figure.summary.p50 < high
    assert [(entry.round, entry.cpu, entry.p50) for entry in figure.rounds] == [
        (0, 0, 10.0), (1, 1, 12.0), (2, 0, 10.4), (3, 1, 12.2),
    ]  # fmt: skip
    assert figure.values == (1.0, 2.0, 3.0) * 4


def test_a_figure_without_a_range_says_why() -> None:
    header, lines = a_run()
    (two,) = folded(header, lines[:2])
    assert (two.ends, two.stated()) == (("once per CPU", None), "11.0 ns (once per CPU)")
    (one,) = folded(header, lines[:1])
    assert (one.ends, one.stated()) == (("measured once", None), "10.0 ns (measured once)")
    # More than ten times apart on one CPU.
    apart = [line | {"cpu": 0, "summary": {"p50": 10.0 ** line["round"]}} for line in lines[:3]]
    (unstable,) = folded(header, apart)
    assert unstable.ends == ("unstable", None)


@pytest.mark.parametrize(
    "machine",
    [
        {},
        {
            "cpu": {"model_name": "a CPU", "of_next_year": 1},
            "memory": None,
            "caches": [{"level": 1}],
            "new": [],
        },
        {"cpu": "many", "caches": 3, "limits": {"cpus_allowed": "all of them"}},
    ],
)
def test_a_machine_that_another_version_described_keeps_no_run_from_its_figures(
    machine: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "run.latlab.jsonl"
    header, *lines = (DATA / "run-rounds.latlab.jsonl").read_bytes().splitlines(keepends=True)
    own = reader.read(DATA / "run-rounds.latlab.jsonl")
    # Without a footer there are no other figures than the fold's.
    file.write_bytes(
        json.dumps(json.loads(header) | {"machine": machine}).encode() + b"\n" + b"".join(lines[:-1])
    )
    run = reader.read(file)
    assert run.notes == ()
    assert [record.value for record in run.records.measured()] == [
        record.value for record in own.records.measured()
    ]
    assert run.machine.text("cpu.model_name") == (None if "new" not in machine else "a CPU")


def test_a_line_that_is_no_record_is_named() -> None:
    header, lines = a_run()
    del lines[2]["probe"]
    with pytest.raises(ValueError, match="record 3 of 4: missing field `probe`"):
        folded(header, lines)
    with pytest.raises(ValueError, match="header: "):
        folded(b"{}", [])
    assert folded(header, []) == []
