"""What `latlab explain` says of the published program: the shares of its symbols, and of a few parts."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import Cannot, nothing
from latlab.lessons.figures import Cell, Published
from latlab.lessons.memory import enough_memory
from latlab.lessons.processes import run_whole
from latlab.units import format_percent

if TYPE_CHECKING:
    from latlab.explain.model import Explained, Function

#: Nodes of the program that is profiled, at every size: a shorter run is over before it is sampled.
PROFILED: Final = 1_000_000
#: Bytes that the largest of our C programs holds for a node, and some room.
HELD: Final = 80
_EXPLAINS_S: Final = 60.0
#: Fewer samples than this make no profile.
_FEWEST: Final = 30
#: Functions of this machine that are listed beside the source's.
_OTHERS: Final = 10
#: The profile of the source: a symbol's share.
SHARES: Final = {
    "malloc": Published("24.62%", 0.2462),
    "int_malloc": Published("23.70%", 0.2370),
    "clear_page": Published("17.14%", 0.1714),
    "get_page_from_freelist": Published("5.77%", 0.0577),
    "unmap_page_range": Published("4.01%", 0.0401),
    "free_unref_page_list": Published("3.34%", 0.0334),
    "main": Published("2.03%", 0.0203),
}
SYMBOLS: Final = (*SHARES, "free")
#: Beginnings of the names that a symbol has.
_NAMES: Final = {
    "malloc": ("malloc", "__libc_malloc"),
    "int_malloc": ("_int_malloc", "sysmalloc", "unlink_chunk", "malloc_consolidate", "alloc_perturb"),
    "clear_page": (
        "clear_page",
        "__pi_clear_page",
        "clear_huge_page",
        "clear_subpage",
        "clear_user_highpage",
    ),
    "get_page_from_freelist": ("get_page_from_freelist",),
    "unmap_page_range": ("unmap_page_range", "zap_p"),
    "free_unref_page_list": ("free_unref_page_list", "free_unref_folios"),
    "free": ("free", "cfree", "__libc_free", "_int_free"),
}
_USER: Final = ("malloc", "int_malloc", "free", "main")
_EXACT: Final = ("malloc", "free", "get_page_from_freelist", "free_unref_page_list")
#: Categories in which the program is not on a CPU: perf, whose profile the source shows, does not see them.
_WAITS: Final = (
    *("run-queue-wait", "sleep", "storage-wait", "network", "pipe", "locks", "waiting-for-children"),
    "interrupts-for-others",
)
_OWN_CODE: Final = ("compute", "memory-copy", "garbage-collection")
#: What `explain` knows at each level.
_LEVEL: Final = {
    1: "no sample fell into it",
    2: "at level 2, only the program's own code is sampled; the kernel's work is counted",
    3: "at level 3 latlab cannot sample a program's code; the kernel's work is counted and priced",
}


def profiled(listed: Path, runs: int) -> Explained:
    """The published program under `latlab explain`, run often enough for its shares.

    Raises:
        Cannot: too little memory, an accounting error, or there were too few samples for a profile.
    """
    enough_memory(PROFILED * HELD)
    found = _explained(listed, runs)
    if found.level < 3 and found.observer.samples < _FEWEST:
        found = _explained(listed, 4 * runs)
    if not found.closure.holds:
        raise Cannot(f"its shares sum to {format_percent(found.closure.sum)}")
    if found.level < 3 and found.observer.samples < _FEWEST:
        raise Cannot(
            f"{found.observer.samples} samples in {found.runs} runs are too few for a profile: the "
            "machine is busy, or the runs are too short"
        )
    return found


def _explained(listed: Path, runs: int) -> Explained:
    import msgspec  # noqa: PLC0415 - the core is not there everywhere

    from latlab.explain.model import Explained  # noqa: PLC0415 - see above

    target, errors = listed.parent / "explained.json", listed.parent / "errors"
    command = [sys.executable, "-m", "latlab", "explain", "--no-limits", "--runs", str(runs)]
    with errors.open("wb") as said:
        code = run_whole(
            [*command, "--json", str(target), "--", str(listed), str(PROFILED)],
            _EXPLAINS_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    if code:
        raise subprocess.CalledProcessError(code, command, stderr=errors.read_bytes())
    return msgspec.json.decode(target.read_bytes(), type=Explained)


def on_cpu(explained: Explained) -> float:
    """Share of wall time in which the program was on a CPU."""
    return max(1 - explained.share(*_WAITS), 0.01)


def symbol_cells(explained: Explained | None, why: str = "") -> dict[str, Cell]:
    """Shares of the published symbols, of the time on a CPU; at level 1 also of start and end, and the rest."""
    if explained is None:
        why = why or "latlab explain was not run"
        return {name: nothing("share", why, SHARES.get(name)) for name in SYMBOLS}
    cells, known = {}, 0.0
    for name in SYMBOLS:
        found = [each.share for row in explained.categories for each in row.functions if _is(name, each)]
        if found and _sees(explained, name):
            share = sum(found) / on_cpu(explained)
            known += share
            cells[name] = sampled(explained, share, SHARES.get(name))
        else:
            cells[name] = nothing("share", _no_share(explained, name), SHARES.get(name))
    if explained.level == 1:
        ends = explained.share("start-and-exit") / on_cpu(explained)
        cells["start_and_exit"] = Cell("share", ends, why="by counts and samples: see the next table")
        known += ends + sum(cell.number or 0.0 for cell in others(explained).values())
        cells["rest"] = Cell("share", max(1 - known, 0.0), why="everything not in this table")
    return cells


def others(explained: Explained | None) -> dict[str, Cell]:
    """The functions with the largest shares that the source does not list, of the time on a CPU.

    Those of the program's start and end are one part by themselves.
    """
    if explained is None:
        return {}
    found: dict[str, float] = {}
    for row in explained.categories:
        if row.name not in {"start-and-exit", *_WAITS}:
            for each in row.functions:
                if not any(_is(name, each) for name in SYMBOLS):
                    found[each.name] = found.get(each.name, 0.0) + each.share
    largest = sorted(found.items(), key=lambda each: -each[1])[:_OTHERS]
    return {name: sampled(explained, share / on_cpu(explained)) for name, share in largest if share}


def _sees(explained: Explained, name: str) -> bool:
    return explained.level == 1 or (explained.level == 2 and name in _USER)


def _is(name: str, function: Function) -> bool:
    kernel = function.object == "[kernel]"
    if name == "main":
        return function.object == "linked_list"
    if kernel == (name in _USER):
        return False
    if name in _EXACT:
        return function.name.partition("@")[0] in _NAMES[name]
    return function.name.startswith(_NAMES[name])


def _no_share(explained: Explained, name: str) -> str:
    if not _sees(explained, name):
        raised = f"; to see more: {explained.raise_}" if explained.raise_ else ""
        return f"{_LEVEL[explained.level]}{raised}"
    if name in {"unmap_page_range", "free_unref_page_list"}:
        return (
            "latlab explain counts the end of a program, which frees its memory, as one: see the next table"
        )
    return "no or few samples fell into a function of that name"


def sampled(explained: Explained, share: float, published: Published | None = None) -> Cell:
    """A share of so many samples, with what chance makes of it (Wilson's 95 % interval)."""
    count = max(explained.observer.samples, 1)
    square = 1.96**2 / count
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(max(share * (1 - share), 0.0) * square + square**2 / 4) / (1 + square)
    ends = max(middle - reach, 0.0), min(middle + reach, 1.0)
    why = f"{count} samples of {explained.runs} runs; 95 % interval"
    return Cell.within("share", share, ends, count, published, why)


def part_cells(explained: Explained) -> dict[str, Cell]:
    """The program's wall time in a few parts that sum to all of it; a part that the level cannot tell has no figure."""
    used = set[str]()

    def of(*names: str) -> Cell:
        rows = [row for row in explained.categories if row.name in names]
        used.update(row.name for row in rows)
        ends = sum(row.low for row in rows), sum(row.high for row in rows)
        whole = sum(row.share for row in rows)
        return Cell.within("share", whole, ends, max(explained.runs, 1), why="95 % interval")

    def in_the_kernel(name: str) -> Cell:
        kernel = explained.row("kernel-cpu")
        for part in kernel.counted if kernel else ():
            if part.name == name:
                reported = f"{format_percent(part.low)} to {format_percent(part.high)}"
                return nothing("share", f"the kernel's work is not divided: {reported} of the time")
        return of(name)

    cells: dict[str, Cell] = {}
    if explained.level < 3:
        cells["allocator"] = of("allocator")
        cells["main"] = of(*_OWN_CODE)
    else:
        own = explained.row("user-cpu")
        within = {each.name: each for each in (own.within if own else ())}
        for name, category in (("allocator", "allocator"), ("main", "compute")):
            each = within.get(category)
            reported = f": between {format_percent(each.low)} and {format_percent(each.high)}" if each else ""
            cells[name] = nothing("share", f"{_LEVEL[3]}{reported}")
        cells["user_cpu"] = of("user-cpu", "allocator", *_OWN_CODE)
    faults = explained.row("page-faults")
    clearing = sum(each.share for each in (faults.functions if faults else ()) if _is("clear_page", each))
    if explained.level == 1 and faults is not None and clearing > 0:
        used.add("page-faults")
        cells["page_clearing"] = sampled(explained, clearing)
        cells["page_faults"] = sampled(explained, max(faults.share - clearing, 0.0))
    else:
        cells["page_clearing"] = nothing("share", _LEVEL[explained.level])
        cells["page_faults"] = in_the_kernel("page-faults")
    cells["start_and_exit"] = in_the_kernel("start-and-exit")
    cells["waiting"] = of("run-queue-wait")
    cells["unexplained"] = of("unexplained")
    cells["rest"] = of(*(row.name for row in explained.categories if row.name not in used))
    return cells
