"""Goodput and time of one against how many transfers are under way: where more of them only wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from latlab.run.findings import ends, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.topics import transfers
from latlab.units import format_rate
from latlab.view.plot import Axis, Beside, Plane, rings
from latlab.view.points import Spot
from latlab.view.table import Table, of_range, table_of
from latlab.view.topic import Chart

#: Of the path that was asked for, before the loopback's.
_MOST_CURVES: Final = 6


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


def _picture(own: Mapping[str, Sweep]) -> Beside:
    """Goodput on the left, with a ring at each knee; the median time of one on the right."""
    found = dict(list(own.items())[:_MOST_CURVES])
    steps = sorted({int(spot.x) for sweep in found.values() for spot in sweep.goodput})
    # Around a knee there are too many to name each.
    ticks = tuple(many for many in steps if many.bit_count() == 1)
    knees = [
        {"x": spot.x, "value": spot.value, "text": f"{name}: knee at {sweep.knee}"}
        for name, sweep in found.items()
        for spot in sweep.goodput
        if spot.x == sweep.knee
    ]
    plane = partial(
        Plane,
        Axis("transfers under way", "count", 1.1, 1.1, ticks=ticks),
        hover="{x} under way: {y}",
        width=312,
        height=300,
        columns=1,
    )
    left = plane(
        Axis("all together", "bytes_per_s"),
        {name: sweep.goodput for name, sweep in found.items()},
        marks=lambda _: rings(knees, 220),
        title="how much comes in a second",
    )
    right = plane(
        Axis("one transfer", "ns"),
        {name: sweep.times for name, sweep in found.items()},
        title="how long each takes",
    )
    parts = [
        f"{name}: {format_rate(sweep.goodput[0].value)} with {sweep.goodput[0].x:.0f}, {sweep.in_words},"
        f" {format_rate(sweep.goodput[-1].value)} with {sweep.goodput[-1].x:.0f}"
        for name, sweep in own.items()
    ]
    about = (
        "Two line charts, axes logarithmic: bytes a second of all transfers together, and time of one,"
        " against transfers under way."
    )
    return Beside((left, right), f"{about} {'; '.join(parts)}.")


def _table(own: Mapping[str, Sweep]) -> Table:
    steps = {
        name: {transfers.count(step, "concurrency"): step for step in sweep.row.sections("curve")}
        for name, sweep in own.items()
    }
    return table_of(
        [
            (name, spot, time, steps[name].get(int(spot.x), Machine({})))
            for name, sweep in own.items()
            for spot, time in zip(sweep.goodput, sweep.times, strict=True)
        ],
        ("transfers", "text", lambda at: at[0]),
        ("under way", "count", lambda at: int(at[1].x)),
        ("together", "bytes_per_s", lambda at: at[1].value),
        *of_range("bytes_per_s", lambda at: at[1]),
        ("median of one", "ns", lambda at: at[2].value),
        *of_range("ns", lambda at: at[2]),
        ("p99 of one", "ns", lambda at: positive(at[3], "p99_ns")),
        ("limited by", "text", lambda at: at[3].text("verdict") or "unknown"),
    )


CHART: Final = Chart(
    id="network_concurrency",
    title="How many transfers should run at once?",
    caption="Counted while all workers are busy, without start and end. Bands are 95 % intervals "
    "between blocks. Ring: the knee, the fewest concurrent transfers that reach 80 % of the highest "
    "goodput. Beyond it each transfer only waits longer.",
    probe=transfers.PROBE,
    measured=sweeps,
    picture=_picture,
    table=_table,
)
