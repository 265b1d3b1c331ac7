"""1-CDF of single operations on linear and on logarithmic axes, with the families fitted to it."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.charts import tail_data
from latlab.charts.axes import DURATION_FROM_ZERO, duration_x, share_y
from latlab.charts.drawing import inline, layered
from latlab.charts.pokes_data import survival, thinned
from latlab.charts.table import Column, Table
from latlab.charts.theme import DASHES
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.stats import tails
from latlab.stats.tails import Fit
from latlab.units import format_ns

ID = "long_tail"
TITLE = "Which distribution are the slow ones from?"
MEASURED = "measured"
_STEPS = 110
_FIT_STEPS = 48
_LINEAR_STEPS = 40
#: Families that are drawn, and the normal in any case.
_MOST_FITS = 3
_WIDTH, _HEIGHT = 330, 300


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if tail_data.record_of(run) else tail_data.why_absent(run)


def fits_of(record: Record, at: tuple[float, ...]) -> list[Fit]:
    """The best families and the normal, best first."""
    found = tail_data.fitted(tails.of_record(record), at)
    if found is None:
        return []
    return [fit for place, fit in enumerate(found.fits) if place < _MOST_FITS or fit.family == "normal"]


def chart(run: Run) -> alt.HConcatChart | None:
    """What the eye sees on linear axes, and what there is on logarithmic ones."""
    record = tail_data.record_of(run)
    if record is None or record.summary is None:
        return None
    steps = thinned(survival(record), _STEPS)
    left, right = steps[0][0] / 1.5, steps[-1][0] * 1.5
    lowest = steps[-1][1] / 1.5
    summary = record.summary
    typical = max(x for x, share in steps if share >= 0.01 or x == steps[0][0]) * 1.3  # noqa: PLR2004 - p99
    lines = tail_data.steps_between(left, right, _FIT_STEPS)
    linear = tuple(typical * step / _LINEAR_STEPS for step in range(_LINEAR_STEPS + 1))
    fits = fits_of(record, (*lines, *linear))
    names = [MEASURED, *(tail_data.NAMES[fit.family] for fit in fits)]
    colour = alt.Color(
        "series:N",
        legend=alt.Legend(title=None, columns=3, symbolType="stroke", symbolStrokeWidth=3),
        scale=alt.Scale(domain=names),
    )
    drawn = []
    for panel, places in (("log", slice(0, len(lines))), ("linear", slice(len(lines), None))):
        at = (*lines, *linear)[places]
        rows: list[dict[str, Any]] = [
            {"series": name, "number": number, "x": x, "share": share}
            for number, (name, fit) in enumerate(zip(names[1:], fits, strict=True), 1)
            for x, share in zip(at, fit.above[places], strict=True)
            if panel == "linear" or share >= lowest / 2
        ]
        rows += [
            {"series": MEASURED, "number": 0, "x": x, "share": share}
            for x, share in steps
            if panel == "log" or x <= typical
        ]
        if panel == "log":
            x = duration_x("x", "takes at least", left, right)
            y = share_y("share", "share of operations", lowest)
        else:
            x = alt.X(
                "x:Q",
                title="takes at least",
                scale=alt.Scale(domain=[0, typical], nice=False, clamp=False),
                axis=alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=5, grid=True, labelOverlap=True),
            )
            y = alt.Y(
                "share:Q",
                title="share of operations",
                scale=alt.Scale(domain=[0, 1], nice=False),
                axis=alt.Axis(format="%", tickCount=5),
            )
        layers = [
            *_marks(summary.mean, summary.std, (x, y), (left, right) if panel == "log" else (0, typical)),
            *(
                alt.Chart()
                .transform_filter(f"datum.number == {number}")
                .mark_line(
                    strokeDash=list(DASHES[number % len(DASHES)]),
                    strokeWidth=1.6 if number else 2.6,
                    clip=True,
                    interpolate="linear" if number else "step-before",
                )
                .encode(x=x, y=y, color=colour)
                for number in reversed(range(len(names)))
            ),
        ]
        title = "logarithmic: the tail" if panel == "log" else "linear: what most operations do"
        drawn.append(layered(layers, data=inline(rows), width=_WIDTH, height=_HEIGHT, title=title))
    return alt.hconcat(drawn[1], drawn[0], spacing=24)


def _marks(
    mean: float | None, deviation: float | None, axes: tuple[alt.X, alt.Y], ends: tuple[float, float]
) -> list[alt.Chart]:
    """The mean, and six deviations above it, where the axis reaches."""
    places = [("mean", mean)]
    if mean is not None and deviation is not None:
        places += [("+1 dev.", mean + deviation), ("+6 dev.", mean + 6 * deviation)]
    inside = [(name, at) for name, at in places if at is not None and ends[0] < at < ends[1]]
    layers = []
    for number, (name, at) in enumerate(inside):
        data = alt.Chart(inline([{"x": at, "text": name}]))
        layers.append(data.mark_rule(style="reported").encode(x=axes[0]))
        # Names of lines that may stand side by side: one under the other, the middle one's before its line.
        before = number == 1
        text = data.mark_text(
            style="note", align="right" if before else "left", dx=-3 if before else 3, dy=8 + 13 * number
        )
        layers.append(text.encode(x=axes[0], y=alt.value(0), text=alt.Text("text:N")))
    return layers


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    record = tail_data.record_of(run)
    if record is None or record.summary is None:
        return "No long tail."
    parts = [
        f"{tail_data.NAMES[fit.family]}: off by {tail_data.factor(fit.factor_off)} at"
        f" {format_ns(fit.furthest_off[0])}"
        for fit in fits_of(record, ())
        if fit.furthest_off is not None
    ]
    return (
        f"Share of {tail_data.name_of(record)} that take at least a time, once on linear axes and once on"
        f" logarithmic ones; mean {format_ns(record.summary.mean)}, standard deviation"
        f" {format_ns(record.summary.std)}. Fitted families, best first, and by how much each misses the"
        f" tail where it is furthest off: {'; '.join(parts)}."
    )


def table(run: Run) -> Table:
    """The families, best first, and how far each is from what was measured."""
    columns = (
        Column("family"),
        Column("parameters"),
        Column("BIC above the best", "number"),
        Column("chance that it is as good (Vuong)", "number"),
        Column("furthest off at", "ns"),
        Column("share seen above", "share"),
        Column("share it puts there", "share"),
    )
    record = tail_data.record_of(run)
    found = None if record is None else tail_data.fitted(tails.of_record(record))
    if found is None:
        return Table(columns)
    rows = tuple(
        (
            tail_data.NAMES[fit.family],
            ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in fit.parameters),
            round(fit.bic - found.best.bic, 1),
            None if fit.vuong_p is None else float(f"{fit.vuong_p:.3g}"),
            *(fit.furthest_off or (None, None, None)),
        )
        for fit in found.fits
    )
    return Table(columns, rows)
