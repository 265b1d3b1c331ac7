"""1-CDF of single operations on linear and on logarithmic axes, against a normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from latlab.charts import tail_data
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.axes import DURATION_FROM_ZERO, duration_x, share_y
from latlab.view.distribution import normal_share, survival, thinned
from latlab.view.drawing import inline, layered
from latlab.view.table import Column, Table
from latlab.view.theme import DASHES

ID = "long_tail"
TITLE = "How much slower than a normal are the slow ones?"
MEASURED, NORMAL = "measured", "normal with the same mean and deviation"
_STEPS = 110
_NORMAL_STEPS = 48
_TABLE_STEPS = 40
_WIDTH, _HEIGHT = 330, 300


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if tail_data.record_of(run) else tail_data.why_absent(run)


def chart(run: Run) -> alt.HConcatChart | None:
    """What the eye sees on linear axes, and what there is on logarithmic ones."""
    record = tail_data.record_of(run)
    if record is None:
        return None
    steps = thinned(survival(record), _STEPS)
    left, right = steps[0][0] / 1.5, steps[-1][0] * 1.5
    typical = max(x for x, share in steps if share >= 0.01 or x == steps[0][0]) * 1.3  # noqa: PLR2004 - p99
    lowest = steps[-1][1] / 1.5
    linear = _panel(
        record,
        [step for step in steps if step[0] <= typical],
        [typical * step / _NORMAL_STEPS for step in range(_NORMAL_STEPS + 1)],
        alt.X(
            "x:Q",
            title="takes at least",
            scale=alt.Scale(domain=[0, typical], nice=False, clamp=False),
            axis=alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=5, grid=True, labelOverlap=True),
        ),
        alt.Y(
            "share:Q",
            title="share of operations",
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(format="%", tickCount=5),
        ),
        "linear: what most operations do",
    )
    logarithmic = _panel(
        record,
        steps,
        tail_data.steps_between(left, right, _NORMAL_STEPS),
        duration_x("x", "takes at least", left, right),
        share_y("share", "share of operations", lowest),
        "logarithmic: the tail",
        lowest / 2,
    )
    return alt.hconcat(linear, logarithmic, spacing=24)


def _panel(
    record: Record,
    steps: Sequence[tuple[float, float]],
    places: Sequence[float],
    x: alt.X,
    y: alt.Y,
    title: str,
    lowest: float = 0.0,
) -> alt.LayerChart:
    """The measured staircase, and the normal at `places` down to the lowest share."""
    curves = {MEASURED: steps, NORMAL: [(at, normal_share(record, at)) for at in places]}
    rows: list[dict[str, Any]] = [
        {"series": name, "x": at, "share": share}
        for name, curve in curves.items()
        for at, share in curve
        if share is not None and share >= lowest
    ]
    colour = alt.Color(
        "series:N",
        legend=alt.Legend(title=None, columns=2, symbolType="stroke", symbolStrokeWidth=3),
        scale=alt.Scale(domain=list(curves)),
    )
    base = alt.Chart().encode(x=x, y=y, color=colour)
    normal = base.transform_filter(f"datum.series == '{NORMAL}'")
    measured = base.transform_filter(f"datum.series == '{MEASURED}'")
    layers = [
        *_marks(record, x),
        normal.mark_line(strokeDash=list(DASHES[1]), strokeWidth=1.6, clip=True),
        measured.mark_line(strokeWidth=2.6, clip=True, interpolate="step-before"),
    ]
    return layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT, title=title)


def _marks(record: Record, x: alt.X) -> list[alt.Chart]:
    """The mean, and one and six deviations above it, where the axis reaches."""
    mean, deviation = (record.summary.mean, record.summary.std) if record.summary else (None, None)
    left, right = x["scale"]["domain"]
    places = [("mean", mean)]
    if mean is not None and deviation is not None:
        places += [("+1 dev.", mean + deviation), ("+6 dev.", mean + 6 * deviation)]
    inside = [(name, at) for name, at in places if at is not None and left < at < right]
    layers = []
    for number, (name, at) in enumerate(inside):
        data = alt.Chart(inline([{"x": at, "text": name}]))
        layers.append(data.mark_rule(style="reported").encode(x=x))
        # Names of lines that may stand side by side: one under the other, the middle one's before its line.
        before = number == 1
        text = data.mark_text(
            style="note", align="right" if before else "left", dx=-3 if before else 3, dy=8 + 13 * number
        )
        layers.append(text.encode(x=x, y=alt.value(0), text=alt.Text("text:N")))
    return layers


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    record = tail_data.record_of(run)
    if record is None or record.summary is None:
        return "No long tail."
    return (
        f"Share of {tail_data.name_of(record)} that take at least a time, once on linear axes and once on"
        f" logarithmic ones, each with a dashed normal curve; mean {format_ns(record.summary.mean)}, standard"
        f" deviation {format_ns(record.summary.std)}, slowest {format_ns(survival(record)[-1][0])}."
    )


def table(run: Run) -> Table:
    """Points of the staircase, fewer than are drawn, and what the normal puts there."""
    columns = (
        Column("takes at least", "ns"),
        Column("share of operations", "share"),
        Column("share by the normal", "share"),
    )
    record = tail_data.record_of(run)
    if record is None:
        return Table(columns)
    steps = thinned(survival(record), _TABLE_STEPS)
    return Table(columns, tuple((at, share, normal_share(record, at)) for at, share in steps))
