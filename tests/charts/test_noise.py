from __future__ import annotations

import math

import pytest

from latlab.topics import noise
from latlab.view.points import MOST_POINTS


def test_one_of_twenty_spectra_without_a_period_reaches_what_chance_reaches() -> None:
    """By Rayleigh the strength of one rate among n gaps is beyond r with the chance exp(-n r^2)."""
    gaps = 400
    beyond = math.exp(-gaps * noise.by_chance(gaps) ** 2)
    assert 1 - (1 - beyond) ** MOST_POINTS == pytest.approx(0.05, rel=0.03)
