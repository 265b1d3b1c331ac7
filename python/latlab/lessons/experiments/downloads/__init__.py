"""Downloads and uploads: one after another or by a pool, one large file or many small ones."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from latlab.lessons import distance
from latlab.lessons.bench import PLAIN, Arms, Bench, Cannot, Times, nothing
from latlab.lessons.distance import Way
from latlab.lessons.experiments.downloads.transfers import (
    FILES,
    NO_TEN,
    PLANS,
    POOL,
    RATE_BIT_PER_S,
    Gigabyte,
    Plan,
    Ten,
    by_core,
    by_requests,
    by_shape,
    by_workers,
    failing,
    going_second,
    of_the_user,
    single_files,
    ten_files,
)
from latlab.lessons.figures import Cell, Published, Unit
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import probed, records
from latlab.lessons.template import reported
from latlab.text import clean
from latlab.units import format_bytes

if TYPE_CHECKING:
    from latlab.lessons.programs.downloads import Done
    from latlab.run.model import Record
    from latlab.run.run import Run

T = TypeVar("T")

QUESTION = (
    "Is it faster to upload/download 1 GB as a single file than as thousands, and several files at once?"
)
ORIGIN = "a lesson, “Understanding Latency”: Accessing the Network"
PROGRAMS = ("downloads.py", "downloads_server.py")
#: It takes URLs of the user's.
URLS = True
PUBLISHED: Final = {
    "sequential": Published("3.225 s", 3.225),
    "pool": Published("0.285 s", 0.285),
    "speed_up_ratio": Published("3.225 s / 0.285 s", 3.225 / 0.285),
}
#: As they are printed, in the order of their completion.
PUBLISHED_ORDER: Final = {
    "sequential": tuple(f"seq_{mass}.h5" for mass in range(10, 20)),
    "pool": tuple(f"par_{mass}.h5" for mass in (11, 12, 15, 13, 10, 14, 16, 19, 17, 18)),
}
GUESS = Guess(
    "How many times as fast are ten files when six workers download them instead of one?",
    "original.speed_up_ratio.python",
    PUBLISHED["speed_up_ratio"],
)
ORIGINAL_TAKES: Final = Original(
    180, 0, "hundreds of files come over a path on which each waits for round trips of 20 ms"
)
_PATH, _WAITS, _CONTROL = "a path with a delay", "a server that waits", "the loopback (the control)"
_GIGABYTE, _ERRORS, _FOLDER = "what 1 GB would take", "files that fail", "a folder for the downloads"


def wanted() -> Iterator[str]:
    """What is to be installed for which rows."""
    if importlib.util.find_spec("requests") is None:
        yield "for the rows of the published program: pip install 'latlab[lessons]'"


def run(bench: Bench) -> Reported:
    """Ten files in every way, then how many workers, how many files, which order, and what fails."""
    plan = PLANS[bench.size]
    with contextlib.ExitStack() as stack:
        far = _far(bench, plan, stack)
        loopback = distance.loopback(plan.origin_s, core=not bench.plain)
        near = bench.attempt(_CONTROL, lambda: stack.enter_context(loopback))
        folder = _folder(bench)

        def ten_by(what: str, way: Way | None, work: Callable[[Way], Ten]) -> Ten:
            return bench.attempt(what, _over(bench, way, work)) or Ten(why=bench.why(what))

        ten = ten_by("ten files", far, lambda way: ten_files(bench, plan, way, folder))
        control = ten_by(f"ten files, {_CONTROL}", near, lambda way: ten_files(bench, plan, way, folder))
        core = ten_by("the same by latlab's own client", far, lambda way: by_core(bench, plan, way))
        library = ten_by("the same with requests", far, lambda way: by_requests(bench, plan, way, folder))
        what = "ten files by one to ten workers"
        sweep = bench.arms(what, _over(bench, far, lambda way: by_workers(bench, plan, way)))
        swept = bench.arms(
            f"{what}, {_CONTROL}", _over(bench, near, lambda way: by_workers(bench, plan, way))
        )
        shapes = bench.arms(
            "one large file against many", _over(bench, far, lambda way: by_shape(bench, plan, way))
        )
        second = bench.arms(
            "the two ways in either order", _over(bench, far, lambda way: going_second(bench, plan, way))
        )
        failed = bench.attempt(_ERRORS, _over(bench, far, lambda way: failing(plan, way)))
        gigabyte = _gigabyte(bench, plan, far)
        real = bench.attempt("your URLs", lambda: of_the_user(bench)) if bench.urls else None
    native, why_native = probed(bench, "network.transfer", budget=plan.native_s)
    found = Found(
        plan,
        far,
        bench.why,
        ten=ten,
        control=control,
        core=core,
        library=library,
        sweep=sweep,
        swept=Arms(swept, "the loopback could not be used"),
        shapes=shapes,
        second=second,
        failed=failed or {},
        gigabyte=gigabyte,
        native=native_cells(native, why_native),
        real=real or NO_TEN,
    )
    return say(found)


@dataclass(frozen=True)
class Found:
    """Ten files in every way, and what functions below return of other figures.

    Attributes:
        why: Why something was not measured, by its name.
        ten: Over what lies between; on the loopback it is `control`.
        core: By latlab's own client.
        library: By requests.
        sweep: By one to ten workers; on the loopback it is `swept`.
    """

    plan: Plan
    far: Way | None
    why: Callable[[str], str] = lambda _: ""
    ten: Ten = NO_TEN
    control: Ten = NO_TEN
    core: Ten = NO_TEN
    library: Ten = NO_TEN
    sweep: Arms[int] = field(default_factory=Arms)
    swept: Arms[int] = field(default_factory=Arms)
    shapes: Arms[str] = field(default_factory=Arms)
    second: Arms[str] = field(default_factory=Arms)
    failed: Mapping[str, list[Done]] = field(default_factory=dict)
    gigabyte: Gigabyte | None = None
    native: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)
    real: Ten = NO_TEN

    def emulated(self, figure: Times | Cell) -> Cell:
        """With what must stand beside a figure that was measured over an emulated distance."""
        cell = figure.cell() if isinstance(figure, Times) else figure
        return cell if self.far is None or cell.value is None else replace(cell, why=self.far.label)


def say(found: Found) -> Reported:
    """What these figures say."""
    label = found.why(_PATH) if found.far is None else found.far.label
    return reported(__name__, label=label, emulated=found.emulated, **vars(found))


# ----------------------------------------------------------------------------------------------------------
# where, and what is done there


def _far(bench: Bench, plan: Plan, stack: contextlib.ExitStack) -> Way | None:
    """The path; where none can be had, a server that waits; None where there is not even a loopback."""

    def path() -> Way:
        if bench.plain:
            raise Cannot(
                f"{PLAIN}, and paths need the measuring core: the server waits instead, which is "
                "valid only for the time to the first byte"
            )
        return stack.enter_context(distance.path(plan.rtt_s, plan.origin_s))

    waiting = distance.loopback(plan.origin_s, core=not bench.plain, wait_s=plan.rtt_s)
    return bench.attempt(_PATH, path) or bench.attempt(_WAITS, lambda: stack.enter_context(waiting))


def _folder(bench: Bench) -> str | None:
    """Where the ten files are written, as the source does; None where that cannot be: they stay in memory then."""

    def folder() -> str:
        bench.room(1_000_000_000)
        place = bench.folder / "downloads"
        place.mkdir()
        return str(place)

    return bench.attempt(_FOLDER, folder)


def _over(bench: Bench, way: Way | None, work: Callable[[Way], T]) -> Callable[[], T]:
    """Some work over a way, or why there is none."""

    def there() -> T:
        if way is None:
            raise Cannot(bench.why(_WAITS) or bench.why(_CONTROL) or "there is no network")
        return work(way)

    return there


def _gigabyte(bench: Bench, plan: Plan, far: Way | None) -> Gigabyte | None:
    """On a path with a rate, which is what a gigabyte is about; where there is none, over what there is."""
    if far is not None and far.kind == "waits":
        # What a large file takes is exactly what such a server leaves out.
        bench.lacks(_GIGABYTE, f"no conclusion is possible ({far.label})")
        return None
    with contextlib.ExitStack() as stack:
        way = far
        if far is not None and bench.size != "small":
            limited = distance.path(plan.rtt_s, 0.0, RATE_BIT_PER_S)
            way = bench.attempt("1 GB at 200 Mbit/s", lambda: stack.enter_context(limited)) or far
        return bench.attempt(_GIGABYTE, _over(bench, way, lambda found: single_files(bench, plan, found)))


# ----------------------------------------------------------------------------------------------------------
# what follows from it


def most(workers: int) -> float:
    """How many times as fast ten equal files can be by so many workers: they take whole batches."""
    return FILES / math.ceil(FILES / workers)


def beyond(sweep: Mapping[int, Times]) -> dict[int, bool]:
    """How many workers were faster than batches allow, and whether by more than run-to-run variation."""
    found = {workers: sweep[1].over(times) for workers, times in sweep.items()}
    return {
        workers: cell.above(most(workers))
        for workers, cell in found.items()
        if (cell.number or 0) > 1.02 * most(workers)
    }


def overtaken(names: Iterable[str]) -> int:
    """How many files were done after one that was begun later (their numbers are in the order of the start)."""
    numbers = [int("".join(filter(str.isdigit, name.partition(".")[0]))) for name in names]
    return sum(max(numbers[:place], default=0) > number for place, number in enumerate(numbers))


def begun(label: str) -> str:
    """As the beginning of a sentence."""
    return label[:1].upper() + label[1:]


def fate(done: Done, how: str) -> Cell:
    """What became of a file: its error, or its size and how it came."""
    return Cell(
        "text", clean(done["error"] or f"{format_bytes(done['size'], decimal=True)}, {how}", most=120)
    )


def native_cells(native: Run | None, why: str) -> dict[str, dict[str, Cell]]:
    """The probe's own control, ten files on the loopback in sets of A B B A, by connections."""
    found = records(
        native,
        "network.transfer",
        operation="ten-files",
        engine="latlab",
        path="loopback",
        concurrency=POOL,
        file_bytes=100 << 10,
    )
    own = {record.point.connections: record for record in found if record.value is not None}
    cells = {}
    for connections in ("new", "kept"):
        figure = partial(_finding, own.get(connections), why=why)
        cells[connections] = {
            "sequential": figure("sequential_ns", "s"),
            "pool": figure("pool_ns", "s"),
            "speed_up": known(figure("speed_up", "ratio")),
        }
    return cells


def _finding(record: Record | None, name: str, unit: Unit, *, why: str) -> Cell:
    """A figure of a set, in seconds where it is one in nanoseconds."""
    if record is None:
        return nothing(unit, why)
    # Without the core there is no native run, and nothing that reads runs has to be there.
    from latlab.run.findings import ends, found, positive  # noqa: PLC0415

    own, scale = found(record), 1.0 if unit == "ratio" else 1e-9
    value, between = positive(own, name), ends(own, name)
    if value is None:
        return nothing(unit, why)
    here = value * scale
    if between is None:
        return Cell(unit, here, why="median of the sets, measured once")
    scaled = (end * scale for end in between)
    return Cell.within(unit, here, scaled, 6, why="median of the sets, 95 % interval")


def known(speed_up: Cell) -> Cell:
    """A speed-up whose interval holds 1, or that is more than ten files allow, is none."""
    if speed_up.number is None:
        return speed_up
    if speed_up.number > most(POOL) or (speed_up.low or 0.0) < 1.0 < (speed_up.high or 0.0):
        return nothing(
            "ratio", f"unknown: {speed_up.shown}, and ten files by six allow {most(POOL):g} at most"
        )
    return speed_up
