"""Records fit the schema, which says of typed probes what their findings hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.schema import misfits

#: Of a point and of the conclusion of a probe.
DETAILS: dict[str, Any] = {"cpus": [0, 1], "threads": 2}
COST = {
    "operation": "add",
    "same_line_ns": 7.0,
    "neighbouring_line_ns": None,
    "own_line_ns": 1.0,
    "alone_ns": 1.0,
}
CONCLUDED: dict[str, Any] = {"operations": [{**COST, "slowdown": {"value": 7.0}}]}


def record(root: Path, kind: str, findings: dict[str, Any]) -> dict[str, Any]:
    """One of `memory.false_sharing`, as another probe's record is but for these."""
    lines = (root / "tests/data/run-rounds.latlab.jsonl").read_text(encoding="utf-8").splitlines()
    like = next(line for line in map(json.loads, lines) if line["line"] == "record")
    return {**like, "probe": "memory.false_sharing", "method": 1, "kind": kind, "findings": findings}


@pytest.mark.parametrize("name", ["run-rounds", "run-small"])
def test_every_record_of_a_made_up_run_fits(root: Path, name: str) -> None:
    file = root / f"tests/data/{name}.latlab.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    records = [line for line in lines if line["line"] == "record"] + lines[-1].get("figures", [])
    if name == "run-small":
        # One of each that holds other things: looking at all of its 900 takes seconds.
        kinds = {
            (each["probe"], *sorted(each), *sorted(each.get("findings") or ())): each for each in records
        }
        records = list(kinds.values())
    assert len(records) > 50
    assert misfits(records) == []


@pytest.mark.parametrize(
    ("kind", "fitting", "wrong"),
    [
        ("batch_mean", DETAILS, {**DETAILS, "cpus": [0]}),
        ("batch_mean", DETAILS, {"cpus": [0, 1]}),
        ("derived", CONCLUDED, {"operations": [{**CONCLUDED["operations"][0], "slowdown": 7.0}]}),
        ("derived", CONCLUDED, {"operations": [COST]}),
    ],
)
def test_findings_that_a_probe_does_not_have_are_refused(
    root: Path, kind: str, fitting: dict[str, Any], wrong: dict[str, Any]
) -> None:
    assert misfits([record(root, kind, fitting)]) == []
    refused = record(root, kind, wrong)
    assert len(misfits([refused])) == 1
    assert misfits([{**refused, "method": 2}]) == [], "of another method nothing is said"
