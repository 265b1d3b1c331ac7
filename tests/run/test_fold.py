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


def test_a_line_that_is_no_record_is_named() -> None:
    header, lines = a_run()
    del lines[2]["probe"]
    with pytest.raises(ValueError, match="record 3 of 4: missing field `probe`"):
        folded(header, lines)
    with pytest.raises(ValueError, match="header: "):
        folded(b"{}", [])
    assert folded(header, []) == []
