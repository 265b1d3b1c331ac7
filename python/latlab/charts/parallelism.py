"""How many misses one core has under way at once: time an access against independent chains."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import altair as alt

from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view import curves
from latlab.view.axes import count_axis, duration_y, widened
from latlab.view.drawing import inline, layered
from latlab.view.plot import as_table
from latlab.view.points import Spot, spots, why_absent, with_figures
from latlab.view.table import Column, Table

ID = "parallelism"
TITLE = "How many misses can one core wait for at once?"
PROBE = "memory.parallelism"
_MOST_CURVES = 6
#: Figures nearer than this share of the axis would overlap.
_BESIDE = 0.045


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each working set and page mode, smallest first."""
    records = with_figures(run, PROBE, "batch_mean")
    sets = sorted({(r.point.working_set_bytes or 0, r.point.pages or "4k") for r in records})
    several = len({pages for _, pages in sets}) > 1
    found = {}
    for size, pages in sets:
        chosen = [
            r
            for r in records
            if (r.point.working_set_bytes or 0) == size and (r.point.pages or "4k") == pages
        ]
        curve = spots(chosen, lambda record: record.point.chains or None)
        if curve:
            asked = (
                {"4k": ", 4 KiB pages", "huge": ", huge pages asked for"}.get(pages, "") if several else ""
            )
            found[format_bytes(size) + asked] = curve
    return dict(list(found.items())[-_MOST_CURVES:])


def overlapped(curve: list[Spot]) -> tuple[float, int] | None:
    """How many misses were under way at best: one chain's time over the best, and with how many chains.

    Nothing when one chain alone was not measured, or alone was measured.
    """
    if len(curve) < 2 or curve[0].x != 1:  # noqa: PLR2004 - nothing to compare
        return None
    best = min(curve, key=lambda spot: spot.value)
    return curve[0].value / best.value, round(best.x)


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One curve a working set, both axes logarithmic: a straight falling line is perfect overlap."""
    found = lines(run)
    if not found:
        return None
    bottom, top = widened(curves.ends(found), down=1.6)
    counts = sorted({round(spot.x) for spot in curves.everywhere(found)})
    ticks = [2**power for power in range(16) if counts[0] <= 2**power <= counts[-1]] or counts
    x = count_axis("x", "independent chains of loads", ticks)
    x["scale"]["domain"] = [counts[0] / 1.1, counts[-1] * 1.6]  # room for the factors
    y = duration_y("value", "one access, all chains together", bottom, top)
    data = curves.rows(found, lambda spot: f"{spot.x:.0f} chains: {spot.stated(format_ns)}")
    layers = curves.layers(found, x, y)
    factors: list[dict[str, Any]] = [
        {"x": curve[-1].x, "value": curve[-1].value, "text": f"{best[0]:.3g} at once", "aside": 0}
        for curve in found.values()
        if (best := overlapped(curve)) is not None
    ]
    factors.sort(key=lambda row: row["value"])
    for lower, upper in pairwise(factors):
        # Two lines that end side by side: one figure above, one below.
        if math.log(upper["value"] / lower["value"]) < _BESIDE * math.log(top / bottom):
            lower["aside"], upper["aside"] = lower["aside"] or 1, -1
    for aside in (-1, 0, 1):
        text = (
            alt.Chart(inline(factors))
            .transform_filter(f"datum.aside == {aside}")
            .mark_text(style="name", align="left", dx=9, dy=6 * aside)
        )
        layers.append(text.encode(x=x, y=y, text=alt.Text("text:N")))
    return layered(layers, data=data, width=curves.WIDTH, height=curves.HEIGHT)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = curves.in_words(
        lines(run),
        lambda spot: f"{format_ns(spot.value)} with {spot.x:.0f} chain{'' if spot.x == 1 else 's'}",
    )
    text = "Line chart, both axes logarithmic: time of one access against the number of independent chains. "
    return text + words + "."


def table(run: Run) -> Table:
    """Every point of every curve."""
    return as_table(lines(run), Column("chains", "count"), "ns")
