"""Every level that data passes through, on one axis."""

from __future__ import annotations

import math
import os
import statistics
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Cannot, Times, available_memory, nothing
from latlab.lessons.cache import brought_in, why_not_cold
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
from latlab.lessons.native import disk_rate, why_not
from latlab.lessons.programs import ladder
from latlab.run.distance import DISTANCE_M, FLOOR_NS
from latlab.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from latlab.run.run import Run
    from latlab.run.rung import Rung

QUESTION = "How many orders of magnitude slower are disk accesses than RAM?"
ORIGIN = "a lesson, “Understanding Latency”: Latency Overview"
PROGRAMS = ("ladder.py",)
LEVELS: Final = {
    "L1": "L1 cache",
    "L2": "L2 cache",
    "L3": "L3 cache",
    "RAM": "RAM",
    "SSD": "SSD, 4 KiB at random",
    "HDD": "HDD, 4 KiB at random",
    "packet": "packet London – California – London",
}
#: The document's chart has bars without figures; these ends of its range are in its description.
LATENCIES: Final = {"L1": Published("1 nanosecond", 1e-9), "packet": Published("140 milliseconds", 0.14)}
RATES: Final = {
    "L1": Published("1 TB/s", 1e12),
    "L2": Published("1 TB/s", 1e12),
    "RAM": Published("100 GB/s", 1e11),
    "SSD": Published("up to 32 GB/s", 32e9),
    "HDD": Published("up to 150 MB/s", 150e6),
}
GUESS = Guess(
    "How many times as long as an access to RAM does one to this disk take?",
    "orders.disk_over_ram_ratio.native",
    Published("another order of magnitude", 10.0),
)
ORIGINAL_TAKES: Final = Original(45, 1.5e9, "a file of 1 GiB, arrays of up to 256 MiB, and 24 s of probes")
#: Light in fibre, London to San Francisco and back.
FLOOR_S: Final = FLOOR_NS / 1e9
#: Slower random reads are those of a head that moves; none that moves is faster.
SPINS_S: Final = 1e-3
#: Powers of two of elements of four bytes.
_POWERS: Final = {
    "small": (12, 16, 19),
    "default": (12, 16, 18, 20, 22, 24),
    "original": (12, 16, 18, 20, 22, 24, 26),
}
_FILE, _COLD = "reading a file", "reading a file past the page cache"
_FILE_BYTES: Final = {"small": 1 << 24, "default": 1 << 28, "original": 1 << 30}


def run(bench: Bench) -> Told:
    """As Python sees it; then the probes' ladder; references where there is no such level."""
    chased = bench.attempt("chasing through memory of each size", lambda: chases(bench)) or {}
    copied = bench.attempt("copying within memory", lambda: copies(bench)) or {}
    disk = bench.attempt(_FILE, lambda: file_reads(bench)) or {}
    why_disk = bench.why(_FILE) or bench.why(_COLD) or "the cache did not let go of the file"
    what = "the native arm (probes memory.load.dependent, memory.bandwidth, storage.read.*)"
    small = bench.size == "small"
    native = bench.native(
        what,
        "memory.load.dependent"
        if small
        else "memory.load.dependent,memory.bandwidth,storage.read.random,storage.read.sequential",
        profile="quick",
        budget=3.0 if small else 24.0,
    )
    rungs = {} if native is None else {rung.key: rung for rung in native.ladder()}
    kind, called = disk_kind(rungs, disk), rotational(bench.directory)
    why = bench.why(what)
    table = latencies(chased, disk, native, rungs, kind, why_disk, why)
    rates = bandwidths(
        copied,
        disk,
        native,
        rungs,
        kind,
        why_disk,
        why,
        bench.why("copying within memory"),
    )
    pokes = chase_table(chased, bench.why("chasing through memory of each size"))
    told = orders(table, why)
    return Told(
        answer=answer(table, told),
        tables=(table, rates, told, pokes),
        pictures=(picture(table),),
        reasons=(*reasons(chased, disk, rungs, table), *about_the_disk(kind, called)),
        misled=tuple(misled(table, rates)),
        answers=answers(rates),
        further=(
            "latlab: the whole ladder with its tails, in a minute and a half",
            "latlab measure --only 'network.*' --distance: what a packet's way costs with a delay put in, where the system allows it",
            "latlab lesson latency-ladder --dir DIR: another disk",
            "latlab lesson random-pokes: the distribution behind each bar",
        ),
        charts=("ladder", "hierarchy"),
    )


def chases(bench: Bench) -> dict[int, Times]:
    """Seconds of a step by bytes of the array."""
    steps = 100_000 if bench.size == "small" else 300_000
    places = {}
    for power in _POWERS[bench.size]:
        size, available = 4 << power, available_memory()
        if available is not None and available < 2 * size:
            bench.lacks(f"an array of {format_bytes(size)}", f"{format_bytes(available)} of memory are free")
            continue
        places[size] = ladder.cycle(1 << power)
    found = bench.times(
        {str(size): (lambda cycle=cycle: ladder.chase(cycle, steps)) for size, cycle in places.items()},  # type: ignore[misc]
        5,
    )
    return {int(size): times for size, times in found.items()}


def copies(bench: Bench) -> dict[str, Times]:
    """Bytes a second (not seconds) of copies in a cache and in memory.

    Raises:
        Cannot: they do not fit.
    """
    large, available = (1 << 25) if bench.size == "small" else (1 << 27), available_memory()
    if available is not None and available < 3 * large:
        raise Cannot(
            f"two blocks of {format_bytes(large)} do not fit: {format_bytes(available)} of memory are free"
        )
    return bench.times(
        {
            "L1": lambda: ladder.copy_rate(1 << 14, 2000),
            "L2": lambda: ladder.copy_rate(1 << 18, 500),
            "RAM": lambda: ladder.copy_rate(large, 1),
        },
        5,
    )


def file_reads(bench: Bench) -> dict[str, Times]:
    """Seconds of a read of 4 KiB and bytes a second, with all of the file in the page cache and nothing of it."""
    size = _FILE_BYTES[bench.size]
    bench.room(size)
    path = bench.folder / "file.bin"
    ladder.write_file(path, size)
    found = {}
    if brought_in(path):
        found["warm"] = Times(tuple(ladder.poke_file(path, 1000, forget=False)))
        found["warm_rate"] = Times(tuple(ladder.read_rate(path, forget=False) for _ in range(3)))
    why = why_not_cold(path)
    if why:
        bench.lacks(_COLD, why)
        return found
    found["cold"] = Times(tuple(ladder.poke_file(path, 300, forget=True)))
    rates = tuple(ladder.read_rate(path, forget=True) for _ in range(3) if not why_not_cold(path))
    return found | ({"cold_rate": Times(rates)} if rates else {})


def rotational(directory: Path) -> bool | None:
    """Whether the kernel calls the disk a spinning one; None where it does not say. A virtual disk's flag says nothing."""
    try:
        device = directory.stat().st_dev
        link = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
        for place in (link, link.parent):
            flag = place / "queue" / "rotational"
            if flag.exists():
                return flag.read_text(encoding="ascii").strip() == "1"
    except (OSError, AttributeError):
        return None
    return None


def disk_kind(rungs: dict[str, Rung], disk: dict[str, Times]) -> str:
    """`SSD` or `HDD` by what a random read takes: half a turn at 15,000 a minute is 2 ms, and no read waits less.

    Empty where no read of the disk was timed.
    """
    rung = rungs.get("disk-read")
    found = rung.latency_p50_ns / 1e9 if rung is not None and rung.latency_p50_ns else None
    if found is None and "cold" in disk:
        found = disk["cold"].median
    if found is None:
        return ""
    return "HDD" if found > SPINS_S else "SSD"


def about_the_disk(kind: str, called: bool | None) -> tuple[str, ...]:
    """Where the kernel's flag and the measurement differ."""
    if called is None or not kind or called == (kind == "HDD"):
        return ()
    name = "a spinning disk" if called else "no spinning disk"
    return (
        f"The kernel calls this {name}, as virtual disks often do by default; by its random reads it belongs to the row {kind}: half a turn of a disk at 15,000 a minute takes 2 ms.",
    )


# ----------------------------------------------------------------------------------------------------------
# what is told


def latencies(
    chased: dict[int, Times],
    disk: dict[str, Times],
    native: Run | None,
    rungs: dict[str, Rung],
    kind: str,
    why_disk: str,
    why: str,
) -> Table:
    """The document's chart as rows: measured where there is such a level, else a reference, marked."""
    from latlab.run.textbook import USUAL  # noqa: PLC0415 - figures only, but not needed at once

    rows = []
    sizes = sorted(chased)
    for key, title in LEVELS.items():
        published = LATENCIES.get(key)
        if key == "packet":
            unsent = "this lesson sends no packet that far"
            cells = {"native": nothing("s", unsent, published), "python": nothing("s", unsent)}
            cells["reference"] = Cell("s", 0.14, why="the document's own figure")
            rows.append(Row(key, title, cells))
            continue
        if key in {"SSD", "HDD"} and key != kind:
            value = USUAL.get("disk_seek" if key == "HDD" else "ssd_random_4k") or 0.0
            not_this = f"this disk is no {key}" if kind else ""
            reference = Cell("s", value / 1e9, why=f"{USUAL.source}, {USUAL.year}")
            cells = {
                "native": nothing("s", not_this or why_not(native, "storage.read.random", why)),
                "python": nothing("s", not_this or why_disk),
                "reference": reference,
            }
            rows.append(Row(key, title, cells))
            continue
        rung = rungs.get("disk-read" if key == kind else key)
        cell = (
            rung_cell(rung, published)
            if rung is not None and rung.latency_p50_ns
            else nothing(
                "s",
                (rung.note if rung is not None and rung.note else "")
                or why_not(native, "storage.read.random" if key == kind else "memory.load.dependent", why),
                published,
            )
        )
        rows.append(
            Row(
                key,
                title,
                {"native": cell, "python": _python(key, kind, chased, sizes, disk, why_disk)},
            )
        )
    return Table(
        "original",
        "One access at each level",
        "level",
        (
            Column("native", "native"),
            Column("python", "Python"),
            Column("reference", "reference, not measured"),
        ),
        tuple(rows),
        original=True,
        note="Native: dependent loads; brackets hold the 95 % interval or the spread over the level's sizes. Python: a step through an array less the same step through one of 16 KiB, so Python's own cost is taken off once; the disk is read through the cache when that had nothing of the file left."
        f" References: of the packet the document's own figure, of a disk {USUAL.source}, {USUAL.year}.",
    )


def rung_cell(rung: Rung, published: Published | None) -> Cell:
    """A rung as a cell in seconds."""
    value = (rung.latency_p50_ns or 0.0) / 1e9
    low, high = rung.interval or (value * 1e9, value * 1e9)
    return Cell(
        "s", value, min(low / 1e9, value), max(high / 1e9, value), rung.samples, published, rung.interval_kind
    )


def _python(
    key: str,
    kind: str,
    chased: dict[int, Times],
    sizes: list[int],
    disk: dict[str, Times],
    why_disk: str,
) -> Cell:
    if key == kind:
        if "cold" in disk:
            return _quartiles(disk["cold"])
        return nothing("s", why_disk)
    if key == "RAM" and len(sizes) > 1:
        base, far = chased[sizes[0]], chased[sizes[-1]]
        differences = [a - b for a, b in zip(far.values, base.values, strict=True)]
        value = far.median - base.median
        if value <= 0:
            sizes_of = f"{format_bytes(sizes[-1])} took no longer than through {format_bytes(sizes[0])}"
            return nothing("s", f"a step through {sizes_of}: the rounds differ by more than that")
        return Cell(
            "s",
            value,
            min(value, *differences),
            max(value, *differences),
            len(differences),
            why=f"array of {format_bytes(sizes[-1])} less {format_bytes(sizes[0])}",
        )
    return nothing("s", "Python's own steps are longer than this and cannot be told apart from it")


def _quartiles(times: Times) -> Cell:
    low, middle, high = statistics.quantiles(times.values, n=4)
    return Cell("s", middle, low, high, len(times.values), why="median; the brackets hold the middle half")


def bandwidths(
    copied: dict[str, Times],
    disk: dict[str, Times],
    native: Run | None,
    rungs: dict[str, Rung],
    kind: str,
    why_disk: str,
    why: str,
    why_copied: str,
) -> Table:
    """What the document says of each level's bandwidth."""
    rows = []
    for key, published in RATES.items():
        title = LEVELS[key].removesuffix(", 4 KiB at random")
        if key in {"SSD", "HDD"} and key != kind:
            not_this = f"this disk is no {key}" if kind else ""
            rows.append(
                Row(
                    key,
                    title,
                    {
                        "native": nothing(
                            "bytes_per_s",
                            not_this or why_not(native, "storage.read.sequential", why),
                            published,
                        ),
                        "python": nothing("bytes_per_s", not_this or why_disk),
                    },
                )
            )
            continue
        rung = rungs.get(key)
        if key == kind:
            cell = disk_rate(native, "read", "direct", why, published=published)
        elif rung is not None and rung.bandwidth:
            cell = Cell(
                "bytes_per_s",
                rung.bandwidth,
                published=published,
                why=f"one thread, {rung.bandwidth_point}",
            )
        else:
            cell = nothing("bytes_per_s", _no_reading(key, rung, native, why), published)
        if key == kind:
            plain = (
                disk["cold_rate"].cell("bytes_per_s")
                if "cold_rate" in disk
                else nothing("bytes_per_s", why_disk)
            )
        else:
            plain = (
                copied[key].cell("bytes_per_s")
                if key in copied
                else nothing("bytes_per_s", why_copied or "the copies were not measured")
            )
        rows.append(Row(key, title, {"native": cell, "python": plain}))
    if "warm_rate" in disk:
        rows.append(
            Row(
                "cache",
                "the same file from the page cache",
                {
                    "native": disk_rate(native, "read", "buffered-warm", why),
                    "python": disk["warm_rate"].cell("bytes_per_s"),
                },
            )
        )
    return Table(
        "bandwidth",
        "Bandwidth of each level",
        "level",
        (Column("native", "native"), Column("python", "Python")),
        tuple(rows),
        original=True,
        note="Native: reading with one thread; the disk past the page cache, one block after the other. Python: copying bytes within memory, each counted once; the file from front to back when the cache had nothing of it left.",
    )


def _no_reading(key: str, rung: Rung | None, native: Run | None, why: str) -> str:
    """Why a level of memory has no bandwidth."""
    if rung is None or native is None:
        return why_not(native, "memory.bandwidth", why)
    if rung.note and not rung.measured:
        return rung.note
    sizes = [
        record.point.working_set_bytes or 0
        for record in native.select("memory.bandwidth", operation="read", threads=1)
        if record.value is not None
    ]
    if key == "RAM" and sizes:
        return f"the largest size that was read is {format_bytes(max(sizes))}, of which a cache may have answered a part"
    return why_not(native, "memory.bandwidth", why)


def orders(table: Table, why: str) -> Table:
    """How far the disk is from RAM."""
    cells = {}
    for column in ("native", "python"):
        ram = table.cell("RAM", column).number
        disk = next(
            (cell for key in ("SSD", "HDD") if (cell := table.cell(key, column)).number is not None),
            Cell(),
        )
        if ram and ram > 0 and disk.number:
            cells[column] = disk.number / ram
    rows = []
    for name, title in (("disk_over_ram_ratio", "disk over RAM"), ("magnitude", "orders of magnitude")):
        row = {}
        for column in ("native", "python"):
            ratio = cells.get(column)
            if ratio is None:
                row[column] = nothing(
                    "ratio" if "ratio" in name else "count", why or "the disk or RAM has no figure"
                )
            else:
                row[column] = (
                    Cell("ratio", ratio, why="of the two figures above")
                    if "ratio" in name
                    else Cell("text", f"{math.log10(ratio):.1f}", why="its logarithm to base 10")
                )
        rows.append(Row(name, title, row))
    return Table(
        "orders",
        "How far the disk is from RAM",
        "what",
        (Column("native", "native"), Column("python", "Python")),
        tuple(rows),
    )


def chase_table(chased: dict[int, Times], why: str) -> Table:
    """What Python sees by size."""
    rows = [
        Row(f"bytes_{size}", f"array of {format_bytes(size)}", {"python": times.cell()})
        for size, times in sorted(chased.items())
    ]
    if not rows:
        rows = [Row("bytes", "any array", {"python": nothing("s", why)})]
    return Table(
        "chase",
        "A step of Python through an array, by its size",
        "array",
        (Column("python", "Python"),),
        tuple(rows),
        note="Most of it is the interpreter; what grows is memory.",
    )


def answer(table: Table, told: Table) -> tuple[str, ...]:
    """The short answer."""
    column = "native" if told.cell("magnitude", "native").value is not None else "python"
    magnitude, ratio = told.cell("magnitude", column).value, told.cell("disk_over_ram_ratio", column).number
    if magnitude is None or ratio is None:
        return ("Disk and RAM were not both measured here; the reasons are below.",)
    ram, disk = table.cell("RAM", column), table.cell("SSD", column)
    if disk.number is None:
        disk = table.cell("HDD", column)
    arm = "" if column == "native" else " as Python sees it"
    return (
        f"Here{arm}: {magnitude} orders of magnitude. One access to RAM takes {words.figure(ram)}, 4 KiB at a random place of the disk {words.figure(disk)}: {format_count(ratio)} times as long.",
    )


def reasons(
    chased: dict[int, Times], disk: dict[str, Times], rungs: dict[str, Rung], table: Table
) -> list[str]:
    """Causes, with their size here."""
    said = []
    first, last = table.cell("L1", "native").number, table.cell("RAM", "native").number
    if first and last:
        said.append(
            f"The nearer to the core a cache is, the smaller and the faster it is: L1 answers in {format_ns(first * 1e9)}, RAM in {format_ns(last * 1e9)}, {words.plain(last / first)} times as long. What lies between is the way through the caches, the memory's controller, and the memory itself."
        )
    if len(chased) > 1:
        sizes = sorted(chased)
        said.append(
            f"Python hides the caches: a step through {format_bytes(sizes[0])} takes {format_ns(chased[sizes[0]].median * 1e9)}, through {format_bytes(sizes[-1])} {format_ns(chased[sizes[-1]].median * 1e9)}; the interpreter's own work is most of the first."
        )
    if "cold" in disk and "warm" in disk:
        cold, warm = disk["cold"].median, disk["warm"].median
        said.append(
            f"A file's block from the page cache takes {format_ns(warm * 1e9)}, mostly the system call; from the disk {format_ns(cold * 1e9)}: {words.plain(cold / warm)} times. So a program that reads the same file twice seldom waits for the disk the second time."
        )
    ranged = [rung for rung in rungs.values() if rung.is_range and rung.group == "levels"]
    if ranged:
        said.append(
            f"{' and '.join(rung.level for rung in ranged)} moved while measured: {ranged[0].note or 'something else uses the same caches'}."
        )
    said.append(
        f"The packet: {format_count(2 * DISTANCE_M / 1000)} km there and back, in fibre at two thirds of the speed of light, are {format_ns(FLOOR_S * 1e9)} at least. No machine makes that shorter; the document's 140 ms have the detours and the routers in them."
    )
    return said


def misled(table: Table, rates: Table) -> list[Misled]:
    """Where the document misleads."""
    said = []
    column = "native" if table.cell("RAM", "native").number else "python"
    ram, disk = table.cell("RAM", column), table.cell("SSD", column)
    if ram.number and disk.number:
        said.append(
            Misled(
                "It says that the latency of files on disk is “another order of magnitude higher” than that of variables.",
                f"Here it is {math.log10(disk.number / ram.number):.1f} orders of magnitude: {words.figure(ram)} against {words.figure(disk)}. Only a file that is in the page cache is as near as its words say.",
            )
        )
    l1 = rates.cell("L1", "native").number
    ssd = next((cell for arm in ("native", "python") if (cell := rates.cell("SSD", arm)).number), None)
    told = f" One thread reads L1 at {words.rate(l1)} here." if l1 else ""
    said += [
        Misled(
            "It gives L1 and L2 one bandwidth, 1 TB/s, without saying whose.",
            f"Bandwidth of a cache belongs to one core; sums over a chip are other figures.{told}",
        ),
        Misled(
            "It gives SSDs “up to 32 GB/s”.",
            "That is about what a PCIe 5.0 slot of eight lanes carries, not what a drive delivers."
            + (f" Here: {ssd.shown}." if ssd else ""),
        ),
        Misled(
            "Its chart has bars and no figures.",
            "Its description gives the ends, 1 nanosecond and 140 milliseconds; only those are quoted here.",
        ),
    ]
    return said


def answers(rates: Table) -> tuple[Answer, ...]:
    """What else it says."""
    column = "native" if rates.cell("RAM", "native").number else "python"
    figures = [rates.cell(key, column).number for key in ("L1", "L2", "RAM", "SSD")]
    known = [value for value in figures if value]
    if len(known) < 3:
        return ()
    falls = all(a >= b for a, b in pairwise(known))
    verdict = "Yes, here too: from level to level it falls" if falls else "Not at every step here"
    return (
        Answer(
            "Does a lower latency come with a higher bandwidth?",
            f"{verdict} ({', '.join(words.rate(value) for value in known)}).",
        ),
    )


def picture(table: Table) -> Picture:
    """The document's chart: horizontal bars on a logarithmic axis."""
    marks = []
    series = {
        "native": "measured here",
        "python": "measured here in Python",
        "reference": "reference, not measured",
    }
    for row in table.rows:
        found = next((name for name in series if row.cells.get(name, Cell()).number), None)
        if found is not None:
            marks.append(row.cells[found].mark(row.title, series[found]))
    return Picture(
        "ladder",
        "How long does one access take at each level?",
        "bars",
        "one access",
        "s",
        tuple(marks),
        caption="Each step of the axis is ten times the one before. Thin lines: the interval that the table gives.",
    )
