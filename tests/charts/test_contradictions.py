"""A run file may hold any numbers: a chart of nonsense may be empty, but it is never an error."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from tests.some import some

from latlab.charts import CHARTS
from latlab.run.model import Record
from latlab.run.run import Run

NONSENSE = (0.0, -1.0, 1e300, -1e300, 1e-300, 5e-324)


def nonsensical(record: Record, dice: random.Random) -> Record:
    changes: dict[str, Any] = {}
    if record.summary is not None and dice.random() < 0.5:
        names = ("min", "p50", "p99", "p999", "max", "mean", "std")
        figures = {name: dice.choice(NONSENSE) for name in names if dice.random() < 0.4}
        ends = (dice.choice(NONSENSE), dice.choice(NONSENSE))
        changes["summary"] = msgspec.structs.replace(record.summary, intervals={"p50": ends}, **figures)
    if isinstance(record.findings, dict):
        changes["findings"] = shaken(record.findings, dice)
    if dice.random() < 0.2:
        changes["resolution_ns"] = dice.choice(NONSENSE)
    return msgspec.structs.replace(record, **changes)


def shaken(value: object, dice: random.Random) -> object:
    if isinstance(value, dict):
        return {name: shaken(inner, dice) for name, inner in value.items()}
    if isinstance(value, list):
        return [shaken(inner, dice) for inner in value]
    if isinstance(value, float | int) and dice.random() < 0.3:
        return dice.choice(NONSENSE)
    return value


@pytest.mark.parametrize("seed", range(6))
def test_numbers_that_contradict_each_other_break_no_chart(run: Run, seed: int) -> None:
    dice = random.Random(seed)
    bad = Run(run.header, [nonsensical(record, dice) for record in run.records])
    for chart in some(CHARTS):
        drawn = chart.chart(bad)
        assert (drawn is None) == (chart.absence(bad) is not None)
        assert chart.alt_text(bad)
        chart.table(bad)
