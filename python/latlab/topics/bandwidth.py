"""Bandwidth by working set, operation and threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import findings, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.units import format_bytes, format_digits, format_rate
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.plot import Axis, Plane
from latlab.view.points import Spot, series, with_figures
from latlab.view.prose import sentence
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, CurvesOfSeveral, Topic

PROBE: Final = "memory.bandwidth"
OPERATIONS: Final = {
    "read": "read",
    "write": "write",
    "write-nt": "write around the caches",
    "copy": "copy",
    "triad": "triad",
}
_MOST_CURVES: Final = 6
_SET: Final = Axis("working set", "bytes", 1.3, 1.3)
_RATE: Final = Axis("bytes a second, one thread", "bytes_per_s")


def lines(run: Run) -> dict[str, list[Spot]]:
    """Of one thread, a curve an operation."""
    alone = [r for r in with_figures(run, PROBE, "batch_mean") if (r.point.threads or 1) == 1]
    return series(alone, OPERATIONS, lambda r: r.point.operation, lambda r: r.point.working_set_bytes)


def _plane(run: Run) -> Plane | None:
    own = lines(run)
    about = "Line chart, both axes logarithmic: bandwidth of one thread against working set."
    x = Axis("working set (all arrays together)", "bytes", 1.3, 1.3)
    return Plane(x, _RATE, own, about=about) if own else None


def lines_of_threads(run: Run) -> dict[str, list[Spot]]:
    """One curve for each working set that was read by different numbers of threads; six of them at most."""
    reads = [r for r in with_figures(run, PROBE, "batch_mean") if r.point.operation == "read"]
    sizes = sorted({r.point.working_set_bytes for r in reads if r.point.working_set_bytes is not None})
    names = {size: format_bytes(size) for size in sizes}
    all_of_them = series(reads, names, lambda r: r.point.working_set_bytes, lambda r: r.point.threads or 1)
    found = [(name, curve) for name, curve in all_of_them.items() if len(curve) > 1]
    if len(found) > _MOST_CURVES:
        step = (len(found) - 1) / (_MOST_CURVES - 1)
        found = [found[round(step * place)] for place in range(_MOST_CURVES)]
    return dict(found)


def _plane_of_threads(run: Run) -> Plane | Absent | None:
    """A straight rising line is perfect scaling."""
    own = lines_of_threads(run)
    if not own:
        measured = with_figures(run, PROBE, "batch_mean")
        return Absent("bandwidth was measured with one number of threads only") if measured else None
    return Plane(
        Axis("threads", "count", 1.1, 1.1),
        Axis("bytes a second, all threads", "bytes_per_s"),
        own,
        "{x} threads: {y}",
        "Line chart, both axes logarithmic: read bandwidth of all threads together against their number.",
        "{y} with {x}",
    )


def prose(run: Run) -> Iterator[str]:
    """What one thread reads, and what all of them do."""
    if reads := lines(run).get(OPERATIONS["read"]):
        first, last = reads[0], reads[-1]
        far = f" and {format_rate(last.value)} from {format_bytes(last.x)}" if last.x > first.x else ""
        yield f"One thread reads {format_rate(first.value)} from {format_bytes(first.x)}{far}."
    if of_threads := lines_of_threads(run):
        size, curve = list(of_threads.items())[-1]
        first, last = curve[0], curve[-1]
        yield (
            f"From {size}, {last.x:.0f} threads together read {format_rate(last.value)},"
            f" {format_digits(last.value / first.value, 2)} times what"
            f" {'one does' if first.x == 1 else f'{first.x:.0f} do'}."
        )


def _listings(run: Run) -> tuple[Listing, ...]:
    """Bytes a core cycle at each level, beside the most that the processor's makers give for it."""

    def share(level: Machine) -> float | None:
        cycle, most = positive(level, "bytes_per_cycle"), positive(level, "best_bytes_per_cycle")
        return cycle / most if cycle is not None and most is not None else None

    return listed(
        "One core against its theoretical maximum",
        [
            (operation, level)
            for name, operation in (("levels", "read"), ("write", "write"), ("copy", "copy"))
            for level in findings(run, PROBE).sections(name)
            if positive(level, "bytes_per_cycle") is not None
        ],
        ("operation", "text", lambda at: at[0]),
        ("level", "text", lambda at: at[1].text("name") or "?"),
        ("working set", "bytes", lambda at: positive(at[1], "working_set_bytes")),
        ("bytes a second", "bytes_per_s", lambda at: positive(at[1], "bytes_per_s")),
        ("bytes a cycle", "number", lambda at: positive(at[1], "bytes_per_cycle")),
        ("at most", "number", lambda at: positive(at[1], "best_bytes_per_cycle")),
        ("share", "share", lambda at: share(at[1])),
        ("source of the maximum", "text", lambda at: at[1].text("source") or ""),
    )


def _evidence(run: Run) -> Iterator[str]:
    """With what a byte means, by operation."""
    meanings = {
        OPERATIONS[record.point.operation]: record.work.convention
        for record in with_figures(run, PROBE, "batch_mean")
        if record.point.operation in OPERATIONS and record.work.convention
    }
    yield from (sentence(f"A byte of {name}: {meaning}") for name, meaning in meanings.items())
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="bandwidth",
        title="How fast can one core move data, from each level?",
        caption="Bands are 95 % intervals. Operations count bytes differently: see the lines below.",
        probe=PROBE,
        measured=_plane,
        table=lambda plane: plane.table("working set"),
        several=CurvesOfSeveral(lines, _SET, _RATE, "working set"),
    ),
    others=(
        Chart(
            id="bandwidth_threads",
            title="Do more threads move more data?",
            caption="Each thread has its own arrays; the working set is what all threads touch together.",
            probe=PROBE,
            measured=_plane_of_threads,
            table=lambda plane: plane.table("threads"),
        ),
    ),
    prose=prose,
    listings=_listings,
    evidence=_evidence,
)
