"""What reading each clock costs, and the smallest step that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_digits, format_ns
from latlab.view.evidence import evidence
from latlab.view.plot import Drawing, Row
from latlab.view.points import drawable, median_and_ends, quantile, with_figures
from latlab.view.prose import sentence
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

PROBE: Final = "clock.read"
_COST, _STEP = "one reading costs", "smallest step"


def records(run: Run) -> list[Record]:
    """One record a clock, the cheapest first."""
    found = [record for record in with_figures(run, PROBE, "batch_mean") if record.point.clock]
    return sorted(found, key=lambda record: quantile(record, "p50") or 0.0)


def step_ns(record: Record) -> float | None:
    """The smallest difference between two readings, as measured; zero and less is no step."""
    step = record.findings.get("resolution_ns") if isinstance(record.findings, dict) else None
    return float(step) if isinstance(step, int | float) and drawable(step) else None


def _picture(own: Sequence[Record]) -> Drawing:
    parts = [
        f"{r.point.clock} {format_ns(quantile(r, 'p50')) if r.summary else 'unknown'}, step"
        f" {format_ns(step_ns(r))}"
        for r in own
    ]
    about = "Dot chart on a logarithmic axis: cost of one reading and smallest step of each clock."
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(own))


def _drawn(own: Sequence[Record]) -> AnyChart:
    """A point for the cost and one for the step of each clock."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, drawing  # noqa: PLC0415 - as above

    values: list[Row] = [
        {"clock": name, "what": what, "x": value, "text": f"{name}: {what} {format_ns(value)}"}
        for record in own
        for name in [str(record.point.clock)]
        for what, value in ((_COST, quantile(record, "p50")), (_STEP, step_ns(record)))
        if value is not None
    ]
    low, high = axes.widened((row["x"] for row in values), down=2.0, up=2.0)
    names = alt.Scale(domain=[str(record.point.clock) for record in own])
    shapes = alt.Scale(domain=[_COST, _STEP], range=["circle", "triangle-up"])
    points = alt.Chart(drawing.inline(values)).mark_point(size=90, filled=True, opacity=1)
    layer = points.encode(
        x=axes.duration_x("x", "logarithmic", low, high),
        y=alt.Y("clock:N", title=None, scale=names, sort=None, axis=alt.Axis(grid=True)),
        color=alt.Color("what:N", title=None, scale=alt.Scale(domain=[_COST, _STEP])),
        shape=alt.Shape("what:N", title=None, scale=shapes),
        tooltip=alt.Tooltip("text:N"),
    )
    return drawing.layered([layer], width=520, height=26 * len(own))


def _table(own: Sequence[Record]) -> Table:
    return table_of(
        own,
        ("clock", "text", lambda record: str(record.point.clock)),
        *median_and_ends("ns", "one reading, median"),
        ("smallest step", "ns", step_ns),
        ("samples", "count", lambda record: record.samples),
    )


def prose(run: Run) -> Iterator[str]:
    """The clock that timed this run."""
    clock = run.clock
    yield (
        f"The clock of this run advances in steps of {format_ns(clock.quantum_ns, digits=2)}; an "
        f"empty timed region reads {format_ns(clock.overhead_ns.mean)} on average."
    )


def _evidence(run: Run) -> Iterator[str]:
    """What the clock can tell."""
    clock = run.clock
    error = f"{format_digits(clock.rate_error_ppm, 2)} parts per million of the system's raw clock"
    yield f"Clock: {clock.kind}, {clock.ticks_per_ns:.6g} ticks/ns, accurate to {error}."
    yield sentence(f"Fences: {clock.fences}")
    if clock.why_not_hardware:
        yield sentence(f"The CPU's counter is not used: {clock.why_not_hardware}")
    if clock.backwards:
        yield f"{clock.backwards} readings were smaller than the one before."
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="clocks",
        title="What does reading the clock cost, and how fine is it?",
        caption="A clock cannot time anything shorter than its step, however often it is read.",
        probe=PROBE,
        measured=records,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
    evidence=_evidence,
)
