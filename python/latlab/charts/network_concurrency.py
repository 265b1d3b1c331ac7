"""Goodput and time of one against how many transfers are under way: where more of them only wait."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from latlab.run.findings import ends, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.topics import transfers
from latlab.units import format_ns, format_rate
from latlab.view import curves
from latlab.view.axes import count_axis, duration_y, rate_y, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot
from latlab.view.table import Column, Table, range_cells

ID = "network_concurrency"
TITLE = "How many transfers should be under way at once?"
#: Of the path that was asked for, before the loopback's.
_MOST_CURVES = 6
_WIDTH, _HEIGHT = 312, 300


@dataclass(frozen=True, slots=True)
class Sweep:
    """One kind of transfer by concurrency.

    Attributes:
        row: What was concluded.
        goodput: Bytes a second, with intervals.
        times: Median of one transfer.
        knee: Smallest concurrency with 80 % of the largest goodput; absent where no plateau was reached.
    """

    row: Machine
    goodput: list[Spot]
    times: list[Spot]
    knee: int | None

    @property
    def in_words(self) -> str:
        """`knee at 24`."""
        return f"knee at {self.knee}" if self.knee else "no plateau, no knee"


def sweeps(run: Run) -> dict[str, Sweep]:
    """Every sweep by its name."""
    found: dict[str, Sweep] = {}
    for row in transfers.rows(run, "knees"):
        kind, knee = transfers.kind_of(row), transfers.count(row, "knee")
        if kind is None:
            continue
        goodput, times = [], []
        for step in row.sections("curve"):
            many = transfers.count(step, "concurrency")
            rate, time = positive(step, "goodput_bytes_per_s"), positive(step, "time_ns")
            if many is None or rate is None or time is None:
                continue
            low, high = ends(step, "goodput_bytes_per_s") or (rate, rate)
            goodput.append(Spot(many, rate, low, high, 1, disturbed=False))
            soon, late = ends(step, "time_ns") or (time, time)
            times.append(Spot(many, time, soon, late, 1, disturbed=False))
        if len(goodput) > 1:
            found[kind.name] = Sweep(row, goodput, times, knee)
    return found


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return transfers.absence(run, sweeps(run))


def chart(run: Run) -> alt.HConcatChart | None:
    """Goodput on the left, with a ring at each knee; the median time of one on the right."""
    found = dict(list(sweeps(run).items())[:_MOST_CURVES])
    if not found:
        return None
    goodput = {name: sweep.goodput for name, sweep in found.items()}
    times = {name: sweep.times for name, sweep in found.items()}
    steps = sorted({int(spot.x) for spot in curves.everywhere(goodput)})
    # Around a knee there are too many to name each.
    steps = [many for many in steps if many.bit_count() == 1] or steps
    x = count_axis("x", "transfers under way", steps)
    rates = rate_y("value", "all together", *widened(curves.ends(goodput)))
    rings = [
        {"x": spot.x, "value": spot.value, "text": f"{name}: knee at {sweep.knee}"}
        for name, sweep in found.items()
        for spot in sweep.goodput
        if spot.x == sweep.knee
    ]
    ring = alt.Chart(inline(rings)).mark_point(shape="circle", size=220, filled=False, style="crossed")
    left = layered(
        [
            *curves.layers(goodput, x, rates, columns=1),
            ring.encode(x=x, y=rates, tooltip=alt.Tooltip("text:N")),
        ],
        data=curves.rows(goodput, lambda spot: f"{spot.x:.0f} under way: {spot.stated(format_rate)}"),
        width=_WIDTH,
        height=_HEIGHT,
        title="how much comes in a second",
    )
    right = layered(
        curves.layers(times, x, duration_y("value", "one transfer", *widened(curves.ends(times))), columns=1),
        data=curves.rows(times, lambda spot: f"{spot.x:.0f} under way: {spot.stated(format_ns)}"),
        width=_WIDTH,
        height=_HEIGHT,
        title="how long each takes",
    )
    return alt.hconcat(left, right, spacing=24)


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = [
        f"{name}: {format_rate(sweep.goodput[0].value)} with {sweep.goodput[0].x:.0f}, {sweep.in_words},"
        f" {format_rate(sweep.goodput[-1].value)} with {sweep.goodput[-1].x:.0f}"
        for name, sweep in sweeps(run).items()
    ]
    return (
        "Two line charts, axes logarithmic: bytes a second of all transfers together, and time of one,"
        " against transfers under way. " + "; ".join(parts) + "."
    )


def table(run: Run) -> Table:
    """Every step of every sweep."""
    columns = (
        Column("transfers"),
        Column("under way", "count"),
        Column("together", "bytes_per_s"),
        Column("95 % from", "bytes_per_s"),
        Column("95 % to", "bytes_per_s"),
        Column("median of one", "ns"),
        Column("95 % from", "ns"),
        Column("95 % to", "ns"),
        Column("p99 of one", "ns"),
        Column("limited by"),
    )
    rows = []
    for name, sweep in sweeps(run).items():
        by_many = {transfers.count(step, "concurrency"): step for step in sweep.row.sections("curve")}
        for spot, time in zip(sweep.goodput, sweep.times, strict=True):
            step = by_many.get(int(spot.x), Machine({}))
            p99, verdict = positive(step, "p99_ns"), step.text("verdict")
            rates = (spot.value, *range_cells(spot.low, spot.high))
            times = (time.value, *range_cells(time.low, time.high))
            rows.append((name, int(spot.x), *rates, *times, p99, verdict or "unknown"))
    return Table(columns, tuple(rows))
