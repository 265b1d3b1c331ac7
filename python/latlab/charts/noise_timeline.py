"""When the CPU was taken away, for how long and by what: one point a gap."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.run.disturbances import PROBE, UNEXPLAINED, cause_name, heard_in
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.axes import duration_y, widened
from latlab.view.curves import HEIGHT, WIDTH, series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import began_at, drawable, why_absent
from latlab.view.table import Column, Table

ID = "noise_timeline"
TITLE = "When was the CPU taken away, and by what?"
#: Of each cause, the longest: more are a band of ink.
_MOST = 120
#: Causes with a colour of their own; what nothing explains always has one.
_NAMED = 4
_OTHERS = "other causes"

Gap = tuple[float, float, str]


def gaps(run: Run) -> dict[str, list[Gap]]:
    """Seconds since the first look, ns and name by cause, the one with most time first, unexplained last."""
    heard = heard_in(run)
    if heard is None:
        return {}
    record, _ = heard
    start = began_at(record)
    by_cause: dict[str, list[Gap]] = {}
    for sample in record.tail:
        if drawable(sample.value) and sample.at_ns >= start:
            gap = ((sample.at_ns - start) / 1e9, sample.value, cause_name(sample.cause or UNEXPLAINED))
            by_cause.setdefault(gap[2], []).append(gap)
    unexplained = by_cause.pop(UNEXPLAINED, [])
    ordered = sorted(by_cause.items(), key=lambda item: -sum(gap[1] for gap in item[1]))
    found = dict(ordered[:_NAMED])
    others = [gap for _, own in ordered[_NAMED:] for gap in own]
    if others:
        found[_OTHERS] = others
    if unexplained:
        found[UNEXPLAINED] = unexplained
    return found


def drawn_gaps(run: Run) -> dict[str, list[Gap]]:
    """The longest of each cause, in order of time."""
    return {name: sorted(sorted(own, key=lambda gap: -gap[1])[:_MOST]) for name, own in gaps(run).items()}


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if gaps(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Time along x, the gap's length on a log axis, one shape and colour a cause."""
    own = drawn_gaps(run)
    if not own:
        return None
    rows: list[dict[str, Any]] = [
        {
            "series": series,
            "x": round(at, 6),
            "y": float(f"{ns:.4g}"),
            "text": f"{at:.4f} s: {format_ns(ns)}, {cause}",
        }
        for series, found in own.items()
        for at, ns, cause in found
    ]
    low, high = widened([row["y"] for row in rows], down=1.3, up=1.4)
    last = max(row["x"] for row in rows)
    x = alt.X(
        "x:Q",
        title="seconds since the first look",
        scale=alt.Scale(domain=[-0.01 * last, 1.01 * last + 1e-6], nice=False),
        axis=alt.Axis(grid=False, tickCount=8),
    )
    color, shape = series_encodings(list(own))
    y = duration_y("y", "the CPU was away for", low, high)
    points = alt.Chart().mark_point(size=22, filled=True, opacity=0.75)
    return layered(
        [points.encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N"))],
        data=inline(rows),
        width=WIDTH,
        height=HEIGHT,
    )


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    own = gaps(run)
    if not own:
        return "No gaps of a listening thread."
    parts = [
        f"{name}: {format_count(len(found))}, the longest {format_ns(max(gap[1] for gap in found))}"
        for name, found in own.items()
    ]
    return f"Gaps of a thread that only looks at the clock, each at its time, by cause. {'; '.join(parts)}."


def table(run: Run) -> Table:
    """Every point."""
    columns = (Column("at", "seconds"), Column("away for", "ns"), Column("cause"))
    rows = sorted((round(at, 6), ns, cause) for own in drawn_gaps(run).values() for at, ns, cause in own)
    return Table(columns, tuple(rows))
