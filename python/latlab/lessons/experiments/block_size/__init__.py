"""How the rate of a disk depends on the size of blocks and files."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Cannot, Times, nothing
from latlab.lessons.cache import NOT_KEPT, brought_in, why_not_cold
from latlab.lessons.model import (
    Answer,
    Cell,
    Column,
    Guess,
    Misled,
    Original,
    Picture,
    Published,
    Row,
    Table,
    Told,
)
from latlab.lessons.native import why_not
from latlab.lessons.programs import block_size
from latlab.units import format_bytes, format_ns, format_seconds

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run

QUESTION = "How does the bandwidth of a disk depend on the block size?"
ORIGIN = "a post, “Disk Bandwidth”"
PROGRAMS = ("block_size.py",)
BEST: Final = Published("500 MB/s", 500e6)
MINUTE: Final = Published("one minute", 60.0)
GUESS = Guess(
    "In how many seconds can this disk be read through 30 GB, at its best?",
    "claims.thirty_best.python",
    MINUTE,
)
ORIGINAL_TAKES: Final = Original(
    130,
    30e9,
    "files of up to 100 MB are written, flushed and read cold, nine times each, and so are the blocks of a file of 256 MiB",
)

FILES: Final = {
    "small": (1_000, 100_000, 4_000_000),
    "default": (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
    "original": (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
}
_ROUNDS: Final = {"small": 3, "default": 3, "original": 9}
_BLOCKS: Final = {
    "small": (4096, 1 << 20),
    "default": (512, 4096, 65536, 1 << 20, 1 << 24),
    "original": (512, 4096, 65536, 1 << 20, 1 << 24),
}
_WITHIN: Final = {"small": 1 << 22, "default": 1 << 26, "original": 1 << 28}
#: Rows and columns of eight bytes.
_TABLE: Final = {"small": (8192, 16), "default": (131_072, 64), "original": (524_288, 64)}
THIRTY: Final = 30e9
#: A block size wants no more when it has this share of the best rate.
SWEET: Final = 0.9
_WAYS: Final = ("write", "write_buffered", "read_cold", "read_warm")

Curve = dict[int, dict[str, Times]]


def run(bench: Bench) -> Told:
    """One file a size, blocks within a file, a column of a table; then the probes."""
    what_files, what_blocks, what_column = (
        "one flushed file of each size",
        "blocks within one file",
        "one column of a table",
    )
    files = bench.attempt(what_files, lambda: by_file(bench)) or {}
    blocks = bench.attempt(what_blocks, lambda: by_block(bench)) or {}
    column = bench.attempt(what_column, lambda: scanned(bench)) or {}
    what = "the native arm (probes storage.read.sequential, storage.write.sequential)"
    native = bench.native(
        what,
        "storage.read.sequential,storage.write.sequential",
        profile="quick",
        budget=1.5 if bench.size == "small" else 15.0,
    )
    refused = bench.why(what)
    claims = claim_table(files, blocks, native, refused, bench.why(what_files))
    tables = [
        curve_table(
            "original",
            "One file a size, each new: flushed after writing, verified cold before reading",
            "file",
            files,
            FILES[bench.size],
            bench.why(what_files),
        ),
        claims,
        curve_table(
            "blocks",
            f"Blocks within one file of {format_bytes(_WITHIN[bench.size])}, flushed once at the end",
            "block",
            blocks,
            _BLOCKS[bench.size],
            bench.why(what_blocks),
        ),
        rule_table(files, native, refused, bench.why(what_files)),
        column_table(column, _TABLE[bench.size], bench.why(what_column)),
        native_table(native, refused),
    ]
    return Told(
        answer=answer(files, claims),
        tables=tuple(tables),
        pictures=tuple(
            picture(name, title, axis, curve)
            for name, title, axis, curve in (
                ("by_file", "How fast is a file written and read, by its size?", "size of the file", files),
                ("by_block", "How fast are blocks within one file?", "size of the block", blocks),
            )
            if curve
        ),
        reasons=tuple(reasons(files, blocks, column, native)),
        misled=tuple(misled(files)),
        answers=tuple(answers(claims, column)),
        further=(
            "latlab lesson block-size --dir DIR: another disk; a USB stick and a network share are worth it",
            "latlab measure --only 'storage.*' --profile standard: queue depths, rates, flushes, many small files",
            "latlab lesson small-files: what a file costs beyond its bytes",
        ),
        charts=("storage_blocks",),
    )


def by_file(bench: Bench) -> Curve:
    """Rates by the size of a file."""
    sizes, rounds = FILES[bench.size], _ROUNDS[bench.size]
    bench.room(2 * rounds * sum(sizes))
    found: dict[int, dict[str, list[float]]] = {size: {} for size in sizes}
    # Once up and once down: no size always follows the same one.
    for number, size in enumerate(bench.turns(sizes, rounds)):
        data, own = os.urandom(size), found[size]
        path, other = bench.folder / f"file-{number}", bench.folder / f"buffered-{number}"
        own.setdefault("write", []).append(block_size.write_file(path, data, flush=True))
        own.setdefault("write_buffered", []).append(block_size.write_file(other, data, flush=False))
        if not why_not_cold(path):
            own.setdefault("read_cold", []).append(block_size.read_blocks(path, min(size, 1 << 20)))
        if brought_in(path):
            own.setdefault("read_warm", []).append(block_size.read_blocks(path, min(size, 1 << 20)))
    return _times(found)


def _times(found: dict[int, dict[str, list[float]]]) -> Curve:
    return {size: {name: Times(tuple(values)) for name, values in own.items()} for size, own in found.items()}


def by_block(bench: Bench) -> Curve:
    """Rates by the size of the blocks within one file."""
    total, rounds = _WITHIN[bench.size], _ROUNDS[bench.size]
    bench.room(2 * total)
    data, path = os.urandom(total), bench.folder / "blocks"
    block_size.write_file(path, data, flush=True)
    found: dict[int, dict[str, list[float]]] = {block: {} for block in _BLOCKS[bench.size]}
    for block in bench.turns(_BLOCKS[bench.size], rounds):
        own = found[block]
        own.setdefault("write", []).append(block_size.write_blocks(path, data, block, flush=True))
        own.setdefault("write_buffered", []).append(block_size.write_blocks(path, data, block, flush=False))
        if not why_not_cold(path):
            own.setdefault("read_cold", []).append(block_size.read_blocks(path, block))
        if brought_in(path):
            own.setdefault("read_warm", []).append(block_size.read_blocks(path, block))
    # As rates: every block size moves the whole file.
    return {
        block: {
            name: Times(tuple(value * block / total for value in times.values)) for name, times in own.items()
        }
        for block, own in _times(found).items()
    }


def scanned(bench: Bench) -> dict[str, Times]:
    """One column, from rows that lie together and from columns that do.

    Raises:
        Cannot: the sums are wrong.
    """
    rows, columns = _TABLE[bench.size]
    bench.room(2 * rows * columns * 8)
    rows_first, columns_first = bench.folder / "rows", bench.folder / "columns"
    expected = block_size.write_table(rows_first, columns_first, rows, columns)

    def arm(layout: str, *, cold: bool) -> float:
        path = rows_first if layout == "rows" else columns_first
        why = why_not_cold(path) if cold else ""
        if why:
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


# ----------------------------------------------------------------------------------------------------------
# what is told

_HEADS: Final = (
    Column("write", "write, flushed"),
    Column("write_buffered", "write, not flushed"),
    Column("read_cold", "read, cold"),
    Column("read_warm", "read, cached"),
    Column("thirty", "30 GB, read cold"),
    Column("thirty_write", "30 GB, written"),
)


def curve_table(name: str, title: str, first: str, curve: Curve, sizes: tuple[int, ...], why: str) -> Table:
    """Rates by size, and how long 30 GB take at each."""
    rows = []
    reason = why or "the cache did not let go of it, or cannot be asked here"
    reasons_of = dict.fromkeys(_WAYS, reason) | {"read_warm": why or NOT_KEPT}
    for size in sizes:
        own = curve.get(size, {})
        cells = {
            way: own[way].rate(size) if way in own else nothing("bytes_per_s", reasons_of[way])
            for way in _WAYS
        }
        for column, way in (("thirty", "read_cold"), ("thirty_write", "write")):
            cells[column] = (
                Cell("s", own[way].median * THIRTY / size, why="30 GB at the rate beside it")
                if way in own
                else nothing("s", reason)
            )
        decimal = name == "original"
        rows.append(Row(f"bytes_{size}", format_bytes(size, decimal=decimal), cells))
    return Table(
        name,
        title,
        first,
        _HEADS,
        tuple(rows),
        original=name == "original",
        note="Medians (smallest – largest), each a system call of at most 1 MiB for reads. Cold and cached: the kernel was asked page by page that nothing of the file, or all of it, was in the cache. 30 GB: at the rate beside it.",
    )


def best(curve: Curve, way: str) -> tuple[int, Times] | None:
    """Where the rate is highest."""
    known = [(size, own[way]) for size, own in curve.items() if way in own]
    return max(known, key=lambda each: each[0] / each[1].median) if known else None


def sweet_spot(curve: Curve, way: str) -> int | None:
    """The smallest size with nine tenths of the best rate."""
    top = best(curve, way)
    if top is None:
        return None
    enough = SWEET * top[0] / top[1].median
    return min(size for size, own in curve.items() if way in own and size / own[way].median >= enough)


def claim_table(files: Curve, blocks: Curve, native: Run | None, refused: str, why: str) -> Table:
    """The figures of the post, one a row."""
    heads = (Column("python", "Python"), Column("native", "native"))
    top_read, top_write = best(files, "read_cold"), best(files, "write")
    fits = {name: fit_rate(native, name) for name in ("read", "write")}
    smallest = min(files, default=0)
    own = files.get(smallest, {})
    absent = why or "no cold read was possible"
    native_why = why_not(native, "storage.read.sequential", refused)

    def rate_of(value: float | None) -> Cell:
        return (
            Cell("bytes_per_s", value, why="of endless blocks, by the line through the probe's points")
            if value
            else nothing("bytes_per_s", native_why)
        )

    rows = [
        Row(
            "best_read",
            "best rate of reading",
            {
                "python": top_read[1].rate(top_read[0], published=BEST)
                if top_read
                else nothing("bytes_per_s", absent, BEST),
                "native": rate_of(fits["read"]),
            },
        ),
        Row(
            "best_write",
            "best rate of writing, flushed",
            {
                "python": top_write[1].rate(top_write[0]) if top_write else nothing("bytes_per_s", absent),
                "native": rate_of(fits["write"]),
            },
        ),
        Row(
            "thirty_best",
            "30 GB at the best rate of reading",
            {
                "python": top_read[1].cell(divide=top_read[0] / THIRTY, published=MINUTE)
                if top_read
                else nothing("s", absent, MINUTE),
                "native": Cell("s", THIRTY / fits["read"], why="30 GB at the rate above")
                if fits["read"]
                else nothing("s", native_why),
            },
        ),
        Row(
            "small_flushed",
            f"small writes ({format_bytes(smallest, decimal=True)}), flushed",
            {"python": _rate(own, "write", smallest, Published("0.1 MB/s", 1e5), absent)},
        ),
        Row(
            "small_buffered",
            "the same, left to the file system",
            {"python": _rate(own, "write_buffered", smallest, Published("20 MB/s or so", 20e6), absent)},
        ),
        Row("slowest", "slowest rate of all", {"python": _slowest(files, absent)}),
        Row(
            "sweet_read",
            "smallest file with nine tenths of the best, reading",
            {"python": _size(sweet_spot(files, "read_cold"), absent)},
        ),
        Row(
            "sweet_write",
            "smallest file with nine tenths of the best, writing",
            {"python": _size(sweet_spot(files, "write"), absent)},
        ),
        Row(
            "sweet_block",
            "smallest block with nine tenths of the best, reading",
            {"python": _size(sweet_spot(blocks, "read_cold"), absent)},
        ),
        Row(
            "battery",
            "power",
            {
                "python": Cell(
                    "text",
                    power(),
                    why="what the system says of its power",
                    published=Published("30 MB/s", 30e6),
                )
            },
        ),
    ]
    return Table(
        "claims",
        "What the post says, here",
        "what",
        heads,
        tuple(rows),
        original=True,
        note="The published cap of 30 MB/s is for writes on battery.",
    )


def _rate(own: dict[str, Times], way: str, size: int, published: Published, why: str) -> Cell:
    return own[way].rate(size, published=published) if way in own else nothing("bytes_per_s", why, published)


def _slowest(files: Curve, why: str) -> Cell:
    published = Published("10 MB/s (or slower)", 10e6)
    flushed = [
        (size, own[way]) for size, own in files.items() for way in ("write", "read_cold") if way in own
    ]
    if not flushed:
        return nothing("bytes_per_s", why, published)
    size, times = min(flushed, key=lambda each: each[0] / each[1].median)
    return times.rate(size, published=published)


def _size(size: int | None, why: str) -> Cell:
    published = Published("1-100 MB", 1e6)
    return (
        nothing("bytes", why, published)
        if size is None
        else Cell("bytes", float(size), published=published, why="by the medians of the table")
    )


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
        return "unknown: the system does not say"
    if any(kind == "Battery" and state == "Discharging" for kind, state in found):
        return "battery: writes may be held back"
    return "mains" if found else "no battery is reported"


def fit_rate(run: Run | None, side: str) -> float | None:
    """Bytes a second of endless blocks, direct, from the probe's fit."""
    for record in [] if run is None else run.select(f"storage.{side}.sequential", kind="derived"):
        fits = record.finding("fits")
        for fit in fits if isinstance(fits, list) else []:
            if isinstance(fit, dict) and fit.get("path") == "direct":
                value = fit.get("beta_bytes_per_s")
                if isinstance(value, int | float) and value > 0:
                    return float(value)
    return None


def native_rule(run: Run | None, side: str) -> tuple[str, str] | None:
    """Whether large blocks beat small ones, as the probe of that side decides it: verdict and detail."""
    for record in [] if run is None else run.select(f"storage.{side}.sequential", kind="derived"):
        rules = record.finding("rules")
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, dict) and "large" in str(rule.get("rule", "")).lower():
                return str(rule.get("verdict", "undecided")), str(rule.get("detail", ""))
    return None


def verdicts(files: Curve) -> dict[str, tuple[str, str]]:
    """The three rules by the plain arm: true, false or undecided, and by which figures."""
    sizes = sorted(files)
    found = {}
    if len(sizes) > 1:
        for way, name in (("write", "writing"), ("read_cold", "reading")):
            ends = [(size, files[size][way]) for size in (sizes[0], sizes[-1]) if way in files[size]]
            if len(ends) == 2:
                (small, few), (large, many) = ends
                faster = large / max(many.values) > small / min(few.values)
                slower = large / min(many.values) < small / max(few.values)
                verdict = "true" if faster else "false" if slower else "undecided"
                found[f"large_{way}"] = (
                    verdict,
                    f"{name}: {words.rate(large / many.median)} at {format_bytes(large, decimal=True)}, {words.rate(small / few.median)} at {format_bytes(small, decimal=True)}",
                )
    ahead = [
        size
        for size in sizes
        if "read_cold" in files[size]
        and max(files[size]["read_cold"].values) < min(files[size]["write"].values)
    ]
    behind = [
        size
        for size in sizes
        if "read_cold" in files[size]
        and min(files[size]["read_cold"].values) > max(files[size]["write"].values)
    ]
    known = [size for size in sizes if "read_cold" in files[size]]
    if known:
        verdict = "true" if len(ahead) == len(known) else "false" if behind else "undecided"
        names = ", ".join(format_bytes(size, decimal=True) for size in ahead) or "no size"
        found["reading"] = (
            verdict,
            f"flushed writes against cold reads: reading ahead beyond the repeats at {names}",
        )
    return found


def _reading_ahead(native: Run | None) -> tuple[str, str] | None:
    """Whether reading beats writing, from the figures of both probes."""
    if native is None:
        return None
    from latlab.topics.storage_blocks import reading_beats_writing  # noqa: PLC0415 - with all topics

    return reading_beats_writing(native)


def rule_table(files: Curve, native: Run | None, refused: str, why: str) -> Table:
    """The post's three rules."""
    plain = verdicts(files)
    absent = why or "no cold read was possible"

    def told(key: str) -> Cell:
        found = plain.get(key)
        return (
            Cell("text", f"{found[0]} ({found[1]})", why="by the repeats of the table above")
            if found
            else nothing("text", absent)
        )

    def probe(found: tuple[str, str] | None, side: str) -> Cell:
        if found is None:
            return nothing("text", why_not(native, f"storage.{side}.sequential", refused))
        return Cell("text", f"{found[0]} ({found[1]})" if found[1] else found[0], why="by the probe")

    rows = (
        Row(
            "large_write",
            "1. large blocks are faster than small ones, writing",
            {"python": told("large_write"), "native": probe(native_rule(native, "write"), "write")},
        ),
        Row(
            "large_read",
            "1. large blocks are faster than small ones, reading",
            {"python": told("large_read_cold"), "native": probe(native_rule(native, "read"), "read")},
        ),
        Row(
            "reading",
            "2. reading is faster than writing",
            {"python": told("reading"), "native": probe(_reading_ahead(native), "read")},
        ),
        Row(
            "solid",
            "3. solid state is faster than spinning, above all for small",
            {
                "python": Cell("text", "undecided (one disk was measured)", why="it takes two"),
                "native": Cell("text", "undecided (one disk was measured)", why="it takes two"),
            },
        ),
    )
    return Table(
        "rules",
        "The post's three rules on this disk",
        "rule",
        (Column("python", "Python"), Column("native", "native")),
        rows,
    )


def column_table(column: dict[str, Times], table: tuple[int, int], why: str) -> Table:
    """One column from both layouts."""
    rows = []
    titles = {
        "rows_cold": "from rows that lie together, cold",
        "columns_cold": "from columns that lie together, cold",
        "rows_warm": "from rows, cached",
        "columns_warm": "from columns, cached",
    }
    rows += [
        Row(name, title, {"python": column[name].cell() if column else nothing("s", why)})
        for name, title in titles.items()
    ]
    for state in ("cold", "warm"):
        rows.append(
            Row(
                f"ratio_{state}",
                f"rows over columns, {'cold' if state == 'cold' else 'cached'}",
                {
                    "python": column[f"rows_{state}"].over(column[f"columns_{state}"])
                    if column
                    else nothing("ratio", why)
                },
            )
        )
    size = format_bytes(table[0] * table[1] * 8)
    return Table(
        "columns",
        f"Adding up one of {table[1]} columns of {table[0]:,} numbers ({size})",
        "what",
        (Column("python", "Python"),),
        tuple(rows),
    )


def native_table(native: Run | None, refused: str) -> Table:
    """The probes' points: direct, cold, cached, flushed."""
    rows = []
    records: list[tuple[str, Record]] = []
    for side in ("read", "write"):
        probe = f"storage.{side}.sequential"
        records += [
            (side, record)
            for record in ([] if native is None else native.select(probe))
            if record.value is not None and record.point.block_bytes and record.kind == "per_op"
        ]
    for side, record in sorted(records, key=_by_path):
        rate = record.finding("bytes_per_s")
        if not isinstance(rate, int | float):
            continue
        block, path = record.point.block_bytes or 0, record.point.path or ""
        cell = Cell("bytes_per_s", float(rate), why="all bytes over the time of all calls")
        low, high = record.interval or (record.value or 0.0, record.value or 0.0)
        call = Cell("s", (record.value or 0.0) / 1e9, low / 1e9, high / 1e9, record.samples)
        rows.append(
            Row(
                f"{side}_{path}_{block}",
                f"{side}, {path}, {format_bytes(block)}",
                {"rate": cell, "call": call},
            )
        )
    if not rows:
        rows = [
            Row(
                "none",
                "any block",
                {"rate": nothing("bytes_per_s", why_not(native, "storage.read.sequential", refused))},
            )
        ]
    return Table(
        "native",
        "Blocks within one file, by the native arm",
        "block",
        (Column("rate", "rate"), Column("call", "one call, median")),
        tuple(rows),
    )


def _by_path(found: tuple[str, Record]) -> tuple[str, str, int]:
    side, record = found
    return side, record.point.path or "", record.point.block_bytes or 0


def answer(files: Curve, claims: Table) -> tuple[str, ...]:
    """The short answer."""
    top = best(files, "read_cold")
    if top is None or not files:
        return ("Nothing could be written and read cold here, so there is no answer from this machine.",)
    smallest = min(files)
    low = smallest / files[smallest]["read_cold"].median if "read_cold" in files[smallest] else None
    sweet = claims.cell("sweet_read", "python")
    said = f"Here cold files are read at {words.rate(top[0] / top[1].median)} at best"
    said += f", and at {words.rate(low)} where each has {format_bytes(smallest, decimal=True)}" if low else ""
    thirty = claims.cell("thirty_best", "python").number or 0.0
    return (
        f"{said}. The smallest file that has nine tenths of the best is one of {words.figure(sweet)}; at the best rate 30 GB take {format_seconds(thirty)}.",
    )


def reasons(files: Curve, blocks: Curve, column: dict[str, Times], native: Run | None) -> list[str]:
    """Causes, with their size here."""
    said = []
    if files:
        smallest = min(files)
        own = files[smallest]
        said.append(
            f"Each file and each flush has a price whatever its size: {format_bytes(smallest, decimal=True)} take {format_ns(own['write'].median * 1e9)} until they are on the disk, and {format_ns(own['write_buffered'].median * 1e9)} where the file system may keep them. Large files share that price among more bytes."
        )
    if blocks:
        small, large = min(blocks), max(blocks)
        if "read_cold" in blocks[small] and "read_cold" in blocks[large]:
            ratio = (large / blocks[large]["read_cold"].median) / (small / blocks[small]["read_cold"].median)
            said.append(
                f"Within one file the kernel reads ahead, so blocks matter less: cold reads in blocks of {format_bytes(large)} are {words.plain(ratio)} times as fast as in {format_bytes(small)}."
            )
        if "read_warm" in blocks[small] and "read_warm" in blocks[large]:
            said.append(
                f"From the cache, where no disk is asked, blocks of {format_bytes(small)} come at {words.rate(small / blocks[small]['read_warm'].median)}, of {format_bytes(large)} at {words.rate(large / blocks[large]['read_warm'].median)}: the difference is the price of a system call for each block."
            )
    for side in ("read", "write"):
        for record in [] if native is None else native.select(f"storage.{side}.sequential", kind="derived"):
            fits = record.finding("fits")
            for fit in fits if isinstance(fits, list) else []:
                if (
                    isinstance(fit, dict)
                    and fit.get("path") == "direct"
                    and isinstance(fit.get("alpha_ns"), int | float)
                    and isinstance(fit.get("beta_bytes_per_s"), int | float)
                ):
                    alpha, beta = float(fit["alpha_ns"]), float(fit["beta_bytes_per_s"])
                    said.append(
                        f"Past the cache a {side} costs {format_ns(alpha)} before its first byte, then its bytes at {words.rate(beta)}: half of the rate is reached with blocks of {format_bytes(alpha * beta / 1e9)} (probe storage.{side}.sequential)."
                    )
    if column:
        ratio_cold = column["rows_cold"].over(column["columns_cold"])
        because = (
            "because all other columns travel with it"
            if (ratio_cold.low or 0.0) > 1
            else "although all other columns travel with it"
        )
        said.append(
            f"A column store reads only what is asked for: one column from rows takes {words.ratio(ratio_cold)} as long, cold, {because}."
        )
    return said


def misled(files: Curve) -> list[Misled]:
    """Where the post misleads."""
    said = [
        Misled(
            "It calls the size of a file the block size.",
            "A file has a price of its own (its name, its flush) beside that of a block: both are shown here, and they differ.",
        ),
        Misled(
            "It clears all buffers before reading and does not look whether they were cleared.",
            "Here the kernel is asked, page by page, whether anything of a file is left; where something is, there is no figure. What a host below a virtual disk keeps cannot be seen.",
        ),
    ]
    if files and all("read_cold" in own for own in files.values()):
        verdict, detail = verdicts(files).get("reading", ("undecided", ""))
        said.append(Misled("“Reading is faster than writing.”", f"On this disk: {verdict} ({detail})."))
    return said


def answers(claims: Table, column: dict[str, Times]) -> list[Answer]:
    """What else it says."""
    said = []
    thirty = claims.cell("thirty_best", "python")
    if thirty.number:
        verdict = "Yes" if thirty.number <= MINUTE.value else "No"
        said.append(
            Answer(
                "Can 30 GB be gone through in one minute?",
                f"{verdict}: {format_seconds(thirty.number)} at the best rate here.",
            )
        )
    small, kept = claims.cell("small_flushed", "python"), claims.cell("small_buffered", "python")
    if small.number and kept.number:
        beyond = (kept.low or 0.0) > (small.high or math.inf)
        said.append(
            Answer(
                "Does the file system guard against many small writes?",
                f"Yes: {words.rate(kept.number)} instead of {words.rate(small.number)}, {words.plain(kept.number / small.number)} times; the price is that a loss of power takes what was not flushed."
                if beyond
                else f"Not beyond what the repeats differ: {words.rate(kept.number)} where it may keep them, {words.rate(small.number)} flushed.",
            )
        )
    said.append(Answer("Does the battery hold writes back?", f"Power here: {power()}."))
    if column:
        said.append(
            Answer(
                "Is storing a column together worth it?",
                f"For one column of the table: {words.ratio(column['rows_cold'].over(column['columns_cold']))} cold, {words.ratio(column['rows_warm'].over(column['columns_warm']))} cached.",
            )
        )
    return said


def picture(name: str, title: str, axis: str, curve: Curve) -> Picture:
    """Rates against size."""
    names = {
        "write": "write, flushed",
        "write_buffered": "write, not flushed",
        "read_cold": "read, cold",
        "read_warm": "read, cached",
    }
    marks = tuple(
        own[way].rate(size).mark(title_of, title_of, float(size))
        for way, title_of in names.items()
        for size, own in sorted(curve.items())
        if way in own
    )
    return Picture(
        name,
        title,
        "lines",
        "rate",
        "bytes_per_s",
        marks,
        x_axis=f"{axis}, logarithmic",
        caption="Medians; bands go from the slowest to the fastest repeat. Each step of the upright axis is ten times the one before.",
    )
