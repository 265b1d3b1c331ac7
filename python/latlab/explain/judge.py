"""The program beside this machine: its own sizes and rates next to measured limits.

File I/O counts as a whole, the kernel's work for it as well as the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from latlab.explain.bounds import Bound, beside_reading, bounds, mean, rates, saving, span, times, undisturbed
from latlab.explain.file_io import FILE_IO, moved
from latlab.explain.limits import Limits, Speed
from latlab.explain.model import Counters, Explained
from latlab.units import format_bytes, format_count, format_ns, format_rate

WORTH_JUDGING: Final = 0.03
"""Smaller shares are not looked at: of wall time without waits for a CPU, which other programs cause."""
_VISIBLE: Final = 0.01
"""A part of bytes or of wall time from which on it is said."""
_SHORT_S: Final = 0.05
_SMALL_READ: Final = 16 << 10
"""A read at a random place is a small one: larger ones are compared with reading in order."""
_FROM: Final = {
    "read-memory": "from memory",
    "read-disk": "from this disk in order",
    "read-random": "from this disk at random places",
    "write-memory": "into memory",
}


class Limit(msgspec.Struct, frozen=True):
    """A measured limit at the program's own size."""

    name: str
    each_ns: tuple[float, float]
    source: str
    bytes_per_s: tuple[float, float] | None = None


class Judged(msgspec.Struct, frozen=True):
    """One thing that the program did, by the kernel's counters, beside what this machine can do.

    Attributes:
        name: `reading`, `writing`, `page-faults`, `waits`, `allocating`.
        count: how often; None where nothing counts it.
        seconds: wall time that the ledger gives it.
        limits: measured figures at `size_bytes`.
        says: a sentence.
        bytes: how many.
        size_bytes: mean of one; the counters know no more of sizes.
        each_ns: wall time of one, from and to: the ledger's interval.
        bytes_per_s: rate during that time, from and to.
    """

    name: str
    count: float | None
    seconds: float
    limits: tuple[Limit, ...]
    says: str
    bytes: float | None = None
    size_bytes: float | None = None
    each_ns: tuple[float, float | None] | None = None
    bytes_per_s: tuple[float, float | None] | None = None


class Judgement(msgspec.Struct, frozen=True):
    """All of it."""

    bounds: tuple[Bound, ...] = ()
    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    beside_reading: float = 0.0
    """Share of wall time, at most, that reading from a disk costs outside of file I/O."""

    def free(self, *categories: str) -> Bound | None:
        """The bound of exactly these categories at no cost."""
        return next(
            (bound for bound in self.bounds if bound.kind == "free" and bound.categories == categories), None
        )

    def limit(self, limit: str) -> Bound | None:
        """The bound at one of the limits."""
        return next((bound for bound in self.bounds if bound.limit == limit), None)


def weight(explained: Explained, *names: str) -> float:
    """Share of that time which these categories take."""
    return explained.share(*names) / undisturbed(explained)


def wanted(explained: Explained) -> list[str]:
    """Names of the limits that there is something to judge by."""
    counters = explained.counters
    names: list[str] = []
    if weight(explained, *FILE_IO) >= WORTH_JUDGING:
        io = moved(explained)
        if counters.read_chars and io.reading + io.mapped > 0:
            names += ["read-memory", "read-disk"]
            if mean(counters.read_chars, counters.read_calls)[0] <= _SMALL_READ:
                names.append("read-random")
        if counters.written_chars and io.writing > 0:
            names.append("write-memory")
    return names + [name for rule in _RULES if rule.applies_to(explained) for name in rule.limits]


def worth_measuring_for(explained: Explained) -> bool:
    """Whether anybody waits some seconds for limits: not after a short program, nor one that failed."""
    program = explained.program
    return explained.wall_s >= _SHORT_S and program.signal is None and not program.exit_code


def judge(explained: Explained, limits: Limits) -> Judgement:
    """The program beside this machine."""
    beside_s = beside_reading(explained, limits)
    return Judgement(
        bounds=bounds(explained, limits, beside_s),
        judged=(
            *_file_io(explained, limits),
            *(rule.judged(explained, limits) for rule in _RULES if rule.applies_to(explained)),
        ),
        # What cannot be kept is said once.
        notes=tuple(note for note in limits.notes if note not in explained.notes),
        beside_reading=beside_s / max(explained.wall_s, 1e-12),
    )


# ---- reading and writing


def _file_io(explained: Explained, limits: Limits) -> list[Judged]:
    counters, io = explained.counters, moved(explained)
    reads = mean(counters.read_chars, counters.read_calls)
    writes = mean(counters.written_chars, counters.write_calls)
    cold = counters.device_read_bytes or 0.0
    names = ["read-memory"]
    if cold > _VISIBLE * reads[2]:
        names += ["read-disk", "read-random"] if reads[0] <= _SMALL_READ else ["read-disk"]
    from_disk = f"; {format_bytes(min(cold, reads[2]))} came from a disk" if cold else ""
    has_pipes = explained.share("pipe") > _VISIBLE
    pipes = " These include reads of pipes: the kernel counts them together." if has_pipes else ""
    apart = (
        "" if io.distinguished else ", if a byte costs the same both ways (the two were not distinguished)"
    )
    least_s = WORTH_JUDGING * undisturbed(explained) * explained.wall_s
    found = []
    for name, verb, seconds, calls, beside, also, after in (
        ("reading", "read", io.reading, reads, names, f"{apart}{from_disk}", pipes),
        ("writing", "wrote", io.writing, writes, ["write-memory"], apart, ""),
    ):
        size, count, total = calls
        if not count or seconds < least_s:
            continue
        ends = _known(explained, FILE_IO, seconds)
        rate = (total / ends[1], total / ends[0] if ends[0] > 0 else None)
        each = (
            "1 call" if count == 1 else f"{format_count(count)} calls, {format_bytes(size)} each on average"
        )
        says = (
            f"It {verb} {format_bytes(total)} in {each}, at {_range(rate, format_rate)} while it was"
            f" {name}{also}. {_compared(limits, beside, size)}"
        )
        found.append(
            Judged(
                name=name,
                count=count,
                seconds=seconds,
                limits=_limits(limits, beside, size),
                says=says.rstrip() + after,
                bytes=total,
                size_bytes=size,
                each_ns=_each(ends, count),
                bytes_per_s=rate,
            )
        )
    return found


def _compared(limits: Limits, names: Sequence[str], size: float) -> str:
    """What the machine does at this size; each source is named once."""
    by_source: dict[str, list[str]] = {}
    for name in names:
        speed = limits.at(name, size)
        if speed is not None:
            is_random = name == "read-random"
            does = f"{times(limits.curves[name].at())} a read" if is_random else rates(speed)
            by_source.setdefault(limits.source(name), []).append(f"{does} {_FROM[name]}")
    said = "; ".join(f"{', '.join(texts)} ({source})" for source, texts in by_source.items())
    return f"At that size this machine gives {said}." if said else ""


# ---- all else: by a category's time, and how often the kernel counted it


class _Rule(NamedTuple):
    """What is judged by the time of its categories.

    Attributes:
        name: of what is judged.
        categories: whose time it is.
        counted: the kernel's count of it; None where nothing counts it.
        limits: names of the limits that it is compared with.
        says: a sentence by that count, seconds from and to, and the limits.
        has_each: whether the time of one is told as a figure.
    """

    name: str
    categories: tuple[str, ...]
    counted: Callable[[Counters], float] | None
    limits: tuple[str, ...]
    says: Callable[[float, tuple[float, float], Limits], str]
    has_each: bool = False

    def applies_to(self, explained: Explained) -> bool:
        """Whether there is enough of it."""
        happened = self.counted is None or self.counted(explained.counters)
        return weight(explained, *self.categories) >= WORTH_JUDGING and bool(happened)

    def judged(self, explained: Explained, limits: Limits) -> Judged:
        """It beside the limits."""
        seconds = explained.seconds(*self.categories)
        ends = _known(explained, self.categories, seconds)
        count = self.counted(explained.counters) if self.counted else None
        return Judged(
            name=self.name,
            count=count,
            seconds=seconds,
            limits=_limits(limits, self.limits),
            says=self.says(count or 0, ends, limits),
            each_ns=_each(ends, count) if count and self.has_each else None,
        )


def _faults(count: float, ends: tuple[float, float], limits: Limits) -> str:
    says = f"It had {format_count(count)} page faults, {_range(_each(ends, count), format_ns)} each."
    speed = limits.at("fault")
    if speed is None:
        return says
    return f"{says} This machine takes {times(speed)} for one on new memory ({limits.source('fault')})."


def _waits(count: float, _: tuple[float, float], limits: Limits) -> str:
    says = f"Its threads blocked {format_count(count)} times."
    speed = limits.at("switch")
    if speed is None:
        return says
    half = Speed(0, speed.low / 2, speed.mid / 2, speed.high / 2)
    return f"{says} A switch takes {times(half)} here on one CPU ({limits.source('switch')})."


def _allocating(_: float, ends: tuple[float, float], limits: Limits) -> str:
    speed = limits.at("malloc")
    if speed is None:
        return "Its allocations are not counted, as counting would slow it down."
    fewest, most = 1e9 * ends[0] / speed.high, 1e9 * ends[1] / speed.low
    return (
        f"It allocated for as long as {format_count(fewest)} to {format_count(most)} pairs of malloc "
        f"and free of at most 256 bytes take here, {times(speed)} each ({limits.source('malloc')})."
    )


_RULES: Final = (
    _Rule(
        "page-faults",
        ("page-faults",),
        lambda counters: counters.minor_faults,
        ("fault", "fault-huge"),
        _faults,
        has_each=True,
    ),
    _Rule("waits", ("pipe", "locks"), lambda counters: counters.voluntary_switches, ("switch",), _waits),
    _Rule("allocating", ("allocator",), None, ("malloc",), _allocating),
)


def _known(explained: Explained, categories: tuple[str, ...], seconds: float) -> tuple[float, float]:
    """Seconds of a part of these categories, from and to: known as well as they are."""
    low, high, _ = saving(explained, categories)
    share = explained.share(*categories)
    return (seconds * low / share, seconds * high / share) if share > 0 else (seconds, seconds)


def _each(ends: tuple[float, float], count: float) -> tuple[float, float]:
    """Nanoseconds of one, from and to."""
    return 1e9 * ends[0] / count, 1e9 * ends[1] / count


def _range(ends: tuple[float, float | None], form: Callable[[float], str]) -> str:
    low, high = ends
    if high is None:
        return f"at least {form(low)}"
    return span(low, high, form) if low > 0 else f"at most {form(high)}"


def _limits(limits: Limits, names: Sequence[str], size: float = 0) -> tuple[Limit, ...]:
    return tuple(
        Limit(name, (speed.low, speed.high), limits.source(name), speed.rates if speed.size_bytes else None)
        for name in names
        if (speed := limits.at(name, size)) is not None
    )
