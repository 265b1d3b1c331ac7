"""Which category has which colour: the same in every picture of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import altair as alt

from latlab.explain.model import Explained

OTHERS: Final = "everything else"
_MOST: Final = 5
"""Colours of the palette but one, which all others share."""
_SMALL: Final = 0.005


class Series:
    """The largest categories in order of size, and one name for the rest."""

    def __init__(self, explained: Explained) -> None:
        weights = {row.name: row.share for row in explained.categories}
        threads = lane_times(explained)
        whole = sum(threads.values()) or 1.0
        for name, seconds in threads.items():
            weights[name] = max(weights.get(name, 0.0), seconds / whole)
        largest = sorted(weights, key=lambda name: -weights[name])
        self.names = tuple(name for name in largest[:_MOST] if weights[name] >= _SMALL)

    def of(self, category: str) -> str:
        """The series that a category belongs to."""
        return category if category in self.names else OTHERS

    def color(self, used: Iterable[str]) -> alt.Color:
        """By the field `series`; the legend names what is used."""
        domain = [*self.names, OTHERS]
        shown = [name for name in domain if name in set(used)]
        legend = alt.Legend(title=None, values=shown)
        return alt.Color("series:N", legend=legend, scale=alt.Scale(domain=domain))


def lane_times(explained: Explained) -> dict[str, float]:
    """Thread-seconds by what threads mostly did."""
    timeline = explained.timeline
    times: dict[str, float] = defaultdict(float)
    for lane in timeline.threads:
        for _, seconds, name, share in lane.spans:
            times[timeline.thread_names[name]] += seconds * share
    return times


def time_axis(end_s: float) -> alt.X:
    """Nanoseconds along x from zero to the end of the run."""
    from latlab.view.axes import DURATION_FROM_ZERO  # noqa: PLC0415 - one name

    axis = alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=8, grid=True)
    return alt.X(
        "x:Q", title="time since the start", scale=alt.Scale(domain=[0, 1e9 * end_s], nice=False), axis=axis
    )
