"""How many misses one core has under way at once: time an access against independent chains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.plot import Axis, Ends, Mark, Plane, Row
from latlab.view.points import Spot, series, with_figures
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "memory.parallelism"
_MOST_CURVES: Final = 6
#: Figures nearer than this share of the axis would overlap.
_BESIDE: Final = 0.045
_PAGES: Final = {"4k": ", 4 KiB pages", "huge": ", huge pages asked for"}
_CHAINS: Final = "independent chains of loads"
_ACCESS: Final = "one access, all chains together"


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each working set and page mode, smallest first."""

    def key(record: Record) -> tuple[int, str]:
        return record.point.working_set_bytes or 0, record.point.pages or "4k"

    records = with_figures(run, PROBE, "batch_mean")
    sets = sorted(set(map(key, records)))
    several = len({pages for _, pages in sets}) > 1
    names = {own: format_bytes(own[0]) + (_PAGES.get(own[1], "") if several else "") for own in sets}
    curves = series(records, names, key, lambda record: record.point.chains or None)
    return dict(list(curves.items())[-_MOST_CURVES:])


def overlapped(curve: Sequence[Spot]) -> tuple[float, int] | None:
    """How many misses were under way at best: one chain's time over the best, and with how many chains.

    Nothing when one chain alone was not measured, or alone was measured.
    """
    if len(curve) < 2 or curve[0].x != 1:  # noqa: PLR2004 - nothing to compare
        return None
    best = min(curve, key=lambda spot: spot.value)
    return curve[0].value / best.value, round(best.x)


def _plane(run: Run) -> Plane | None:
    """One curve a working set: a straight falling line is perfect overlap."""
    own = lines(run)
    if not own:
        return None
    counts = [spot.x for curve in own.values() for spot in curve]
    ticks = tuple(2**power for power in range(16) if min(counts) <= 2**power <= max(counts))
    return Plane(
        Axis(_CHAINS, "count", 1.1, 1.6, ticks=ticks),  # with room for the factors
        Axis(_ACCESS, "ns", down=1.6),
        own,
        "{x} chains: {y}",
        "Line chart, both axes logarithmic: time of one access against the number of independent chains.",
        "{y} with {x} chain{s}",
        marks=lambda ends: _factors(own, ends),
    )


def _factors(own: Mapping[str, Sequence[Spot]], ends: Ends) -> Iterator[Mark]:
    """How many misses were under way, at the end of each line."""
    rows: list[Row] = [
        {"x": curve[-1].x, "value": curve[-1].value, "text": f"{best[0]:.3g} at once", "aside": 0}
        for curve in own.values()
        if (best := overlapped(curve)) is not None
    ]
    rows.sort(key=lambda row: float(row["value"]))
    for lower, upper in pairwise(rows):
        # Two lines that end side by side: one figure above, one below.
        if math.log(upper["value"] / lower["value"]) < _BESIDE * math.log(ends.top / ends.bottom):
            lower["aside"], upper["aside"] = lower["aside"] or 1, -1
    for aside in (-1, 0, 1):
        look = {"style": "name", "align": "left", "dx": 9, "dy": 6 * aside}
        at = {"x": "x", "y": "value", "text": "text:N"}
        yield Mark("text", rows, at, look, only=f"datum.aside == {aside}")


def prose(run: Run) -> Iterator[str]:
    """Of the largest working set."""
    for size, curve in list(lines(run).items())[-1:]:
        best = overlapped(curve)
        if best is not None:
            least = min(spot.value for spot in curve)
            yield (
                f"From {size}, one chain costs {format_ns(curve[0].value)} a load and {best[1]} "
                f"chains at once {format_ns(least)} each: about {best[0]:.3g} misses were in flight "
                "together."
            )
            yield (
                "A program that knows its next addresses gains that factor; one that follows pointers does"
                " not."
            )


TOPIC: Final = Topic(
    Chart(
        id="parallelism",
        title="How many cache misses can one core have in flight?",
        caption="Each chain is a separate list of dependent loads. Where a line stops falling, the "
        "core has reached its limit of misses in flight. The number beside each line is that limit.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("chains"),
        several=CurvesOfSeveral(lines, Axis(_CHAINS, "count"), Axis(_ACCESS, "ns"), "chains"),
    ),
    prose=prose,
)
