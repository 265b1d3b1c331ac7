"""Downloads and uploads: one after another or by a pool, one large file or many small ones."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from latlab.lessons import distance, words
from latlab.lessons.bench import PLAIN, Bench, Cannot, Times, nothing
from latlab.lessons.distance import Stamps, Way
from latlab.lessons.model import (
    Answer,
    Cell,
    Column,
    Guess,
    Mark,
    Misled,
    Original,
    Picture,
    Published,
    Row,
    Table,
    Told,
    Unit,
    written,
)
from latlab.lessons.native import why_not
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns

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
FILES: Final = 10
POOL: Final = 6
NAMES: Final = tuple(f"file_{number}" for number in range(10, 20))
GIGABYTE: Final = 1_000_000_000
#: “good internet bandwidth”, for the gigabyte.
RATE_BIT_PER_S: Final = 200_000_000
_PATH, _CONTROL, _GIGABYTE_PATH = "a path with a delay", "the loopback (the control)", "1 GB at 200 Mbit/s"
_TEN, _SWEEP, _SHAPES = "ten files", "ten files by one to ten workers", "one large file against many"
_GIGABYTE, _ORDER, _ERRORS = "what 1 GB would take", "who goes second", "files that fail"
_REQUESTS, _CORE, _REAL = "the same with requests", "the same by latlab's own client", "your URLs"
_NATIVE = "the native arm (probe network.transfer)"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything.

    Attributes:
        rtt_s: Of the path.
        file_bytes: Of one of the ten.
        many: Files that hold the same as four of the ten, where that is a lot of small ones.
        rounds: Of ten files.
        sweep: Rounds of one to ten workers.
        shapes: Rounds of one large against many.
        sizes: Of the files from which 1 GB is estimated.
        origin_s: What a server's cache takes for what it does not have.
        patience_s: After which a server that says nothing is given up.
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


PLANS: Final = {
    "small": Plan(0.005, 10_000, 20, 2, 2, 1, (10_000, 100_000, 1_000_000), 0.015, 0.6, 1.5),
    "default": Plan(0.02, 40_000, 25, 3, 3, 2, (10_000, 100_000, 1_000_000, 10_000_000), 0.06, 0.5, 3.0),
    # The document gives no size. Those who keep its files count 164 MB for 600 of them (snewpy, issue 262).
    "original": Plan(0.02, 273_000, 100, 8, 5, 3, (10_000, 100_000, 1_000_000, 10_000_000), 0.1, 2.0, 20.0),
}


@dataclass(frozen=True, slots=True)
class Ten:
    """Ten files in each way: seconds, the first round's files by way, and by the core's client the phases of a file."""

    times: Mapping[str, Times]
    done: Mapping[str, list[Done]]
    orders: tuple[tuple[str, ...], ...] = ()
    phases: Mapping[str, Mapping[str, Times]] = field(default_factory=dict)


def run(bench: Bench) -> Told:
    """Ten files in every way, then how many workers, how many files, who goes second, and what fails."""
    plan = PLANS[bench.size]
    with contextlib.ExitStack() as stack:
        far = _far(bench, plan, stack)
        near = bench.attempt(
            _CONTROL,
            lambda: stack.enter_context(distance.loopback(plan.origin_s, core=not bench.plain)),
        )
        folder = _folder(bench)
        ten = _over(bench, _TEN, far, lambda way: ten_files(bench, plan, way, folder))
        control = _over(bench, f"{_TEN}, {_CONTROL}", near, lambda way: ten_files(bench, plan, way, folder))
        core = _over(bench, _CORE, far, lambda way: by_core(bench, plan, way))
        library = _over(bench, _REQUESTS, far, lambda way: by_requests(bench, plan, way, folder))
        sweep = _over(bench, _SWEEP, far, lambda way: by_workers(bench, plan, way)) or {}
        swept = _over(bench, f"{_SWEEP}, {_CONTROL}", near, lambda way: by_workers(bench, plan, way)) or {}
        shapes = _over(bench, _SHAPES, far, lambda way: by_shape(bench, plan, way)) or {}
        second = _over(bench, _ORDER, far, lambda way: going_second(bench, plan, way)) or {}
        failed = _over(bench, _ERRORS, far, lambda way: failing(plan, way)) or {}
        gigabyte = _gigabyte(bench, plan, far)
        real = bench.attempt(_REAL, lambda: of_the_user(bench)) if bench.urls else None
    native = bench.native(
        _NATIVE,
        "network.transfer",
        profile="quick",
        budget=plan.native_s,
    )
    why_native = why_not(native, "network.transfer", bench.why(_NATIVE))
    label = far.label if far is not None else bench.why(_PATH)
    arms = {"python": (ten, _TEN), "requests": (library, _REQUESTS), "native": (core, _CORE)}
    tables = [
        original(plan, {name: (found, bench.why(what)) for name, (found, what) in arms.items()}, far, label),
        order_table(ten, bench.why(_TEN)),
        worker_table(plan, sweep, swept, bench.why(_SWEEP), far),
        kept_table(
            ten,
            core,
            control,
            {
                "python": bench.why(_TEN),
                "native": bench.why(_CORE),
                "loopback": bench.why(f"{_TEN}, {_CONTROL}"),
            },
            far,
        ),
        shape_table(plan, shapes, bench.why(_SHAPES), far),
        second_table(plan, second, bench.why(_ORDER), far),
        error_table(plan, failed, bench.why(_ERRORS)),
        gigabyte_table(gigabyte, bench.why(_GIGABYTE)),
        phase_table(core, bench.why(_CORE), far),
        native_table(native, why_native),
    ]
    if real is not None:
        tables.insert(1, real_table(real))
    return Told(
        answer=answer(ten, shapes, gigabyte, far),
        tables=tuple(tables),
        pictures=tuple(pictures(ten, sweep, swept, label)),
        reasons=tuple(reasons(plan, ten, control, sweep, shapes, far, label)),
        misled=tuple(misled(plan, ten, second, failed, far)),
        answers=tuple(answers(ten, gigabyte, failed)),
        further=(
            "latlab lesson downloads --url URL --url URL ...: files of a server whose owner agrees, each fetched four times",
            "latlab measure --only network.transfer --delay 20 --rate 200 --budget 2min: the model of one transfer, and how many should be under way",
            "python downloads.py URL URL ...: the program above with your own files",
            "tar, zip or rsync for what belongs together: one connection, one stream",
            "latlab lesson small-files: the same fixed cost a file, on a disk",
        ),
        charts=("network_phases",),
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

    way = bench.attempt(_PATH, path)
    if way is not None:
        return way
    return bench.attempt(
        "a server that waits",
        lambda: stack.enter_context(
            distance.loopback(plan.origin_s, core=not bench.plain, wait_s=plan.rtt_s)
        ),
    )


def _folder(bench: Bench) -> str | None:
    """Where downloads are written, as the document does; None where that cannot be: they stay in memory."""

    def folder() -> str:
        bench.room(1_000_000_000)
        place = bench.folder / "downloads"
        place.mkdir()
        return str(place)

    return bench.attempt("writing the downloads to files (they stay in memory)", folder)


def _over(bench: Bench, what: str, way: Way | None, work: Callable[[Way], T]) -> T | None:
    """Some work over a way, or why there is none."""

    def there() -> T:
        if way is None:
            raise Cannot(
                bench.why("a server that waits") or bench.why(_CONTROL) or "there is no network to do it over"
            )
        return work(way)

    return bench.attempt(what, there)


def _urls(way: Way, size: int, count: int = FILES) -> dict[str, str]:
    names = NAMES if count == FILES else [f"file_{number}" for number in range(count)]
    return dict.fromkeys(names, f"{way.files}/bytes/{size}")


def ten_files(bench: Bench, plan: Plan, way: Way, folder: str | None) -> Ten:
    """Ten files one after another and by six, with new connections and with kept ones."""
    done: dict[str, list[Done]] = {}
    orders: list[tuple[str, ...]] = []

    def arm(name: str, by: str, workers: int | None) -> Callable[[], float]:
        def once() -> float:
            seconds, files = way.must(
                _urls(way, plan.file_bytes),
                by=by,
                workers=workers,
                file_bytes=plan.file_bytes,
                folder=folder,
            )
            done.setdefault(name, files)
            if name == "pool":
                orders.append(tuple(each["name"] for each in files))
            return seconds

        return once

    arms = {
        "sequential": arm("sequential", "urllib", None),
        "pool": arm("pool", "urllib", POOL),
        "sequential_kept": arm("sequential_kept", "kept", None),
        "pool_kept": arm("pool_kept", "kept", POOL),
    }
    # What only the first transfer of a process pays is nobody's.
    way.must(_urls(way, 1), workers=POOL)
    times = bench.times(arms, plan.rounds if way.kind != "loopback" else max(plan.rounds, 6))
    return Ten(times, done, tuple(orders))


def by_core(bench: Bench, plan: Plan, way: Way) -> Ten:
    """The native arm: the core's own client, on the same path, from the same server.

    Raises:
        Cannot: only the plain arm was asked for.
    """
    if bench.plain:
        raise Cannot(PLAIN)
    phases: dict[str, dict[str, list[float]]] = {}

    def arm(name: str, workers: int, *, kept: bool) -> Callable[[], float]:
        def once() -> float:
            seconds, stamps = way.by_core(plan.file_bytes, FILES, workers, kept=kept)
            own = phases.setdefault(name, {})
            for each in stamps:
                for phase, seconds_of in phases_of(each).items():
                    own.setdefault(phase, []).append(seconds_of)
            return seconds

        return once

    arms = {
        "sequential": arm("sequential", 1, kept=False),
        "pool": arm("pool", POOL, kept=False),
        "sequential_kept": arm("sequential_kept", 1, kept=True),
        "pool_kept": arm("pool_kept", POOL, kept=True),
    }
    way.by_core(1, POOL, POOL, kept=False)
    times = bench.times(arms, plan.rounds)
    found = {
        name: {phase: Times(tuple(values)) for phase, values in own.items()} for name, own in phases.items()
    }
    return Ten(times, {}, (), found)


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


def by_requests(bench: Bench, plan: Plan, way: Way, folder: str | None) -> Ten:
    """The document's own program: requests, and a pool of six.

    Raises:
        Cannot: requests is not installed.
    """
    if not way.client.ask({"has": {"package": "requests"}}):
        raise Cannot("requests is not installed beside this Python: pip install requests")

    def arm(workers: int | None) -> Callable[[], float]:
        return lambda: way.must(
            _urls(way, plan.file_bytes),
            by="requests",
            workers=workers,
            file_bytes=plan.file_bytes,
            folder=folder,
        )[0]

    arm(POOL)()
    return Ten(bench.times({"sequential": arm(None), "pool": arm(POOL)}, plan.rounds), {})


def by_workers(bench: Bench, plan: Plan, way: Way) -> dict[int, Times]:
    """Seconds of ten files by one to ten workers."""

    def arm(workers: int) -> Callable[[], float]:
        return lambda: way.must(_urls(way, plan.file_bytes), workers=workers, file_bytes=plan.file_bytes)[0]

    arm(FILES)()
    found = bench.times({str(workers): arm(workers) for workers in range(1, FILES + 1)}, plan.sweep)
    return {int(workers): times for workers, times in found.items()}


def by_shape(bench: Bench, plan: Plan, way: Way) -> dict[str, Times]:
    """The same bytes in one file, in ten and in many, both ways; and up by a pool."""

    def arm(count: int, *, upload: bool, workers: int | None = None) -> Callable[[], float]:
        size = plan.total // count
        urls = _urls(way, size, count)
        if upload:
            urls = dict.fromkeys(urls, f"{way.files}/sink")
        return lambda: way.must(urls, file_bytes=size, upload=upload, workers=workers)[0]

    counts = {"one": 1, "ten": FILES, "many": plan.many}
    arms = {f"download_{name}": arm(count, upload=False) for name, count in counts.items()}
    arms |= {f"upload_{name}": arm(count, upload=True) for name, count in counts.items()}
    arms |= {"upload_pool": arm(FILES, upload=True, workers=POOL)}
    arms |= {"download_pool": arm(FILES, upload=False, workers=POOL)}
    return bench.times(arms, plan.shapes)


def going_second(bench: Bench, plan: Plan, way: Way) -> dict[str, Times]:
    """Ten files from a server whose cache is cold for who goes first and warm for who goes second."""
    urls = {name: f"{way.tricks}/cached/{plan.file_bytes}/{name}" for name in NAMES}
    found: dict[str, list[float]] = {}

    def pair(first: int | None, second: int | None) -> None:
        way.must({"forget": f"{way.tricks}/forget"})
        for state, workers in (("cold", first), ("warm", second)):
            seconds, _ = way.must(urls, workers=workers, file_bytes=plan.file_bytes)
            found.setdefault(f"{'sequential' if workers is None else 'pool'}_{state}", []).append(seconds)

    def took(first: int | None, second: int | None) -> Callable[[], float]:
        def once() -> float:
            pair(first, second)
            return 0.0

        return once

    bench.times({"document": took(None, POOL), "reversed": took(POOL, None)}, plan.shapes)
    return {name: Times(tuple(values)) for name, values in found.items()}


#: What three of the ten do.
FAULTS: Final = {"file_12": "missing", "file_15": "reset", "file_17": "silent"}


def failing(plan: Plan, way: Way) -> dict[str, list[Done]]:
    """Ten files by a pool, three of which fail, each handled by itself; and a 404 as the document's program takes it."""
    urls = {
        name: f"{way.tricks}/{FAULTS[name]}" if name in FAULTS else f"{way.tricks}/bytes/{plan.file_bytes}"
        for name in NAMES
    }
    patience = plan.patience_s + 5 * plan.rtt_s
    # The others are to come: where they do not, nothing is learnt from those that fail on purpose.
    way.must({name: url for name, url in urls.items() if name not in FAULTS}, file_bytes=plan.file_bytes)
    found = {"urllib": way.transfer(urls, workers=POOL, file_bytes=plan.file_bytes, patience=patience)[1]}
    if way.client.ask({"has": {"package": "requests"}}):
        found["requests"] = way.transfer(
            urls, by="requests", workers=POOL, file_bytes=plan.file_bytes, patience=patience
        )[1]
        missing = {"file_12": urls["file_12"]}
        found["as_published"] = way.transfer(missing, by="as-published", patience=patience)[1]
    return found


@dataclass(frozen=True, slots=True)
class Gigabyte:
    """Seconds of one file by its size: fetched anew, on a kept connection, sent, and by a pool of six."""

    way: Way
    each: Mapping[str, Mapping[int, Times]]


#: How many files a figure of one comes from.
_OF_EACH: Final = {10_000: 3, 100_000: 2, 1_000_000: 1, 10_000_000: 1}


def _gigabyte(bench: Bench, plan: Plan, far: Way | None) -> Gigabyte | None:
    """On a path with a rate, which is what a gigabyte is about; where there is none, over what there is."""
    if far is not None and far.kind == "waits":
        # What a large file takes is exactly what such a server leaves out.
        bench.lacks(_GIGABYTE, f"nothing can be concluded for it ({far.label})")
        return None
    with contextlib.ExitStack() as stack:
        way = far
        if far is not None and far.kind == "path" and bench.size != "small":
            way = (
                bench.attempt(
                    _GIGABYTE_PATH,
                    lambda: stack.enter_context(distance.path(plan.rtt_s, 0.0, RATE_BIT_PER_S)),
                )
                or far
            )
        return _over(bench, _GIGABYTE, way, lambda found: single_files(bench, plan, found))


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
            urls = _urls(way, size, count)
            if kind == "upload":
                urls = dict.fromkeys(urls, f"{way.files}/sink")
            return way.must(urls, file_bytes=size, upload=kind == "upload")[0] / count

        return once

    kinds = {
        "download": plan.sizes,
        "upload": plan.sizes,
        "kept": [size for size in plan.sizes if size <= 1_000_000],
        "pool": [size for size in plan.sizes if size <= 1_000_000],
    }
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
    done: dict[str, list[Done]] = {}
    orders: list[tuple[str, ...]] = []
    with distance.real() as way:

        def arm(name: str, workers: int | None) -> Callable[[], float]:
            def once() -> float:
                seconds, files = way.transfer(urls, workers=workers)
                done.setdefault(name, files)
                if workers is not None:
                    orders.append(tuple(each["name"] for each in files))
                return seconds

            return once

        times = bench.times({"pool": arm("pool", POOL), "sequential": arm("sequential", None)}, 2)
    failed = {each["name"]: each["error"] for files in done.values() for each in files if each["error"]}
    if len(failed) == len(urls):
        raise Cannot(f"none of them could be fetched: {clean(next(iter(failed.values())), most=200)}")
    return Ten(times, done, tuple(orders))


# ----------------------------------------------------------------------------------------------------------
# what is told


def most(workers: int) -> float:
    """How many times as fast ten equal files can be by so many workers: they take whole turns."""
    return FILES / math.ceil(FILES / workers)


def _labelled(cell: Cell, way: Way | None) -> Cell:
    """With what must stand beside a figure that was measured over an emulated distance."""
    return cell if way is None or way.kind not in {"path", "waits"} else replace(cell, why=way.label)


def _begun(label: str) -> str:
    """As the beginning of a sentence."""
    return label[:1].upper() + label[1:]


def original(plan: Plan, arms: Mapping[str, tuple[Ten | None, str]], far: Way | None, label: str) -> Table:
    """Both times that the document prints, their ratio, and how large it can be."""
    titles = {
        "sequential": "sequentialDownload",
        "pool": f"parallelDownload, pool of {POOL}",
        "speed_up_ratio": "sequential over parallel",
    }
    rows = []
    for name, title in titles.items():
        cells = {}
        for arm, (found, why) in arms.items():
            published = PUBLISHED[name] if arm == "python" else None
            unit: Unit = "ratio" if name.endswith("ratio") else "s"
            if found is None:
                cells[arm] = nothing(unit, why, published)
            elif unit == "ratio":
                cells[arm] = found.times["sequential"].over(found.times["pool"], published=published)
            else:
                cells[arm] = found.times[name].cell(published=published)
            if found is not None:
                cells[arm] = _labelled(cells[arm], far)
        rows.append(Row(name, title, cells))
    ceiling = Cell(
        "ratio", most(POOL), why="arithmetic: ten equal files by six take two turns, 10 / ceil(10 / 6)"
    )
    rows.append(Row("most_ratio", "the most that ten equal files by six allow", {"python": ceiling}))
    heads = {
        "python": "Python, urllib",
        "requests": "Python, requests",
        "native": "native",
    }
    served = f" Files of {format_bytes(plan.file_bytes, decimal=True)}, from {far.served_by}." if far else ""
    return Table(
        "original",
        "Ten files, one after another and by a pool of six",
        "what",
        tuple(Column(arm, heads[arm]) for arm in arms),
        tuple(rows),
        original=True,
        note=f"Medians (smallest – largest), A B B A, a new connection for each file. {_begun(label)}.{served}"
        " The document gives neither the size of its files nor how far away they were.",
    )


def order_table(ten: Ten | None, why: str) -> Table:
    """In which order the files were done: ours and the printed one."""
    rows = []
    for place in range(FILES):
        cells = {}
        for way in ("sequential", "pool"):
            here = ten.done[way][place]["name"] if ten is not None else None
            cells[way] = Cell("text", here, why="the first round") if here else nothing("text", why)
            cells[f"{way}_published"] = Cell("text", PUBLISHED_ORDER[way][place], why="as printed")
        rows.append(Row(f"place_{place + 1}", str(place + 1), cells))
    cells = {}
    for way in ("sequential", "pool"):
        names = [each["name"] for each in ten.done[way]] if ten is not None else []
        cells[way] = (
            Cell("count", float(overtaken(names)), why="the first round") if names else nothing("count", why)
        )
        cells[f"{way}_published"] = Cell(
            "count", float(overtaken(PUBLISHED_ORDER[way])), why="from the printed order"
        )
    rows.append(Row("overtaken", "files that one begun later overtook", cells))
    return Table(
        "order",
        "The order of completion",
        "place",
        (
            Column("sequential", "sequential"),
            Column("sequential_published", "sequential, published"),
            Column("pool", "pool"),
            Column("pool_published", "pool, published"),
        ),
        tuple(rows),
        original=True,
        note="The pool starts its files in order; which is done first is chance, here as there.",
    )


def overtaken(names: tuple[str, ...] | list[str]) -> int:
    """How many files were done after one that was begun later (their numbers are in the order of the start)."""
    numbers = [int("".join(filter(str.isdigit, name.partition(".")[0]))) for name in names]
    return sum(max(numbers[:place], default=0) > number for place, number in enumerate(numbers))


def _speed_up(times: Mapping[int, Times], workers: int) -> Cell:
    return times[1].over(times[workers])


def worker_table(
    plan: Plan, sweep: Mapping[int, Times], swept: Mapping[int, Times], why: str, far: Way | None
) -> Table:
    """One to ten workers."""
    rows = []
    for workers in range(1, FILES + 1):
        cells = {
            "seconds": _labelled(sweep[workers].cell(), far) if sweep else nothing("s", why),
            "speed_up_ratio": _labelled(_speed_up(sweep, workers), far) if sweep else nothing("ratio", why),
            "most_ratio": Cell("ratio", most(workers), why="arithmetic: 10 / ceil(10 / workers)"),
            "loopback_ratio": _speed_up(swept, workers)
            if swept
            else nothing("ratio", "the loopback could not be used"),
        }
        rows.append(Row(f"w{workers}", str(workers), cells))
    return Table(
        "workers",
        f"Ten files of {format_bytes(plan.file_bytes, decimal=True)} by one to ten workers",
        "workers",
        (
            Column("seconds", "all ten"),
            Column("speed_up_ratio", "times as fast as one"),
            Column("most_ratio", "at most"),
            Column("loopback_ratio", "the same on the loopback"),
        ),
        tuple(rows),
        note="Ten files by w workers take ceil(10 / w) turns: five are as good as nine, and the tenth doubles it. Beyond “at most” a figure is noise.",
    )


_KEPT: Final = {
    "sequential": "one after another, new connections",
    "sequential_kept": "one after another, one kept connection",
    "pool": "pool of 6, new connections",
    "pool_kept": "pool of 6, one kept connection a worker",
}


def kept_table(
    ten: Ten | None, core: Ten | None, control: Ten | None, whys: Mapping[str, str], far: Way | None
) -> Table:
    """What keeping a connection saves, and what a comparison of new with kept would look like."""
    arms = {"python": ten, "native": core, "loopback": control}
    places = {"python": far, "native": far, "loopback": None}
    ratios = {
        "new_ratio": ("new: one after another over pool", "sequential", "pool"),
        "kept_ratio": ("one after another: new over kept", "sequential", "sequential_kept"),
        "pool_kept_ratio": ("kept: one after another over pool", "sequential_kept", "pool_kept"),
        "mixed_ratio": ("new, one after another, over kept, pool", "sequential", "pool_kept"),
    }

    def row(name: str, title: str, above: str, below: str | None = None) -> Row:
        cells = {}
        for arm, found in arms.items():
            if found is None:
                cells[arm] = nothing("ratio" if below else "s", whys[arm])
            else:
                times = found.times[above]
                cells[arm] = _labelled(times.over(found.times[below]) if below else times.cell(), places[arm])
        return Row(name, title, cells)

    rows = [row(name, title, name) for name, title in _KEPT.items()]
    rows += [row(name, title, above, below) for name, (title, above, below) in ratios.items()]
    return Table(
        "connections",
        "New connections, and kept ones",
        "ten files",
        (Column("python", "Python"), Column("native", "native"), Column("loopback", "loopback (control)")),
        tuple(rows),
        note="Kept: one connection for each worker, opened within the time that is given.",
    )


_PHASES: Final = {
    "connect": "open a connection",
    "request": "send the request",
    "first_byte": "wait for the first byte",
    "last_byte": "until the last byte",
}


def phase_table(core: Ten | None, why: str, far: Way | None) -> Table:
    """Where the time of one file goes, as the core's client stamps it."""
    rows = []
    for phase, title in _PHASES.items():
        cells = {}
        for way in ("sequential", "sequential_kept"):
            found = core.phases[way].get(phase) if core is not None else None
            cells[way] = (
                _labelled(found.cell(), far)
                if found is not None
                else nothing("s", why or "there is no such phase")
            )
        rows.append(Row(phase, title, cells))
    return Table(
        "phases",
        "One file, phase by phase (native arm)",
        "phase",
        (
            Column("sequential", "new connections"),
            Column("sequential_kept", "one kept connection"),
        ),
        tuple(rows),
        note="Medians (smallest – largest) over the files of all rounds, one after another. Of a kept connection one file in ten opens it.",
    )


def shape_table(plan: Plan, shapes: Mapping[str, Times], why: str, far: Way | None) -> Table:
    """The same total in one file and in many, down and up."""
    counts = {"one": 1, "ten": FILES, "many": plan.many}
    rows = []
    for name, count in counts.items():
        title = f"{format_count(count)} x {format_bytes(plan.total // count, decimal=True)}"
        cells = {
            way: _labelled(shapes[f"{way}_{name}"].cell(), far) if shapes else nothing("s", why)
            for way in ("download", "upload")
        }
        rows.append(Row(name, title, cells))
    cells = {
        way: _labelled(shapes[f"{way}_pool"].cell(), far) if shapes else nothing("s", why)
        for way in ("download", "upload")
    }
    rows.append(Row("pool", "ten by a pool of six", cells))
    pairs = {
        "many_ratio": (f"{format_count(plan.many)} over 1", "many", "one"),
        "ten_ratio": ("10 over 1", "ten", "one"),
        "pool_ratio": ("10 one after another over pool", "ten", "pool"),
    }
    for name, (title, above, below) in pairs.items():
        cells = {
            way: _labelled(shapes[f"{way}_{above}"].over(shapes[f"{way}_{below}"]), far)
            if shapes
            else nothing("ratio", why)
            for way in ("download", "upload")
        }
        rows.append(Row(name, title, cells))
    served = f" Uploads are POST /sink to {far.served_by}, which says how many bytes came." if far else ""
    return Table(
        "shapes",
        f"{format_bytes(plan.total, decimal=True)} in one file or in many",
        "what",
        (Column("download", "download"), Column("upload", "upload")),
        tuple(rows),
        note=f"A new connection for each file, one after another.{served}",
    )


_SECOND: Final = {
    "as_document_ratio": (
        "the document's order: sequential, cold, over pool, warm",
        "sequential_cold",
        "pool_warm",
    ),
    "reversed_ratio": ("the other order: sequential, warm, over pool, cold", "sequential_warm", "pool_cold"),
    "cold_ratio": ("both cold", "sequential_cold", "pool_cold"),
    "warm_ratio": ("both warm", "sequential_warm", "pool_warm"),
}


def second_table(plan: Plan, second: Mapping[str, Times], why: str, far: Way | None) -> Table:
    """What a comparison says when one side always goes second."""
    titles = {
        "sequential_cold": "one after another, first (cold)",
        "pool_warm": "pool of 6, second (warm)",
        "pool_cold": "pool of 6, first (cold)",
        "sequential_warm": "one after another, second (warm)",
    }
    rows = [
        Row(name, title, {"python": _labelled(second[name].cell(), far) if second else nothing("s", why)})
        for name, title in titles.items()
    ]
    for name, (title, above, below) in _SECOND.items():
        cell = _labelled(second[above].over(second[below]), far) if second else nothing("ratio", why)
        rows.append(
            Row(
                name,
                title,
                {
                    "python": replace(cell, published=PUBLISHED["speed_up_ratio"])
                    if name == "as_document_ratio"
                    else cell
                },
            )
        )
    return Table(
        "second",
        "Who goes second finds the server's cache warm",
        "ten files",
        (Column("python", "Python"),),
        tuple(rows),
        note=f"The server in plain Python waits {plan.origin_s * 1e3:g} ms for a file that its cache does not have, as a server that has to ask another one does; that wait is chosen, not measured anywhere.",
    )


def error_table(plan: Plan, failed: Mapping[str, list[Done]], why: str) -> Table:
    """What became of each of ten files, three of which fail."""
    what = {
        "missing": "answers 404",
        "reset": "resets the connection",
        "silent": "never answers",
    }
    rows = []
    for name in NAMES:
        cells: dict[str, Cell] = {}
        for library in ("urllib", "requests"):
            done = {each["name"]: each for each in failed.get(library, [])}
            reason = why or f"{library} is not installed beside this Python"
            if name in done:
                each = done[name]
                text = each["error"] or f"{format_bytes(each['size'], decimal=True)}, compared"
                cells[library] = Cell("text", clean(text, most=120))
                cells[f"{library}_s"] = Cell("s", each["ended"] - each["began"], why="once")
            else:
                cells[library], cells[f"{library}_s"] = nothing("text", reason), nothing("s", reason)
        rows.append(Row(name, f"{name}: {what.get(FAULTS.get(name, ''), 'is served')}", cells))
    for each in failed.get("as_published", []):
        text = each["error"] or f"no error: a file of {each['size']} bytes, which is the error page"
        cells = {
            "requests": Cell("text", clean(text, most=120)),
            "requests_s": Cell("s", each["ended"] - each["began"], why="once"),
        }
        rows.append(Row("as_published", "file_12, as the document's program takes it", cells))
    return Table(
        "errors",
        "Ten files by a pool of six, three of which fail",
        "file",
        (
            Column("urllib", "urllib"),
            Column("urllib_s", "after"),
            Column("requests", "requests"),
            Column("requests_s", "after"),
        ),
        tuple(rows),
        note=f"Each error belongs to its file, and the others come. Given up after {format_ns((plan.patience_s + 5 * plan.rtt_s) * 1e9)} without a word; without a time-out, as printed in the document, silence would last for ever.",
    )


_PARTS: Final = {1_000_000: "thousand", 100_000: "ten_thousand", 10_000: "hundred_thousand"}
_KINDS: Final = {
    "download": "download, new connections",
    "kept": "download, a kept connection",
    "pool": "download, pool of 6",
    "upload": "upload, new connections",
}


def gigabyte_table(found: Gigabyte | None, why: str) -> Table:
    """What 1 GB would take, from what one file of each size took."""
    rows = []
    for size in (GIGABYTE, *_PARTS):
        name = "one" if size == GIGABYTE else _PARTS[size]
        title = f"{format_count(GIGABYTE // size)} x {format_bytes(size, decimal=True)}"
        cells = {
            kind: _estimate(found, kind, size) if found else nothing("s", why)
            for kind in _KINDS
            if size != GIGABYTE or kind in {"download", "upload"}
        }
        rows.append(Row(name, title, cells))
    for size, name in _PARTS.items():
        cells = {
            kind: _many_over_one(found, kind, size) if found else nothing("ratio", why) for kind in _KINDS
        }
        rows.append(Row(f"{name}_ratio", f"{format_count(GIGABYTE // size)} over 1", cells))
    return Table(
        "gigabyte",
        "1 GB as one file or as thousands: an estimate",
        "files",
        tuple(Column(kind, title) for kind, title in _KINDS.items()),
        tuple(rows),
        note=(f"{_begun(found.way.label)}. " if found else "")
        + "Estimates: the time of one such file here, times their number (of a pool: the time of six or twelve over their number). "
        "For the single file, the largest that was measured, and the rest at the rate between the two largest. 1 GB itself was not sent.",
    )


def _estimate(found: Gigabyte, kind: str, size: int) -> Cell:
    times = found.each[kind]
    if size != GIGABYTE:
        count = GIGABYTE // size
        scaled = Times(tuple(value * count for value in times[size].values))
        return replace(
            scaled.cell(),
            why=f"estimate: {format_count(count)} times {format_ns(times[size].median * 1e9)}. {found.way.label}",
        )
    less, largest = sorted(times)[-2:]
    ends = zip(times[less].values, times[largest].values, strict=True)
    # A pair in which the larger was not slower says nothing of a rate.
    usable = [(low, high) for low, high in ends if high > low]
    if not usable:
        return nothing("s", "the larger file took no longer than the smaller: there is no rate to go on with")
    whole = Times(
        tuple(high + (GIGABYTE - largest) * (high - low) / (largest - less) for low, high in usable)
    )
    return replace(
        whole.cell(),
        why=f"estimate: {format_bytes(largest, decimal=True)} took {format_ns(times[largest].median * 1e9)},"
        f" {format_bytes(less, decimal=True)} {format_ns(times[less].median * 1e9)}. {found.way.label}",
    )


def _many_over_one(found: Gigabyte, kind: str, size: int) -> Cell:
    many = _estimate(found, kind, size)
    one = _estimate(found, "upload" if kind == "upload" else "download", GIGABYTE)
    if many.number is None or one.number is None:
        return nothing("ratio", many.why or one.why)
    return Cell("ratio", many.number / one.number, why=f"of both estimates. {found.way.label}")


def _sets(native: Run | None) -> dict[tuple[str, str], Record]:
    """The probe's own ten files, by path and connections."""
    if native is None:
        return {}
    return {
        (record.point.path or "", record.point.connections or ""): record
        for record in native.select("network.transfer")
        if record.point.operation == "ten-files"
        and record.point.engine == "latlab"
        and record.point.concurrency == POOL
        and record.point.file_bytes == 100 << 10
        and record.value is not None
    }


def native_table(native: Run | None, why: str) -> Table:
    """The probe's own control: ten files on the loopback, in sets of A B B A."""
    sets, rows = _sets(native), []
    for connections in ("new", "kept"):
        record = sets.get(("loopback", connections))
        cells: dict[str, Cell] = {}
        for name, unit in (("sequential", "s"), ("pool", "s"), ("speed_up", "ratio")):
            kind: Unit = "ratio" if unit == "ratio" else "s"
            column = "speed_up_ratio" if unit == "ratio" else name
            cells[column] = _finding(record, name, kind) or nothing(kind, why or "there was no time for it")
            if kind == "ratio":
                cells[column] = _known(cells[column])
        rows.append(Row(connections, f"{connections} connections", cells))
    return Table(
        "native",
        "Ten files of 100 KiB on the loopback (probe network.transfer)",
        "ten files",
        (
            Column("sequential", "sequential"),
            Column("pool", "pool of 6"),
            Column("speed_up_ratio", "sequential over pool"),
        ),
        tuple(rows),
        note="Sets of A B B A, medians with a 95 % interval where there are sets enough. There is next to nothing to wait for: a set takes a millisecond, and who gets a CPU when decides.",
    )


def _known(speed_up: Cell) -> Cell:
    """A speed-up whose interval holds 1, or that is more than ten files allow, is none."""
    if speed_up.number is None:
        return speed_up
    if speed_up.number > most(POOL) or (speed_up.low or 0.0) < 1.0 < (speed_up.high or 0.0):
        return nothing(
            "ratio", f"not known: {speed_up.shown}, and ten files by six allow {most(POOL):g} at most"
        )
    return speed_up


def _finding(record: Record | None, what: str, kind: Unit) -> Cell | None:
    if record is None:
        return None
    # Without the core there is no native run, and nothing that reads runs has to be there.
    from latlab.run.findings import ends, found, positive  # noqa: PLC0415

    own = found(record)
    name = what if kind == "ratio" else f"{what}_ns"
    scale = 1.0 if kind == "ratio" else 1e-9
    value, between = positive(own, name), ends(own, name)
    if value is None:
        return None
    here = value * scale
    if between is None:
        return Cell(kind, here, why="median of the sets, measured once")
    low, high = (end * scale for end in between)
    return Cell(kind, here, min(low, here), max(high, here), 6, why="median of the sets, 95 % interval")


def real_table(real: Ten) -> Table:
    """What became of each of the user's URLs."""
    rows = []
    for name in sorted(
        {each["name"] for each in real.done["pool"]}, key=lambda each: int(each.partition("_")[2])
    ):
        cells: dict[str, Cell] = {}
        for way in ("sequential", "pool"):
            each = next(one for one in real.done[way] if one["name"] == name)
            place = [one["name"] for one in real.done[way]].index(name) + 1
            text = each["error"] or f"{format_bytes(each['size'], decimal=True)}, done as number {place}"
            cells[way] = Cell("text", clean(text, most=120))
            cells[f"{way}_s"] = Cell("s", each["ended"] - each["began"], why="the first round")
        rows.append(Row(name, name, cells))
    alone, pool = real.times["sequential"], real.times["pool"]
    rows.append(Row("all", "all of them", {"sequential_s": alone.cell(), "pool_s": pool.cell()}))
    rows.append(Row("speed_up_ratio", "sequential over pool", {"pool_s": alone.over(pool)}))
    return Table(
        "real",
        "Your URLs, each by itself",
        "file",
        (
            Column("sequential", "sequential"),
            Column("sequential_s", "after"),
            Column("pool", "pool of 6"),
            Column("pool_s", "after"),
        ),
        tuple(rows),
        note="In the order in which you named them. The pool went first and last, the sequence twice between: who goes first finds caches on the way cold.",
    )


def answer(
    ten: Ten | None, shapes: Mapping[str, Times], gigabyte: Gigabyte | None, far: Way | None
) -> tuple[str, ...]:
    """The short answer."""
    said = []
    if ten is not None and far is not None:
        ratio = ten.times["sequential"].over(ten.times["pool"])
        over = (
            f"a path with a delay ({far.label})"
            if far.kind == "path"
            else f"no path but a server that stands in for one ({far.label})"
        )
        said.append(
            f"Over {over}, ten files take {format_ns(ten.times['sequential'].median * 1e9)} one after another and {format_ns(ten.times['pool'].median * 1e9)}"
            f" by six workers: {words.ratio(ratio)} as fast, of at most 5."
        )
    if shapes and far is not None and far.kind == "path":
        ratio = shapes["download_many"].over(shapes["download_one"])
        said.append(f"The same bytes in many small files take {words.ratio(ratio)} as long as in one.")
    if gigabyte is not None:
        one, many = (_estimate(gigabyte, "download", size) for size in (GIGABYTE, 10_000))
        if one.number is not None and many.number is not None:
            rate = ", at 200 Mbit/s" if "200 Mbit/s" in gigabyte.way.label else ""
            said.append(
                f"So 1 GB would take {written(one.number, 's')} as one file and {written(many.number, 's')} as 100,000 files of 10 kB one after another (an estimate{rate})."
            )
    return tuple(said) or ("Nothing could be transferred here, so there is no answer from this machine.",)


def reasons(
    plan: Plan,
    ten: Ten | None,
    control: Ten | None,
    sweep: Mapping[int, Times],
    shapes: Mapping[str, Times],
    far: Way | None,
    label: str,
) -> list[str]:
    """Causes, with their size here."""
    said = [f"What lies between both sides: {label}."]
    if ten is not None and control is not None:
        new, kept = (
            (ten.times[name].median - control.times[name].median) / FILES / plan.rtt_s
            for name in ("sequential", "sequential_kept")
        )
        near = control.times["sequential"].median / FILES
        text = (
            f"A file of {format_bytes(plan.file_bytes, decimal=True)} takes {format_ns(near * 1e9)} on the loopback, which is the software's share, and {words.plain(new)} round trips of {plan.rtt_s * 1e3:g} ms beside it here;"
            f" on a kept connection {words.plain(kept)}."
        )
        if far is not None and far.kind == "path":
            text += " One opens the connection, one carries the request and the first 14 kB or so; what is left comes with further round trips, because a new connection may send only so much before it hears from the other side, and a kept one much more."
        said.append(text)
    if sweep:
        found = {workers: _speed_up(sweep, workers) for workers in sweep}
        beyond = [workers for workers, cell in found.items() if (cell.number or 0) > 1.02 * most(workers)]
        within = all((found[workers].low or 0) <= most(workers) for workers in beyond)
        verdict = (
            "lies within what the rounds differ"
            if within
            else "is no speed-up: a round of one worker was slow"
        )
        turns = "; ".join(
            f"{workers} are {words.plain(sweep[1].over(sweep[workers]).number or 0)} times as fast as one, of at most {most(workers):.3g}"
            for workers in (2, 5, 6, 9, 10)
        )
        said.append(
            "Nearly all of a transfer is waiting, and any number of threads can wait at once; Python's lock is not held meanwhile. So only the number of turns counts, ceil(10 / workers): "
            f"{turns}."
            + (f" What is beyond that ({', '.join(map(str, beyond))} workers) {verdict}." if beyond else "")
        )
    if control is not None:
        ratio = control.times["sequential"].over(control.times["pool"])
        said.append(
            f"On the loopback nothing waits, and there is nothing to share: {words.ratio(ratio)} as fast by six."
        )
    if shapes and far is not None and far.kind == "path":
        extra = shapes["upload_many"].over(shapes["upload_one"])
        said.append(
            f"Uploads pay the same price for each file: {plan.many} files take {words.ratio(extra)} as long as one of the same bytes."
        )
    return said


def misled(
    plan: Plan,
    ten: Ten | None,
    second: Mapping[str, Times],
    failed: Mapping[str, list[Done]],
    far: Way | None,
) -> list[Misled]:
    """Where the document misleads."""
    alone, pool = PUBLISHED["sequential"].value, PUBLISHED["pool"].value
    said = [
        Misled(
            "It prints 3.225 s and 0.285 s and takes the pool for the reason: 11.3 times as fast.",
            f"Six workers cannot do that. Ten equal files by six take two turns: 5 times at most, and 6 times whatever their sizes."
            f" The six had {POOL} x {pool} = {POOL * pool:.2f} s of time together for what had taken {alone} s: on average each file came {alone / (POOL * pool):.1f} times as fast by itself ({alone / FILES / (pool / 2):.1f} times if all were equal), whoever fetched it.",
        )
    ]
    if second:
        ratios = {name: second[above].over(second[below]) for name, (_, above, below) in _SECOND.items()}
        said.append(
            Misled(
                "Its pool always runs second, on the same ten URLs.",
                f"With a server here whose cache takes {plan.origin_s * 1e3:g} ms to fill, that order says {words.ratio(ratios['as_document_ratio'])}, the other order {words.ratio(ratios['reversed_ratio'])}, and both warm {words.ratio(ratios['warm_ratio'])}."
                " A cache at the server or on the way can explain the published figure, and so can a name that is looked up once and then known. Which of them it was there is unknown.",
            )
        )
    if ten is not None and far is not None and far.kind == "path":
        mixed, same = (
            ten.times["sequential"].over(ten.times[name]) for name in ("pool_kept", "sequential_kept")
        )
        said.append(
            Misled(
                "It opens a connection for every file, requests.get does so, and pays that ten times.",
                f"One kept connection (requests.Session, http.client) alone makes it {words.ratio(same)} as fast here, without any thread; kept connections and the pool {words.ratio(mixed)}."
                " As both of its ways open new ones, kept connections do not explain its figure.",
            )
        )
    page = next((each for each in failed.get("as_published", []) if not each["error"]), None)
    shown = (
        f"Here a 404 became a file of {page['size']} bytes and no error"
        if page
        else "A 404 is an answer: no error is raised, and the error page is written as the file"
    )
    said.append(
        Misled(
            "It handles errors by exception(), in its parallel version only.",
            f"requests.get raises nothing for an answer that says 404 or 500. {shown}: raise_for_status() is missing. Without timeout= a server that never answers is waited for without end; and one error ends its sequential version.",
        )
    )
    if far is not None and far.kind == "waits":
        said.append(
            Misled(
                "Ours, in this run: the server waits in place of a distance.",
                "Round trips of connecting and of slow start are missing, so each file is too fast, and what kept connections and large files save is not to be seen.",
            )
        )
    return said


def answers(ten: Ten | None, gigabyte: Gigabyte | None, failed: Mapping[str, list[Done]]) -> list[Answer]:
    """What else it says."""
    said = []
    if gigabyte is not None:
        one, many, pool, up_one, up_many = (
            _estimate(gigabyte, kind, size)
            for kind, size in (
                ("download", GIGABYTE),
                ("download", 10_000),
                ("pool", 10_000),
                ("upload", GIGABYTE),
                ("upload", 10_000),
            )
        )
        text = (
            f"Estimated from single files here ({gigabyte.way.label}): down {words.figure(one)} as one file, {words.figure(many)} as 100,000 of 10 kB one after another, {words.figure(pool)} by a pool of six;"
            f" up {words.figure(up_one)} and {words.figure(up_many)}. The 1 GB itself was not sent."
        )
        said.append(
            Answer(
                "Is an upload or download of 1 GB faster as a single file than as thousands of files?", text
            )
        )
    if ten is not None:
        orders = ten.orders
        ratio = ten.times["sequential"].over(ten.times["pool"])
        beyond = ratio.low is not None and ratio.low > 1
        said += [
            Answer(
                "Will the parallel download usually be quite a bit faster?",
                f"{'Here it is, in every round' if beyond else 'Not beyond what the rounds differ'}: {words.ratio(ratio)} as fast. It depends on how much of the time is waiting: on the loopback there is none to share.",
            ),
            Answer(
                "Does the order in which parallel downloads finish vary?",
                f"In {len(orders)} rounds of the pool there were {len(set(orders))} different orders of completion. as_completed hands out each file when it is done; pool.map would keep the order of the names.",
            ),
        ]
    if failed:
        wrong = [each["name"] for each in failed["urllib"] if each["error"]]
        right = len(failed["urllib"]) - len(wrong)
        said.append(
            Answer(
                "What if a file fails?",
                f"{', '.join(sorted(wrong))} failed here, each in its own way and for itself, and the other {right} came. One that never answers holds a worker until its time-out.",
            )
        )
    return said


def pictures(
    ten: Ten | None, sweep: Mapping[int, Times], swept: Mapping[int, Times], label: str
) -> list[Picture]:
    """Speed-up against workers, and when each file was begun and done."""
    drawn = []
    allowed, ideal = "ten files allow: 10 / ceil(10 / workers)", "ideal"
    if sweep:
        marks = [
            times[1].over(times[workers]).mark(name, name, float(workers))
            for name, times in (("measured", sweep), ("measured, loopback (control)", swept))
            for workers in times
        ]
        for name, rises in ((allowed, most), (ideal, float)):
            marks += [Mark(name, rises(workers), name, float(workers)) for workers in range(1, FILES + 1)]
        drawn.append(
            Picture(
                "workers",
                "How much faster are ten files by several workers?",
                "lines",
                "times as fast as one worker",
                "ratio",
                tuple(marks),
                log=False,
                x_axis="workers",
                x_unit="count",
                x_log=False,
                stepped=(allowed,),
                caption=f"{_begun(label)}. Medians; bands go from the smallest to the largest of the rounds. Ten files take whole turns, so the staircase and not the straight line is the most that can be had.",
            )
        )
    if ten is not None:
        marks = [
            Mark(
                f"{short}_{each['name'].partition('_')[2]}",
                each["ended"] - each["began"],
                title,
                None,
                each["began"],
                each["ended"],
            )
            for short, way, title in (
                ("seq", "sequential", "one after another"),
                ("par", "pool", "pool of 6"),
            )
            for each in sorted(ten.done[way], key=lambda one: one["began"])
        ]
        drawn.append(
            Picture(
                "completion",
                "When was each file begun, and when was it done?",
                "spans",
                "time since the start",
                "s",
                tuple(marks),
                log=False,
                caption=f"{_begun(label)}. The first round. A bar goes from when a worker took the file to its last byte; the figure is how long that was. Six begin at once; four wait for a worker that is done.",
            )
        )
    return drawn
