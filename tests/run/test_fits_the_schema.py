"""Made-up runs fit the schema, which says of typed probes what their findings hold."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.some import some

ROOT = Path(__file__).resolve().parents[2]


@cache
def validator() -> Draft202012Validator:
    """Of a record."""
    document = json.loads((ROOT / "schema/run.v2.json").read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": "#/$defs/Record", "$defs": document["$defs"]})


@cache
def records(name: str) -> list[dict[str, Any]]:
    """The lines and the figures of a run."""
    file = ROOT / "tests/data" / f"{name}.latlab.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    of_lines = [line for line in lines if line["line"] == "record"]
    return [*of_lines, *(figure for line in lines for figure in line.get("figures", []))]


def of(probe: str, kind: str, findings: dict[str, Any] | None = None) -> dict[str, Any]:
    """A record of that kind, with these findings or its own."""
    every = (record for record in records("run-small") if (record["probe"], record["kind"]) == (probe, kind))
    record = copy.deepcopy(next(every))
    return record if findings is None else {**record, "findings": findings}


@pytest.mark.parametrize("name", ["run-small", "run-rounds"])
def test_every_record_of_a_made_up_run_fits(name: str) -> None:
    for record in some(records(name), 50):
        errors = [f"{error.json_path}: {error.message}" for error in validator().iter_errors(record)]
        assert not errors, (record["probe"], record["point"], errors[:3])


def test_findings_that_a_probe_does_not_have_are_refused() -> None:
    concluded = of("memory.false_sharing", "derived")
    measured = of("memory.false_sharing", "batch_mean", {"cpus": [0, 1], "threads": 2})
    for record in (concluded, measured):
        assert validator().is_valid(record)
    concluded["findings"]["operations"][0]["same_line_ns"] = "7"
    measured["findings"]["cpus"] = [0]
    for record in (concluded, measured):
        assert not validator().is_valid(record)
        record["method"] += 1
        assert validator().is_valid(record), "of another method nothing is said"
