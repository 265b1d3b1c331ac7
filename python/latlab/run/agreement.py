"""When a run of few probes has measured enough.

The rounds of a profile are one pass: it has all points, and each CPU as often. While another pass fits into
the run's time and into the bytes that it announced, further ones follow: first until the run has lasted so
long that its rounds lie apart (`LEAST_S`), then until its figures agree. They do when half of each headline
figure's interval is at most the profile's share of the figure (`AGREED`), the interval being of the fold of
all rounds so far. Where none is headline, all figures with an interval count. A figure of a headline point
without an interval agrees with nothing. What is measured once by nature (listening, writing gigabytes) is in
the first pass only, so that a run of nothing else is one pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from latlab.run import model

AGREED: Final = {"quick": 0.03, "standard": 0.02, "thorough": 0.01}
"""Half of an interval, as a share of its figure, at which rounds agree."""

LEAST_S: Final = {"quick": 5.0, "standard": 10.0, "thorough": 10.0}
"""Seconds of wall time before which a run of few probes does not end by itself."""


def half_interval(interval: tuple[float, float] | None) -> float | None:
    """Half of the interval of a figure as a share of it: 0.02 is 2 %; None without an interval."""
    if interval is None:
        return None
    low, high = interval
    return math.sqrt(high / low) - 1 if low > 0 else math.inf


def widest(figures: Iterable[model.Record]) -> float:
    """Half of the widest interval of the figures that have to agree; infinite where they cannot yet."""
    measured = [figure for figure in figures if figure.kind != "derived" and figure.value is not None]
    halves = [half_interval(figure.interval) for figure in measured if figure.rank == "headline"]
    if not halves:
        halves = [half for figure in measured if (half := half_interval(figure.interval)) is not None]
    return max((math.inf if half is None else half for half in halves), default=math.inf)
