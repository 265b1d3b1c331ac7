"""A ledger of one machine scaled to another, by the figures of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from latlab.elsewhere import ratios
from latlab.elsewhere.ratios import DRAWS, Draws, Missing, Ratio
from latlab.explain.answer import percent
from latlab.explain.file_io import moved
from latlab.explain.model import WAITS, Explained, Row
from latlab.explain.words import CATEGORIES
from latlab.predict.answer import Refused, span
from latlab.predict.model import LEVEL, Range, Source
from latlab.run.run import Run

_COMPUTES: Final = 0.3
"""From this share of wall time on, computing decides whether there is a most likely time."""
_WIDE: Final = 1.5
"""A bracket of computing wider than this is given as a bracket only."""
MATTERS: Final = 0.05
"""A smaller share of wall time may go without a figure."""
_LITTLE: Final = 1.5
"""Then it is taken as anything from as much less to as much more."""
_MOMENT: Final = 2.0
"""How many times as long a disk may take at a moment as its figures say."""
_ITS_OWN: Final = 0.2
"""With a larger deviation, relative to itself, a share of a ledger is what makes a range wide."""
_PAGE: Final = 4096
_WORTH_READING: Final = 16 << 20
"""Bytes from a disk that are not left out where nothing waited for them."""
_SMALL_READ: Final = 16 << 10
"""A read at a random place is a small one."""


@dataclass(frozen=True, slots=True)
class Category:
    """One category here and there.

    Attributes:
        name: Of the ledger.
        here_s: Its wall time here.
        there: The range of what it becomes.
        by: Which probes, or why it is not scaled.
    """

    name: str
    here_s: float
    there: Range
    by: str


@dataclass(slots=True)
class _Piece:
    """A part of a category: its wall time here and there, as draws and as the most likely value."""

    row: str
    part: str
    now_s: Draws
    then_s: Draws
    then_mid_s: float
    by: str


@dataclass(slots=True)
class Scaled:
    """All categories of a ledger on another machine."""

    explained: Explained
    here: Run
    there: Run
    refused: Refused | None = None
    notes: list[str] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)
    used: dict[Source, None] = field(default_factory=dict)
    bracket: tuple[float, float] = (1.0, 1.0)
    cold_s: Draws = field(default_factory=lambda: np.zeros(DRAWS))
    cold_mid_s: float = 0.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _known: dict[tuple[str, str], tuple[Draws, float, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Scales each row; the first that cannot be ends it."""
        rows = [row for row in self.explained.categories if row.high > 0]
        shares = {row.name: self._share(row) for row in rows}
        total: Draws = np.sum(list(shares.values()), axis=0)
        found = self._computing()
        if found is None:
            return
        slower = self._parallel()
        for row in rows:
            seconds: Draws = self.explained.wall_s * shares[row.name] / total
            times = slower if row.name not in WAITS else (np.ones(DRAWS), 1.0)
            for name, part, fraction in _parts(self.explained, row):
                own = row.share * self.explained.wall_s * fraction
                self._add(name, part, seconds * fraction, own, times)
                if self.refused is not None:
                    return
        self._hidden_reads()
        self._uncached()
        if any(piece.row == "storage-wait" for piece in self.pieces):
            self.notes.append("Its disks are assumed to be those that the runs measured.")

    def _share(self, row: Row) -> Draws:
        """A share of wall time, within its interval: above and below apart, as intervals are lopsided."""
        z = self.rng.standard_normal(DRAWS)
        below, above = max(row.share - row.low, 0.0), max(row.high - row.share, 0.0)
        own: Draws = np.maximum(row.share + z * np.where(z < 0, below, above) / 1.96, 0.0)
        return own

    def _computing(self) -> tuple[Draws, float, str] | None:
        """The bracket: its ends, and the mix's middle."""
        mix = ratios.ratios(self.here, self.there, ratios.MIX)
        if isinstance(mix, Missing):
            self.refused = _no_figure(mix, "computing", self.explained.share(*ratios.COMPUTING))
            return None
        memory = ratios.ratios(self.here, self.there, ratios.MEMORY)
        every = [*mix, *([] if isinstance(memory, Missing) else memory)]
        self.bracket = min(own.value for own in every), max(own.value for own in every)
        low, high = min(own.ends[0] for own in every), max(own.ends[1] for own in every)
        self._use(every)
        between: Draws = np.exp(self.rng.uniform(math.log(low), math.log(high), DRAWS))
        found = between, ratios.middle(mix), "cpu.mix, memory (bracket)"
        for name in ratios.COMPUTING:
            self._known[name, ""] = found
        return found

    def _parallel(self) -> tuple[Draws, float]:
        """How many times as long threads take that find fewer CPUs there than they use here."""
        threads, cpus = self.explained.threads, cpus_of(self.there)
        busy, most = max(threads.parallelism, 1.0), max(threads.most, 1)
        if cpus >= min(most, cpus_of(self.here)):
            more = cpus > cpus_of(self.here) and most > cpus_of(self.here)
            if more:
                self.notes.append(
                    f"Its {most} threads have {cpus:g} CPUs there and {cpus_of(self.here):g} here: the gain"
                    " from more CPUs is not predicted."
                )
            return np.ones(DRAWS), 1.0
        # Of n threads that run, n / cpus in turn; the mean of n is known, and that it is from 1 to `most`.
        low = max(1.0, busy / cpus)
        part = (busy - 1) / (most - 1) if most > 1 else 0.0
        high = max(low, part * max(1.0, most / cpus) + (1 - part) * max(1.0, 1 / cpus))
        self.notes.append(
            f"It runs {busy:.1f} threads concurrently here; the other machine has {cpus:g} CPUs."
        )
        own: Draws = self.rng.uniform(low, high, DRAWS)
        return own, (low + high) / 2

    def _add(self, name: str, part: str, now: Draws, now_mid: float, slower: tuple[Draws, float]) -> None:
        if name in ratios.UNSCALED:
            times, mid, how = np.ones(DRAWS), 1.0, "as here"
            if name == "run-queue-wait":
                times, how = self.rng.uniform(0.0, 2.0, DRAWS), "between none and twice as much"
            by = f"{how}: {ratios.UNSCALED[name]}"
        else:
            found = self._times(name, part, now_mid)
            if found is None:
                return
            times, mid, by = found
        then: Draws = now * times * slower[0]
        then_mid = now_mid * mid * slower[1]
        if name == "storage-wait" and part in {"", "small"}:
            then, then_mid = self._waits(part, now, now_mid, times, mid)
        self.pieces.append(_Piece(name, part, now, then, then_mid, by))

    def _times(self, name: str, part: str, now_mid: float) -> tuple[Draws, float, str] | None:
        """The ratio of a part; None where it is refused."""
        key = (name, part) if (name, part) in ratios.TABLE else (name, "")
        if key not in self._known:
            found = ratios.ratios(
                self.here, self.there, ratios.TABLE.get(key, ratios.MIX), self._block(name, part)
            )
            if isinstance(found, Missing):
                share = now_mid / max(self.explained.wall_s, 1e-12)
                if share >= MATTERS:
                    self.refused = _no_figure(found, CATEGORIES[name][0], share)
                    return None
                logs = self.rng.uniform(-math.log(_LITTLE), math.log(_LITTLE), DRAWS)
                self._known[key] = np.exp(logs), 1.0, f"no figure of {found.probe}; a small share"
            else:
                self._use(found)
                by = ", ".join(dict.fromkeys(ratio.probe for ratio in found))
                self._known[key] = ratios.drawn(found, self.rng), ratios.middle(found), by
        return self._known[key]

    def _block(self, name: str, part: str) -> float:
        """Mean bytes of a call of the program, of the kind that a part is."""
        counters = self.explained.counters
        if part == "writing":
            return (counters.written_chars or 0.0) / max(counters.write_calls or 0.0, 1.0)
        size = (counters.read_chars or 0.0) / max(counters.read_calls or 0.0, 1.0)
        # Pages of mappings are read ahead as a stream is.
        return size if name == "file-io-cpu" or size else 128 << 10

    def _waits(self, part: str, now: Draws, now_mid: float, times: Draws, mid: float) -> tuple[Draws, float]:
        """Waiting for a disk that takes `times` as long: what of its work is hidden here still is.

        What the disk works longer by its figures is waited for; what it works beside the program here is
        hidden there as well. Where the program waits longer than the figures say, either its pattern is the
        reason, and all of it is scaled, or the disk was slow at that moment, at most by `_MOMENT`, and only
        the rest is: anything between is taken.
        """
        busy = self._disk_s(self.here, part, self.explained.counters.device_read_bytes or 0.0)
        # A disk that is faster here than its figures say works for no longer than the program runs.
        busy = max(min(busy, self.explained.wall_s), now_mid / _MOMENT)
        longer: Draws = np.maximum(now + busy * (times - 1), 1e-9)
        longer_mid = max(now_mid + busy * (mid - 1), 0.0)
        if busy >= now_mid:
            return longer, longer_mid
        scaled: Draws = np.maximum(now * times, 1e-9)
        share: Draws = self.rng.uniform(0.0, 1.0, DRAWS)
        between: Draws = np.exp(np.log(scaled) * share + np.log(longer) * (1 - share))
        return between, math.sqrt(now_mid * mid * longer_mid)

    def _disk_s(self, run: Run, part: str, size: float) -> float:
        """What a disk needs for so many bytes by a run's figures, seconds; 0 where it has none.

        Small reads are at random places, one after the other.
        """
        if part != "small":
            return size * (ratios.byte_ns(run, ratios.COLD) or 0.0) / 1e9
        each = (ratios.byte_ns(run, ratios.RANDOM) or 0.0) * _PAGE
        return min(self.explained.counters.read_calls or math.inf, size / _PAGE) * each / 1e9

    def _hidden_reads(self) -> None:
        """What a disk did wholly beside other work here, and may not there."""
        size = self.explained.counters.device_read_bytes or 0.0
        if size <= 0 or any(map(_is_reading, self.pieces)):
            return
        part = "small" if _is_scattered(self.explained) else ""
        found = ratios.ratios(self.here, self.there, ratios.TABLE["storage-wait", part])
        if isinstance(found, Missing) and size >= _WORTH_READING:
            self.refused = _no_figure(found, "reading from the disk", 0.0)
            return
        self._add("storage-wait", part, np.zeros(DRAWS), 0.0, (np.ones(DRAWS), 1.0))

    def _uncached(self) -> None:
        """What it would take to bring into memory there what was in memory here."""
        counters = self.explained.counters
        size = max((counters.read_chars or 0.0) - (counters.device_read_bytes or 0.0), 0.0)
        part = "small" if (counters.read_chars or 0.0) <= _SMALL_READ * (counters.read_calls or 0.0) else ""
        self.cold_mid_s = self._disk_s(self.there, part, size)
        found = ratios.ratios(self.there, self.there, ratios.RANDOM if part else ratios.COLD)
        if not isinstance(found, Missing) and found:
            self.cold_s = self.cold_mid_s * ratios.drawn(found, self.rng)

    def _use(self, found: Sequence[Ratio]) -> None:
        self.used |= {Source(ratio.probe, ratio.point): None for ratio in found}

    @property
    def sources(self) -> tuple[Source, ...]:
        """Probes and points."""
        return tuple(self.used)

    @property
    def memory(self) -> float | None:
        """Bytes that the other machine could use."""
        return self.there.machine.number("limits.usable_memory_bytes")

    @property
    def fits_memory(self) -> bool:
        """Whether what was cached here can be in the page cache there, as far as that is known."""
        counters = self.explained.counters
        cached = (counters.read_chars or 0.0) - (counters.device_read_bytes or 0.0)
        return self.memory is None or cached <= self.memory

    def total(self, *, cached: bool = True, waits: bool = True) -> Range:
        """All parts together, with what was cached here cached there or not, and with waits or none."""
        pieces = [piece for piece in self.pieces if waits or not _is_reading(piece)]
        extra, extra_mid = (np.zeros(DRAWS), 0.0) if cached else (self.cold_s, self.cold_mid_s)
        total: Draws = np.sum([piece.then_s for piece in pieces], axis=0) + extra
        low, high = (float(end) for end in np.quantile(total, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))
        if self.is_bracket:
            return Range(None, low, high, bounds=True)
        mid = sum(piece.then_mid_s for piece in pieces) + extra_mid
        return Range(mid, min(low, mid), max(high, mid))

    @property
    def is_bracket(self) -> bool:
        """Computing decides, and is not known well enough."""
        low, high = self.bracket
        return self.explained.share(*ratios.COMPUTING) > _COMPUTES and high / low > _WIDE

    @property
    def parts(self) -> tuple[Category, ...]:
        """By category, the largest first."""
        found = []
        for name in dict.fromkeys(piece.row for piece in self.pieces):
            own = [piece for piece in self.pieces if piece.row == name]
            then: Draws = np.sum([piece.then_s for piece in own], axis=0)
            low, high = (float(end) for end in np.quantile(then, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))
            mid = sum(piece.then_mid_s for piece in own)
            by = ", ".join(dict.fromkeys(each for piece in own for each in piece.by.split(", ")))
            now = sum(float(np.mean(piece.now_s)) for piece in own)
            found.append(Category(name, now, Range(mid, low, high), by))
        return tuple(sorted(found, key=lambda part: -max(part.here_s, part.there.high)))

    def too_wide(self, answer: Range) -> Refused:
        """Why so wide a range is none, with what narrows the part that most of it comes from."""
        part = max(self.parts, key=lambda part: part.there.high - part.there.low)
        own = [piece for piece in self.pieces if piece.row == part.name]
        now: Draws = np.sum([piece.now_s for piece in own], axis=0)
        by_ledger = part.here_s > 0 and float(np.std(now)) / part.here_s > _ITS_OWN
        probe = part.by.partition(", ")[0]
        again = f"latlab predict --runs {max(10, 10 * self.explained.runs)}"
        known = probe in ratios.PROBES and not by_ledger
        return Refused(
            f"the range would be {span(answer.low, answer.high)}, mostly from {CATEGORIES[part.name][0]}",
            f"latlab measure --only {probe} --profile thorough, here and there" if known else again,
        )


def _is_reading(piece: _Piece) -> bool:
    return piece.row == "storage-wait" and piece.part in {"", "small", "page fault"}


def _parts(explained: Explained, row: Row) -> Iterator[tuple[str, str, float]]:
    """Category and part that have figures of their own, each with its fraction of a row.

    Of the kernel's work that is left whole, counts tell what some of it was.
    """
    if row.share <= 0:
        yield row.name, "", 1.0
        return
    if row.name == "storage-wait":
        yield from _of_waits(explained, row)
        return
    left = 1.0
    reported = [
        (row.name, part.name, part.share) for part in row.parts if (row.name, part.name) in ratios.TABLE
    ]
    if row.name == "kernel-cpu":
        reported += [(each.name, "", each.share) for each in row.counted if (each.name, "") in ratios.TABLE]
    for name, part, share in reported:
        fraction = min(share / row.share, left)
        left -= fraction
        yield name, part, fraction
    if left > 0:
        yield row.name, "", left


def _of_waits(explained: Explained, row: Row) -> Iterator[tuple[str, str, float]]:
    """Waits for a disk: reading in order or at random, writing, and the parts that the ledger tells apart."""
    left = 1.0
    for part in row.parts:
        if (row.name, part.name) in ratios.TABLE:
            fraction = min(part.share / row.share, left)
            left -= fraction
            yield row.name, part.name, fraction
    io = moved(explained, row)
    both = io.reading + io.writing
    reads = left * (io.reading / both if both > 0 else 1.0)
    if reads > 0:
        yield row.name, ("small" if _is_scattered(explained) else ""), reads
    if left - reads > 0:
        yield row.name, "writing", left - reads


def _is_scattered(explained: Explained) -> bool:
    """Small reads that each bring a few pages are at random places; those of a stream are mostly copies."""
    counters = explained.counters
    size = (counters.read_chars or 0.0) / max(counters.read_calls or 0.0, 1.0)
    each = (counters.device_read_bytes or 0.0) / max(counters.voluntary_switches, 1.0)
    return 0 < size <= _SMALL_READ and each < 2 * _SMALL_READ


def _no_figure(missing: Missing, what: str, share: float) -> Refused:
    where, how = ("the other run", " there") if missing.there else ("this machine's run", "")
    part = f"takes {percent(share)} of the time" if share > 0 else "is hidden behind other work here only"
    return Refused(
        f"{where} has no figure of {missing.probe} to compare: {what} {part}",
        f"latlab measure --only {missing.probe}{how}",
    )


def cpus_of(run: Run) -> float:
    """CPUs' worth of time that programs may use on a run's machine."""
    usable = run.machine.number("limits.usable_cpus")
    return usable or float(len(run.machine.integers("limits.allowed_cpus")) or 1)
