"""What is timed: files in each way, by how many workers, in how many pieces, and those that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from latlab.lessons import distance
from latlab.lessons.bench import PLAIN, Bench, Cannot, Times, nothing, times_of
from latlab.lessons.distance import Stamps, Way
from latlab.lessons.figures import Cell
from latlab.text import clean
from latlab.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from latlab.lessons.programs.downloads import Done

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
        native_s: For the Rust probe.
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
    # The source gives no size. Those who keep its files count 164 MB for 600 of them (snewpy, issue 262).
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
            return nothing("s", "the larger file took no longer than the smaller: no rate can be derived")
        return replace(Times(tuple(seconds)).cell(), why=f"estimate: {how}. {self.way.label}")

    def over_one(self, kind: str, size: int) -> Cell:
        """Many files over the single one."""
        many = self.estimate(kind, size)
        one = self.estimate("upload" if kind == "upload" else "download", GIGABYTE)
        if many.number is None or one.number is None:
            return nothing("ratio", many.why or one.why)
        return Cell("ratio", many.number / one.number, why=f"of both estimates. {self.way.label}")


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
    return Ten(times_of(times), done, tuple(orders))


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
    """The published program: requests, and a pool of six.

    Raises:
        Cannot: requests is not installed.
    """
    if not way.client.ask({"has": {"package": "requests"}}):
        raise Cannot("requests is not installed for this Python: pip install 'latlab[lessons]'")
    size = plan.file_bytes
    transfer = partial(way.must, _urls(way, size), by="requests", file_bytes=size, folder=folder)
    transfer(workers=POOL)
    return _transferred(bench, transfer, {"sequential": {}, "pool": {"workers": POOL}}, plan.rounds)


def by_core(bench: Bench, plan: Plan, way: Way) -> Ten:
    """The Rust probe: the core's own client, on the same path, from the same server.

    Raises:
        Cannot: only the plain-Python program was asked for.
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
    return Ten(times_of(times), phases={name: times_of(each) for name, each in phases.items()})


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
    """Ten files from a server whose cache is cold for the first and warm for the second: `pool_warm`."""
    urls = {name: f"{way.tricks}/cached/{plan.file_bytes}/{name}" for name in NAMES}
    found: dict[str, list[float]] = {}
    # The source's order, and the other one.
    for order in bench.turns((("sequential", "pool"), ("pool", "sequential")), plan.shapes):
        way.must({"forget": f"{way.tricks}/forget"})
        for state, name in zip(("cold", "warm"), order, strict=True):
            workers = POOL if name == "pool" else None
            seconds, _ = way.must(urls, workers=workers, file_bytes=plan.file_bytes)
            found.setdefault(f"{name}_{state}", []).append(seconds)
    return times_of(found)


def failing(plan: Plan, way: Way) -> dict[str, list[Done]]:
    """Ten files by a pool, three of which fail, each handled separately; and a 404 as the published program takes it.

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
