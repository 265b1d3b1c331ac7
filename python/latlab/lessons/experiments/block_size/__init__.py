"""How the rate of a disk depends on the size of blocks and files."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import NOT_TIMED, Arms, Bench, Cannot, Times, times_of
from latlab.lessons.cache import NOT_KEPT, again, brought_in, why_not_cold
from latlab.lessons.experiments.block_size.disks import (
    MEMORY,
    NEVER_COLD,
    Curve,
    Disk,
    by_the_published,
    by_two,
    references,
)
from latlab.lessons.figures import Cell, Published
from latlab.lessons.folder import fresh_folder, own_folder
from latlab.lessons.machine import file_system
from latlab.lessons.model import Guess, Original, Reported, Size
from latlab.lessons.native import findings, probed, records, why_not
from latlab.lessons.programs import block_size
from latlab.lessons.template import reported
from latlab.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from latlab.run.machine import Machine
    from latlab.run.model import Record
    from latlab.run.run import Run

QUESTION = "How does the bandwidth of a disk depend on the block size?"
ORIGIN = "a post, “Disk Bandwidth”"
PROGRAMS = ("block_size.py",)
COMPARES_DISKS = True
BEST: Final = Published("500 MB/s", 500e6)
MINUTE: Final = Published("one minute", 60.0)
GUESS = Guess(
    "How many seconds does this disk need to read 30 GB at its best rate?",
    "claims.thirty_best.python",
    MINUTE,
)
ORIGINAL_TAKES: Final = Original(
    130,
    30e9,
    "files of up to 100 MB are written, flushed and read cold, nine times each, and the blocks of a file of 256 MiB five times",
)

#: Two a decade.
_SIZES: Final = (*(digit * 10**power for power in range(3, 8) for digit in (1, 3)), 10**8)
_BLOCKS: Final = tuple(4**power for power in range(5, 13))
FILES: Final = {"small": (1_000, 100_000, 4_000_000), "default": _SIZES, "original": _SIZES}
_ROUNDS: Final = {"small": 3, "default": 3, "original": 9}
_ROUNDS_OF_BLOCKS: Final = {"small": 3, "default": 3, "original": 5}
BLOCKS: Final = {"small": (4096, 1 << 20), "default": (512, *_BLOCKS), "original": (512, *_BLOCKS)}
WITHIN: Final = {"small": 1 << 22, "default": 1 << 26, "original": 1 << 28}
#: Rows and columns of eight bytes.
TABLE: Final = {"small": (8192, 16), "default": (131_072, 64), "original": (524_288, 64)}
THIRTY: Final = 30e9
#: A block size wants no more when it has this share of the best rate.
SWEET: Final = 0.9
WAYS: Final = {
    "write": "write, flushed",
    "write_buffered": "write, not flushed",
    "read_cold": "read, cold",
    "read_warm": "read, cached",
}
_READ: Final = "storage.read.sequential"
_WRITE: Final = "storage.write.sequential"

NO_WHY: Final = MappingProxyType(dict.fromkeys(("files", "blocks", "read", "write", "two"), ""))


def run(bench: Bench) -> Reported:
    """One file a size, blocks within a file, a column of a table; then the probes."""
    of_files, of_blocks = "one flushed file of each size", "blocks within one file"
    files = bench.attempt(of_files, lambda: by_file(bench)) or {}
    blocks = bench.attempt(of_blocks, lambda: by_block(bench)) or {}
    column = bench.arms("one column of a table", lambda: scanned(bench))
    of_two, second = "the two disks alternately", bench.second
    two = None if second is None else bench.attempt(of_two, lambda: by_disk(bench, second))
    native, why_read = probed(
        bench, f"{_READ},{_WRITE}", profile="quick", budget=1.5 if bench.size == "small" else 15.0
    )
    why_write = why_read if native is None else why_not(native, _WRITE, "")
    return say(
        files,
        blocks,
        column,
        native,
        {
            "files": bench.why(of_files),
            "blocks": bench.why(of_blocks),
            "read": why_read,
            "write": why_write,
            "two": bench.why(of_two),
        },
        bench.size,
        two or (),
        [file_system(place) for place in (bench.directory, bench.second) if place is not None],
    )


def say(
    files: Curve,
    blocks: Curve,
    column: Arms[str] = NOT_TIMED,
    native: Run | None = None,
    why: Mapping[str, str] = NO_WHY,
    asked: Size = "default",
    two: Sequence[Curve] = (),
    systems: Sequence[str] = ("",),
) -> Reported:
    """What these figures say.

    Args:
        files: By the size of a file.
        blocks: By the size of blocks within one file.
        column: Seconds to add up a column, by layout and state.
        native: The run of Rust probes.
        why: Why there is nothing of `files`, `blocks`, `two`, and of the probes that `read` and `write`.
        asked: The size of the lesson.
        two: Of both disks, by the size of a file, where two were compared.
        systems: The file system of each directory that was named.
    """
    never = [NEVER_COLD if system in MEMORY else "" for system in systems]
    every = whole(files, FILES[asked], why["files"] or never[0])
    one = Disk(every, systems[0])
    disks = [
        Disk(whole(curve, curve, reason), system)
        for curve, system, reason in zip(two, systems, never, strict=False)
    ]
    solid = by_two(*disks) if disks else by_the_published(one)
    return reported(
        __name__,
        asked=asked,
        files=every,
        blocks=whole(blocks, BLOCKS[asked], why["blocks"]),
        smallest=min(files, default=0),
        column=column,
        verdicts=verdicts(files)
        | {"solid": ("undecided", f"the two disks alternately: {why['two']}") if why["two"] else solid},
        disks=disks,
        one=one,
        references=list(references()),
        near=min(every, key=lambda size: abs(math.log(size / 1e6))),
        native_rules=native_rules(native),
        native=list(native_rows(native)),
        fits={side: list(direct_fits(native, side)) for side in ("read", "write")},
        power=power(),
        why=why,
        why_cold=why["files"] or never[0] or "no cold read was possible",
        duration=format_seconds,
    )


def whole(curve: Curve, sizes: Iterable[int], why: str) -> Curve:
    """The same with times of every size and way; those that are missing say why."""
    reason = why or "the cache did not drop it, or cannot be asked here"
    reasons = dict.fromkeys(WAYS, reason) | {"read_warm": why or NOT_KEPT}
    return {
        size: {way: Times(why=reasons[way]) for way in WAYS} | dict(curve.get(size, {}))
        for size in sorted({*sizes, *curve})
    }


# --------------------------------------------------------------------------------------
# what is done


def by_file(bench: Bench) -> Curve:
    """Rates by the size of a file."""
    sizes, rounds = FILES[bench.size], _ROUNDS[bench.size]
    bench.room(2 * rounds * sum(sizes))
    found: dict[int, dict[str, list[float]]] = {size: {} for size in sizes}
    paths = _new_files(bench.folder)
    # Once up and once down: no size always follows the same one.
    for size in bench.turns(sizes, rounds):
        own, write = found[size], functools.partial(block_size.write_file, data=os.urandom(size))
        seconds, _ = again(functools.partial(write, flush=False), paths.__next__)
        own.setdefault("write_buffered", []).append(seconds)
        path = _flushed_and_cold(own, write, size, paths.__next__)
        if brought_in(path):
            own.setdefault("read_warm", []).append(block_size.read_blocks(path, min(size, 1 << 20)))
    return {size: times_of(own) for size, own in found.items()}


def _new_files(folder: Path) -> Iterator[Path]:
    own = fresh_folder(folder, "files")
    yield from (own / f"file-{number}" for number in itertools.count())


def _flushed_and_cold(
    own: dict[str, list[float]], write: Callable[..., float], size: int, fresh: Callable[[], Path]
) -> Path:
    """What a disk has to do for one file, which stays."""
    seconds, path = again(functools.partial(write, flush=True), fresh, keep=True)
    own.setdefault("write", []).append(seconds)
    if not why_not_cold(path):
        own.setdefault("read_cold", []).append(block_size.read_blocks(path, min(size, 1 << 20)))
    return path


def by_disk(bench: Bench, second: Path) -> list[Curve]:
    """The same at the smallest, the middle and the largest size, on both disks alternately."""
    every, rounds = FILES[bench.size], _ROUNDS[bench.size]
    sizes = (every[0], every[len(every) // 2], every[-1])
    with own_folder(second) as other:
        for place in (bench.folder, other):
            bench.room(2 * rounds * sum(sizes), place)
        found: list[dict[int, dict[str, list[float]]]] = [{size: {} for size in sizes} for _ in range(2)]
        paths = [_new_files(bench.folder), _new_files(other)]
        for size, disk in bench.turns(itertools.product(sizes, range(2)), rounds):
            write = functools.partial(block_size.write_file, data=os.urandom(size))
            _flushed_and_cold(found[disk][size], write, size, paths[disk].__next__)
    return [{size: times_of(own) for size, own in each.items()} for each in found]


def by_block(bench: Bench) -> Curve:
    """Rates by the size of the blocks within one file."""
    total, rounds = WITHIN[bench.size], _ROUNDS_OF_BLOCKS[bench.size]
    bench.room(2 * total)
    data, path = os.urandom(total), bench.folder / "blocks"
    block_size.write_file(path, data, flush=True)
    found: dict[int, dict[str, list[float]]] = {block: {} for block in BLOCKS[bench.size]}
    for block in bench.turns(BLOCKS[bench.size], rounds):
        own = found[block]
        own.setdefault("write", []).append(block_size.write_blocks(path, data, block, flush=True))
        own.setdefault("write_buffered", []).append(block_size.write_blocks(path, data, block, flush=False))
        if not why_not_cold(path):
            own.setdefault("read_cold", []).append(block_size.read_blocks(path, block))
        if brought_in(path):
            own.setdefault("read_warm", []).append(block_size.read_blocks(path, block))
    # As rates: every block size moves the whole file.
    return {
        block: {name: Times(tuple(value * block / total for value in values)) for name, values in own.items()}
        for block, own in found.items()
    }


def scanned(bench: Bench) -> dict[str, Times]:
    """One column, from rows that lie together and from columns that do.

    Raises:
        Cannot: the sums are wrong.
    """
    rows, columns = TABLE[bench.size]
    bench.room(2 * rows * columns * 8)
    rows_first, columns_first = bench.folder / "rows", bench.folder / "columns"
    expected = block_size.write_table(rows_first, columns_first, rows, columns)

    def arm(layout: str, *, cold: bool) -> float:
        path = rows_first if layout == "rows" else columns_first
        if cold and (why := why_not_cold(path)):
            raise Cannot(why)
        seconds, total = (
            block_size.scan_rows(path, columns) if layout == "rows" else block_size.scan_column(path, rows)
        )
        if total != expected:
            raise Cannot(f"the column adds up to {total} and not to {expected}")
        return seconds

    arms = {
        f"{layout}_{state}": functools.partial(arm, layout, cold=state == "cold")
        for state in ("cold", "warm")
        for layout in ("rows", "columns")
    }
    return bench.times(arms, 3)


# --------------------------------------------------------------------------------------
# what follows from it


def best(curve: Curve, way: str) -> tuple[int, Times] | None:
    """Where the rate is highest."""
    known = [(size, own[way]) for size, own in curve.items() if own.get(way)]
    return max(known, key=lambda each: each[0] / each[1].median) if known else None


def slowest(curve: Curve) -> tuple[int, Times] | None:
    """Where it is lowest, of what a disk has to do."""
    known = [
        (size, own[way]) for size, own in curve.items() for way in ("write", "read_cold") if own.get(way)
    ]
    return min(known, key=lambda each: each[0] / each[1].median) if known else None


def sweet_spot(curve: Curve, way: str) -> int | None:
    """The smallest size with nine tenths of the best rate."""
    top = best(curve, way)
    if top is None:
        return None
    enough = SWEET * top[0] / top[1].median
    return min(size for size, own in curve.items() if own.get(way) and size / own[way].median >= enough)


def power() -> str:
    """`battery`, `mains`, or that the system does not say."""
    found = set()
    try:
        for supply in Path("/sys/class/power_supply").iterdir():
            kind = (supply / "type").read_text(encoding="ascii").strip()
            state = supply / ("status" if kind == "Battery" else "online")
            if state.exists():
                found.add((kind, state.read_text(encoding="ascii").strip()))
    except OSError:
        return "unknown: the system does not report it"
    if any(kind == "Battery" and state == "Discharging" for kind, state in found):
        return "battery: writes may be delayed"
    return "mains" if found else "no battery is reported"


def direct_fits(run: Run | None, side: str) -> Iterator[tuple[float, float]]:
    """Past the cache, by the probe's fits: seconds before the first byte, and bytes a second of endless blocks."""
    for fit in _listed(run, side, "fits"):
        alpha, beta = fit.number("alpha_ns"), fit.number("beta_bytes_per_s")
        if fit.text("path") == "direct" and beta is not None:
            yield math.nan if alpha is None else alpha / 1e9, beta


def _listed(run: Run | None, side: str, name: str) -> list[Machine]:
    found = records(run, f"storage.{side}.sequential", "derived")
    return [each for record in found for each in findings(record).sections(name)]


def native_rules(native: Run | None) -> dict[str, tuple[str, str]]:
    """The post's first two rules as the probes decide them: verdict and detail."""
    found: dict[str, tuple[str, str]] = {}
    for side in ("write", "read"):
        for rule in _listed(native, side, "rules"):
            if "large" in (rule.text("rule") or "").lower():
                verdict = rule.text("verdict") or "undecided", rule.text("detail") or ""
                found.setdefault(f"large_{side}", verdict)
    reading = _reading_ahead(native)
    return found | ({"reading": reading} if reading else {})


def _reading_ahead(native: Run | None) -> tuple[str, str] | None:
    """Whether reading beats writing, from the figures of both probes."""
    if native is None:
        return None
    from latlab.topics.storage_blocks import reading_beats_writing  # noqa: PLC0415 - with all topics

    return reading_beats_writing(native)


def verdicts(files: Curve) -> dict[str, tuple[str, str]]:
    """The same rules by the plain-Python program: true, false or undecided, and by which figures."""
    sizes = sorted(files)
    found: dict[str, tuple[str, str]] = {}
    for way, name, what in (("write", "large_write", "writing"), ("read_cold", "large_read", "reading")):
        rates = {size: times.rate(size) for size in sizes if (times := files[size].get(way))}
        if len(rates) > 1:
            found[name] = _large_ahead(rates, what)
    known = {
        size: (files[size]["read_cold"].values, files[size]["write"].values)
        for size in sizes
        if files[size].get("read_cold")
    }
    if known:
        ahead = [size for size, (reads, writes) in known.items() if max(reads) < min(writes)]
        behind = any(min(reads) > max(writes) for reads, writes in known.values())
        names = ", ".join(format_bytes(size, decimal=True) for size in ahead) or "no size"
        found["reading"] = (
            "true" if len(ahead) == len(known) else "false" if behind else "undecided",
            f"flushed writes against cold reads: reading faster, beyond the repeats, at {names}",
        )
    return found


def _large_ahead(rates: Mapping[int, Cell], what: str) -> tuple[str, str]:
    """Whether rates rise with sizes: up to where they fall, beyond the repeats, below what a smaller size had."""
    sizes = list(rates)
    top, last, falls = sizes[0], sizes[-1], False
    for size, rate in rates.items():
        if rate.below(rates[top].low or 0.0):
            last, falls = size, True
            break
        if (rate.number or 0.0) > (rates[top].number or 0.0):
            top = size
    rises = rates[top].above(rates[sizes[0]].high or 0.0)
    shown = (
        f"{words.rate(rates[size].number or 0.0)} at {format_bytes(size, decimal=True)}"
        for size in dict.fromkeys((last, top, sizes[0]))
    )
    detail = f"{what}: {', '.join(shown)}"
    if falls and rises:
        return f"true up to {format_bytes(top, decimal=True)}", detail
    return "true" if rises else "false" if falls else "undecided", detail


def native_rows(native: Run | None) -> Iterator[tuple[str, str, int, Cell, Cell]]:
    """The probes' points, direct, cold, cached, flushed: side, path, block; rate, and one call."""
    for side in ("read", "write"):
        for record in sorted(records(native, f"storage.{side}.sequential", "per_op"), key=_by_path):
            rate, value, block = record.finding("bytes_per_s"), record.value, record.point.block_bytes
            if value is None or not block or not isinstance(rate, int | float):
                continue
            low, high = record.interval or (value, value)
            yield (
                side,
                record.point.path or "",
                block,
                Cell("bytes_per_s", float(rate), why="all bytes over the time of all calls"),
                Cell("s", value / 1e9, low / 1e9, high / 1e9, record.samples),
            )


def _by_path(record: Record) -> tuple[str, int]:
    return record.point.path or "", record.point.block_bytes or 0
