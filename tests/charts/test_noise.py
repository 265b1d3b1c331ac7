from __future__ import annotations

import math

import msgspec
import pytest

from latlab.run.run import Run
from latlab.topics import noise
from latlab.view.figure import Absent
from latlab.view.points import MOST_POINTS


def test_one_of_twenty_spectra_without_a_period_reaches_what_chance_reaches() -> None:
    """By Rayleigh the strength of one rate among n gaps is beyond r with the chance exp(-n r^2)."""
    gaps = 400
    beyond = math.exp(-gaps * noise.by_chance(gaps) ** 2)
    assert 1 - (1 - beyond) ** MOST_POINTS == pytest.approx(0.05, rel=0.03)


def test_noise_without_a_block_or_a_gap_has_no_timeline(run: Run) -> None:
    bare = [
        msgspec.structs.replace(record, blocks=(), tail=()) if record.probe == "kernel.noise" else record
        for record in run.records
    ]
    assert any(record.probe == "kernel.noise" for record in bare)
    chart = next(chart for chart in noise.TOPIC.charts if chart.id == "noise_timeline")
    assert not isinstance(chart.of(run), Absent)
    assert isinstance(chart.of(Run(run.header, bare)), Absent)
