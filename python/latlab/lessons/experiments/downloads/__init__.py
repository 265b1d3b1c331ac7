"""Downloads and uploads: one after another or by a pool, one large file or many small ones."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from latlab.lessons import distance
from latlab.lessons.bench import NOT_TIMED, PLAIN, Arms, Bench, Cannot, Times, nothing
from latlab.lessons.distance import Stamps, Way
from latlab.lessons.figures import Cell, Published, Unit
from latlab.lessons.model import Guess, Original, Told
from latlab.lessons.native import probed
from latlab.lessons.template import told
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from latlab.lessons.programs.downloads import Done
    from latlab.run.model import Record
    from latlab.run.run import Run

T = TypeVar("T")
K = TypeVar("K")

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
FILES: Final = 10
POOL: Final = 6
NAMES: Final = tuple(f"file_{number}" for number in range(10, 20))
#: What three of the ten do where files fail.
FAULTS: Final = {"file_12": "missing", "file_15": "reset", "file_17": "silent"}
GIGABYTE: Final = 1_000_000_000
#: “good internet bandwidth”, for the gigabyte.
RATE_BIT_PER_S: Final = 200_000_000
#: How many files a figure of one comes from, by their size.
_OF_EACH: Final = {10_000: 3, 100_000: 2, 1_000_000: 1, 10_000_000: 1}
_PATH, _WAITS, _CONTROL = "a path with a delay", "a server that waits", "the loopback (the control)"
_GIGABYTE, _ERRORS, _FOLDER = "what 1 GB would take", "files that fail", "a folder for the downloads"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything.

    Attributes:
        rtt_s: Of the path.
        file_bytes: Of one of the ten.
        many: Small files that hold the same bytes as the ten.
        rounds: Of ten files.
        sweep: Rounds of one to ten workers.
        shapes: Rounds of one large against many.
        sizes: Of the files from which 1 GB is estimated.
        origin_s: What a server's cache takes for what it does not have.
        patience_s: After which a server that says nothing is given up, beside five round trips.
        native_s: For the native arm.
    """

    rtt_s: float
    file_bytes: int
    many: int
    rounds: int
    sweep: int
    shapes: int
    sizes: tuple[int, ...]
    origin_s: float
    patience_s: float
    native_s: float

    @property
    def total(self) -> int:
        """Bytes of the ten."""
        return FILES * self.file_bytes

    @property
    def silence_s(self) -> float:
        """After which a server at the end of the path is given up."""
        return self.patience_s + 5 * self.rtt_s


PLANS: Final = {
    "small": Plan(0.005, 10_000, 20, 2, 2, 1, (10_000, 100_000, 1_000_000), 0.015, 0.6, 1.5),
    "default": Plan(0.02, 40_000, 25, 3, 3, 2, (10_000, 100_000, 1_000_000, 10_000_000), 0.06, 0.5, 3.0),
    # The document gives no size. Those who keep its files count 164 MB for 600 of them (snewpy, issue 262).
    "original": Plan(0.02, 273_000, 100, 8, 5, 3, (10_000, 100_000, 1_000_000, 10_000_000), 0.1, 2.0, 20.0),
}


@dataclass(frozen=True, slots=True)
class Ten:
    """Files in each way; items are the seconds of all of them, by way.

    Attributes:
        times: By way; none where they could not be transferred.
        done: The first round's files, by way.
        orders: In which the pool's were done, round by round.
        phases: Of one file by the core's client, by way.
        why: Why there is nothing.
    """

    times: Mapping[str, Times] = field(default_factory=dict)
    done: Mapping[str, list[Done]] = field(default_factory=dict)
    orders: tuple[tuple[str, ...], ...] = ()
    phases: Mapping[str, Mapping[str, Times]] = field(default_factory=dict)
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.times)

    def __getitem__(self, way: str) -> Times:
        return self.times.get(way) or Times(why=self.why)

    def phase(self, way: str, name: str) -> Times:
        """Of one file."""
        return self.phases.get(way, {}).get(name) or Times(why=self.why or "there is no such phase")


NO_TEN: Final = Ten()


@dataclass(frozen=True, slots=True)
class Gigabyte:
    """Seconds of one file by its size: fetched anew, on a kept connection, sent, and by a pool of six."""

    way: Way
    each: Mapping[str, Mapping[int, Times]]

    def estimate(self, kind: str, size: int) -> Cell:
        """Of 1 GB in files of that size; as one file the largest, and the rest at the rate between the two largest."""
        times = self.each[kind]

        def took(size: int) -> str:
            return format_ns(times[size].median * 1e9)

        if size != GIGABYTE:
            count = GIGABYTE // size
            seconds = [value * count for value in times[size].values]
            how = f"{format_count(count)} times {took(size)}"
        else:
            less, largest = sorted(times)[-2:]
            ends = zip(times[less].values, times[largest].values, strict=True)
            # A pair in which the larger was not slower says nothing of a rate.
            seconds = [
                high + (GIGABYTE - largest) * (high - low) / (largest - less)
                for low, high in ends
                if high > low
            ]
            how = f"{format_bytes(largest, decimal=True)} took {took(largest)}, {format_bytes(less, decimal=True)} {took(less)}"
        if not seconds:
            return nothing(
                "s", "the larger file took no longer than the smaller: there is no rate to go on with"
            )
        return replace(Times(tuple(seconds)).cell(), why=f"estimate: {how}. {self.way.label}")

    def over_one(self, kind: str, size: int) -> Cell:
        """Many files over the single one."""
        many = self.estimate(kind, size)
        one = self.estimate("upload" if kind == "upload" else "download", GIGABYTE)
        if many.number is None or one.number is None:
            return nothing("ratio", many.why or one.why)
        return Cell("ratio", many.number / one.number, why=f"of both estimates. {self.way.label}")


def wanted() -> Iterator[str]:
    """What is to be installed for which rows."""
    if importlib.util.find_spec("requests") is None:
        yield "for the rows of the document's own program: pip install 'latlab[lessons]'"


def run(bench: Bench) -> Told:
    """Ten files in every way, then how many workers, how many files, who goes second, and what fails."""
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
        second = bench.arms("who goes second", _over(bench, far, lambda way: going_second(bench, plan, way)))
        failed = bench.attempt(_ERRORS, _over(bench, far, lambda way: failing(plan, way)))
        gigabyte = _gigabyte(bench, plan, far)
        real = bench.attempt("your URLs", lambda: of_the_user(bench)) if bench.urls else None
    native, why_native = probed(bench, "network.transfer", budget=plan.native_s)
    return say(
        plan,
        far,
        bench.why(_PATH),
        why_memory=bench.why(_FOLDER),
        ten=ten,
        control=control,
        core=core,
        library=library,
        sweep=sweep,
        swept=Arms(swept, "the loopback could not be used"),
        shapes=shapes,
        second=second,
        failed=failed or {},
        why_failed=bench.why(_ERRORS),
        gigabyte=gigabyte,
        why_gigabyte=bench.why(_GIGABYTE),
        native=native_cells(native, why_native),
        real=real or NO_TEN,
    )


def say(
    plan: Plan,
    far: Way | None,
    why_far: str = "",
    *,
    why_memory: str = "",
    ten: Ten = NO_TEN,
    control: Ten = NO_TEN,
    core: Ten = NO_TEN,
    library: Ten = NO_TEN,
    sweep: Arms[int] = NOT_TIMED,
    swept: Arms[int] = NOT_TIMED,
    shapes: Arms[str] = NOT_TIMED,
    second: Arms[str] = NOT_TIMED,
    failed: Mapping[str, list[Done]] = MappingProxyType({}),
    why_failed: str = "",
    gigabyte: Gigabyte | None = None,
    why_gigabyte: str = "",
    native: Mapping[str, Mapping[str, Cell]] = MappingProxyType({}),
    real: Ten = NO_TEN,
) -> Told:
    """What these figures say.

    Ten files over what lies between (`ten`), on the loopback (`control`), by latlab's own client (`core`) and by
    requests (`library`); by one to ten workers (`sweep`), also on the loopback (`swept`). The other figures are
    what functions below return. `why_memory`: why the ten files were not written; empty where they were.
    """

    def emulated(figure: Times | Cell) -> Cell:
        """With what must stand beside a figure that was measured over an emulated distance."""
        cell = figure.cell() if isinstance(figure, Times) else figure
        return cell if far is None or cell.value is None else replace(cell, why=far.label)

    return told(
        __name__,
        plan=plan,
        far=far,
        label=why_far if far is None else far.label,
        emulated=emulated,
        why_memory=why_memory,
        ten=ten,
        control=control,
        core=core,
        library=library,
        sweep=sweep,
        swept=swept,
        shapes=shapes,
        second=second,
        failed=failed,
        why_failed=why_failed,
        gigabyte=gigabyte,
        why_gigabyte=why_gigabyte,
        native=native,
        real=real,
    )


# ----------------------------------------------------------------------------------------------------------
# where, and what is done there


def _far(bench: Bench, plan: Plan, stack: contextlib.ExitStack) -> Way | None:
    """The path; where none can be had, a server that waits; None where there is not even a loopback."""

    def path() -> Way:
        if bench.plain:
            raise Cannot(
                f"{PLAIN}, and a path is the measuring core's: the server waits instead,"
                " which is valid for the time to the first byte only"
            )
        return stack.enter_context(distance.path(plan.rtt_s, plan.origin_s))

    waiting = distance.loopback(plan.origin_s, core=not bench.plain, wait_s=plan.rtt_s)
    return bench.attempt(_PATH, path) or bench.attempt(_WAITS, lambda: stack.enter_context(waiting))


def _folder(bench: Bench) -> str | None:
    """Where the ten files are written, as the document does; None where that cannot be: they stay in memory then."""

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
            raise Cannot(bench.why(_WAITS) or bench.why(_CONTROL) or "there is no network to do it over")
        return work(way)

    return there


def _urls(way: Way, size: int, count: int = FILES, *, upload: bool = False) -> dict[str, str]:
    """Names, and where files of that size come from or go to."""
    names = NAMES if count == FILES else [f"file_{number}" for number in range(count)]
    return dict.fromkeys(names, f"{way.files}/sink" if upload else f"{way.files}/bytes/{size}")


def _transferred(
    bench: Bench,
    transfer: Callable[..., tuple[float, list[Done]]],
    arms: Mapping[str, Mapping[str, Any]],
    rounds: int,
) -> Ten:
    """Transfers as each arm asks, in turns."""
    times: dict[str, list[float]] = {name: [] for name in arms}
    done: dict[str, list[Done]] = {}
    orders = []
    for name in bench.turns(arms, rounds):
        seconds, files = transfer(**arms[name])
        times[name].append(seconds)
        done.setdefault(name, files)
        if name == "pool":
            orders.append(tuple(each["name"] for each in files))
    return Ten(_times(times), done, tuple(orders))


def _times(found: Mapping[K, list[float]]) -> dict[K, Times]:
    return {name: Times(tuple(values)) for name, values in found.items()}


def ten_files(bench: Bench, plan: Plan, way: Way, folder: str | None) -> Ten:
    """Ten files one after another and by six, with new connections and with kept ones."""
    # What only the first transfer of a process pays is nobody's.
    way.must(_urls(way, 1), workers=POOL)
    arms: dict[str, dict[str, Any]] = {
        "sequential": {"by": "urllib"},
        "pool": {"by": "urllib", "workers": POOL},
        "sequential_kept": {"by": "kept"},
        "pool_kept": {"by": "kept", "workers": POOL},
    }
    size = plan.file_bytes
    transfer = partial(way.must, _urls(way, size), file_bytes=size, folder=folder)
    return _transferred(bench, transfer, arms, plan.rounds if way.kind != "loopback" else max(plan.rounds, 6))


def by_requests(bench: Bench, plan: Plan, way: Way, folder: str | None) -> Ten:
    """The document's own program: requests, and a pool of six.

    Raises:
        Cannot: requests is not installed.
    """
    if not way.client.ask({"has": {"package": "requests"}}):
        raise Cannot("requests is not installed beside this Python: pip install 'latlab[lessons]'")
    size = plan.file_bytes
    transfer = partial(way.must, _urls(way, size), by="requests", file_bytes=size, folder=folder)
    transfer(workers=POOL)
    return _transferred(bench, transfer, {"sequential": {}, "pool": {"workers": POOL}}, plan.rounds)


def by_core(bench: Bench, plan: Plan, way: Way) -> Ten:
    """The native arm: the core's own client, on the same path, from the same server.

    Raises:
        Cannot: only the plain arm was asked for.
    """
    if bench.plain:
        raise Cannot(PLAIN)
    arms = {
        "sequential": (1, False),
        "pool": (POOL, False),
        "sequential_kept": (1, True),
        "pool_kept": (POOL, True),
    }
    times: dict[str, list[float]] = {name: [] for name in arms}
    phases: dict[str, dict[str, list[float]]] = {name: {} for name in arms}
    way.by_core(1, POOL, POOL, kept=False)
    for name in bench.turns(arms, plan.rounds):
        workers, kept = arms[name]
        seconds, stamps = way.by_core(plan.file_bytes, FILES, workers, kept=kept)
        times[name].append(seconds)
        for each in stamps:
            for phase, took in phases_of(each).items():
                phases[name].setdefault(phase, []).append(took)
    return Ten(_times(times), phases={name: _times(each) for name, each in phases.items()})


def phases_of(stamps: Stamps) -> dict[str, float]:
    """Seconds of each phase that there was."""
    ends = (
        ("connect", stamps["connected"]),
        ("request", stamps["requested"]),
        ("first_byte", stamps["first_byte"]),
        ("last_byte", stamps["last_byte"]),
    )
    found, last = {}, stamps["begun"]
    for name, end in ends:
        # What there was not has no time: a kept connection is not opened.
        if end > 0:
            found[name] = (end - last) * 1e-9
            last = end
    return found


def by_workers(bench: Bench, plan: Plan, way: Way) -> dict[int, Times]:
    """Seconds of ten files by one to ten workers."""
    transfer = partial(way.must, _urls(way, plan.file_bytes), file_bytes=plan.file_bytes)
    transfer(workers=FILES)
    arms = {str(workers): {"workers": workers} for workers in range(1, FILES + 1)}
    found = _transferred(bench, transfer, arms, plan.sweep)
    return {int(workers): times for workers, times in found.times.items()}


def by_shape(bench: Bench, plan: Plan, way: Way) -> Mapping[str, Times]:
    """The same bytes in one file, in ten and in many, both ways; and ten by a pool: `download_many`."""

    def arm(count: int, kind: str, workers: int | None = None) -> dict[str, Any]:
        size, upload = plan.total // count, kind == "upload"
        urls = _urls(way, size, count, upload=upload)
        return {"urls": urls, "file_bytes": size, "upload": upload, "workers": workers}

    counts, kinds = {"one": 1, "ten": FILES, "many": plan.many}, ("download", "upload")
    arms = {f"{kind}_{name}": arm(count, kind) for kind in kinds for name, count in counts.items()}
    arms |= {f"{kind}_pool": arm(FILES, kind, POOL) for kind in reversed(kinds)}
    return _transferred(bench, way.must, arms, plan.shapes).times


def going_second(bench: Bench, plan: Plan, way: Way) -> dict[str, Times]:
    """Ten files from a server whose cache is cold for who goes first and warm for who goes second: `pool_warm`."""
    urls = {name: f"{way.tricks}/cached/{plan.file_bytes}/{name}" for name in NAMES}
    found: dict[str, list[float]] = {}
    # The document's order, and the other one.
    for order in bench.turns((("sequential", "pool"), ("pool", "sequential")), plan.shapes):
        way.must({"forget": f"{way.tricks}/forget"})
        for state, name in zip(("cold", "warm"), order, strict=True):
            workers = POOL if name == "pool" else None
            seconds, _ = way.must(urls, workers=workers, file_bytes=plan.file_bytes)
            found.setdefault(f"{name}_{state}", []).append(seconds)
    return _times(found)


def failing(plan: Plan, way: Way) -> dict[str, list[Done]]:
    """Ten files by a pool, three of which fail, each handled by itself; and a 404 as the document's program takes it.

    By `urllib`, by `requests` and `as_published`, the latter two where requests is installed.
    """
    urls = {
        name: f"{way.tricks}/{FAULTS[name]}" if name in FAULTS else f"{way.tricks}/bytes/{plan.file_bytes}"
        for name in NAMES
    }

    def pool(by: str) -> list[Done]:
        size, patience = plan.file_bytes, plan.silence_s
        return way.transfer(urls, by=by, workers=POOL, file_bytes=size, patience=patience)[1]

    # The others are to come: where they do not, nothing is learnt from those that fail on purpose.
    way.must({name: url for name, url in urls.items() if name not in FAULTS}, file_bytes=plan.file_bytes)
    found = {"urllib": pool("urllib")}
    if way.client.ask({"has": {"package": "requests"}}):
        found["requests"] = pool("requests")
        missing = {"file_12": urls["file_12"]}
        found["as_published"] = way.transfer(missing, by="as-published", patience=plan.silence_s)[1]
    return found


def _gigabyte(bench: Bench, plan: Plan, far: Way | None) -> Gigabyte | None:
    """On a path with a rate, which is what a gigabyte is about; where there is none, over what there is."""
    if far is not None and far.kind == "waits":
        # What a large file takes is exactly what such a server leaves out.
        bench.lacks(_GIGABYTE, f"nothing can be concluded for it ({far.label})")
        return None
    with contextlib.ExitStack() as stack:
        way = far
        if far is not None and bench.size != "small":
            limited = distance.path(plan.rtt_s, 0.0, RATE_BIT_PER_S)
            way = bench.attempt("1 GB at 200 Mbit/s", lambda: stack.enter_context(limited)) or far
        return bench.attempt(_GIGABYTE, _over(bench, way, lambda found: single_files(bench, plan, found)))


def single_files(bench: Bench, plan: Plan, way: Way) -> Gigabyte:
    """What one file of each size takes."""

    def arm(kind: str, size: int) -> Callable[[], float]:
        def once() -> float:
            count = _OF_EACH[size]
            if kind == "pool":
                count = 2 * POOL if size < 1_000_000 else POOL
                seconds, _ = way.must(_urls(way, size, count), workers=POOL, file_bytes=size)
                return seconds / count
            if kind == "kept":
                # The first opens the connection and its window.
                _, done = way.must(_urls(way, size, count + 1), by="kept", file_bytes=size)
                return (done[-1]["ended"] - done[0]["ended"]) / count
            upload = kind == "upload"
            urls = _urls(way, size, count, upload=upload)
            return way.must(urls, file_bytes=size, upload=upload)[0] / count

        return once

    some = tuple(size for size in plan.sizes if size <= 1_000_000)
    kinds = {"download": plan.sizes, "upload": plan.sizes, "kept": some, "pool": some}
    arms = {f"{kind} {size}": arm(kind, size) for kind, sizes in kinds.items() for size in sizes}
    found = bench.times(arms, 2)
    return Gigabyte(
        way, {kind: {size: found[f"{kind} {size}"] for size in sizes} for kind, sizes in kinds.items()}
    )


def of_the_user(bench: Bench) -> Ten:
    """The user's URLs, each fetched four times: pool and sequence, A B B A.

    Raises:
        Cannot: a file could not be fetched in any round.
    """
    urls = {f"url_{number}": url for number, url in enumerate(bench.urls, 1)}
    with distance.real() as way:
        arms: dict[str, dict[str, int]] = {"pool": {"workers": POOL}, "sequential": {}}
        found = _transferred(bench, partial(way.transfer, urls), arms, 2)
    failed = {each["name"]: each["error"] for files in found.done.values() for each in files if each["error"]}
    if len(failed) == len(urls):
        raise Cannot(f"none of them could be fetched: {clean(next(iter(failed.values())), most=200)}")
    return found


# ----------------------------------------------------------------------------------------------------------
# what follows from it


def most(workers: int) -> float:
    """How many times as fast ten equal files can be by so many workers: they take whole turns."""
    return FILES / math.ceil(FILES / workers)


def beyond(sweep: Mapping[int, Times]) -> dict[int, bool]:
    """How many workers were faster than turns allow, and whether by more than the rounds differ."""
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
    records: dict[str | None, Record] = {}
    if native is not None:
        asked: dict[str, Any] = {"path": "loopback", "concurrency": POOL, "file_bytes": 100 << 10}
        found = native.select("network.transfer", operation="ten-files", engine="latlab", **asked)
        records = {record.point.connections: record for record in found if record.value is not None}
    cells = {}
    for connections in ("new", "kept"):
        figure = partial(_finding, records.get(connections), why=why)
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
    low, high = (end * scale for end in between)
    return Cell(unit, here, min(low, here), max(high, here), 6, why="median of the sets, 95 % interval")


def known(speed_up: Cell) -> Cell:
    """A speed-up whose interval holds 1, or that is more than ten files allow, is none."""
    if speed_up.number is None:
        return speed_up
    if speed_up.number > most(POOL) or (speed_up.low or 0.0) < 1.0 < (speed_up.high or 0.0):
        return nothing(
            "ratio", f"not known: {speed_up.shown}, and ten files by six allow {most(POOL):g} at most"
        )
    return speed_up
