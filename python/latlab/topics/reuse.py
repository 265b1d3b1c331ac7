"""A working array made anew each time against two that change places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.plot import Axis, Plane
from latlab.view.points import Spot, series, with_figures
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "alloc.reuse"
_SERIES: Final = {"fresh": "a new array each time", "swapped": "two arrays that swap roles"}
_SIZE: Final = Axis("size of the array", "bytes", 1.3, 1.3)
_TIME: Final = Axis("one iteration, median", "ns")


def lines(run: Run) -> dict[str, list[Spot]]:
    """One curve for each way."""
    return series(
        with_figures(run, PROBE, "batch_mean"),
        _SERIES,
        lambda record: record.point.operation,
        lambda record: record.point.size_bytes or record.point.working_set_bytes,
    )


def ratios(run: Run) -> list[tuple[float, float, float]]:
    """`(size in bytes, fresh ns, swapped ns)` where both were measured, smallest first."""
    own = lines(run)
    fresh, swapped = ({spot.x: spot.value for spot in own.get(name, ())} for name in _SERIES.values())
    return [(size, fresh[size], swapped[size]) for size in sorted(fresh.keys() & swapped.keys())]


def _plane(run: Run) -> Plane | None:
    own = lines(run)
    about = "Line chart, both axes logarithmic: time of one iteration against the array's size."
    return Plane(_SIZE, _TIME, own, about=about, height=280) if own else None


def prose(run: Run) -> Iterator[str]:
    """Where keeping the array gains most."""
    both = ratios(run)
    if not both:
        return
    size, fresh, swapped = max(both, key=lambda entry: entry[1] / entry[2])
    if fresh < 1.1 * swapped:
        yield "Keeping the array gains less than 10 % at every size measured."
    else:
        yield (
            f"With {format_bytes(size)}, an iteration takes {format_ns(fresh)} with a new array and"
            f" {format_ns(swapped)} with one that is kept: {fresh / swapped:.1f} times as long."
        )


TOPIC: Final = Topic(
    Chart(
        id="reuse",
        title="Is it worth keeping an array instead of making a new one?",
        caption="The same work on the same numbers; only the destination of the result differs.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("array"),
        several=CurvesOfSeveral(lines, _SIZE, _TIME, "array"),
    ),
    prose=prose,
)
