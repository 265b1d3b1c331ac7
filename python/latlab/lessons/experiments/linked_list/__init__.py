"""A million nodes from malloc: where the time goes, and what each improvement saves."""

from __future__ import annotations

import contextlib
import math
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import compiled, words
from latlab.lessons.bench import PLAIN, Bench, Cannot, Times
from latlab.lessons.compiled import Compiler
from latlab.lessons.experiments.linked_list.profile import (
    HELD,
    PROFILED,
    on_cpu,
    others,
    part_cells,
    profiled,
    symbol_cells,
)
from latlab.lessons.experiments.linked_list.ways import (
    ALLOCATORS,
    LIST,
    PLANS,
    WAYS,
    Made,
    Plan,
    Words,
    created,
    library_of,
)
from latlab.lessons.figures import Cell, Published
from latlab.lessons.memory import enough_memory
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import cell_of, findings, probed, records
from latlab.lessons.programs import linked_list as program
from latlab.lessons.template import reported
from latlab.units import format_count

if TYPE_CHECKING:
    from latlab.explain.model import Explained
    from latlab.run.run import Run

QUESTION = "How can we “reduce the latencies” in our code, exactly?"
ORIGIN = "part 1 of a learning path on memory latency: a list of 1,000,000 nodes from malloc()"
PROGRAMS = ("linked_list.c", "list_ways.c", "list_walk.c", "list_overflow.c", "linked_list.py")

CREATION: Final = Published("29473 us", 0.029473)
GUESS = Guess(
    "How many milliseconds does a C program take to create a list of 1,000,000 nodes (with --small 100,000), each by a call of malloc?",
    "original.creation.c",
    CREATION,
)
ORIGINAL_TAKES: Final = Original(
    80, 0, "the list is made in up to 16 ways, 21 times each, and 100 times under latlab explain"
)
#: Name, bytes from node to node, where in a line the first begins.
LAYOUTS: Final = {
    "close": ("32 bytes apart, none across lines", 32, 0),
    "aligned": ("64 bytes apart, each in one line", 64, 0),
    "across": ("64 bytes apart, each across two lines", 64, 48),
}
ORDERS: Final = {
    "in_order": "in the order of memory",
    "shuffled": "in any order",
    "ahead": "in any order, prefetched 16 nodes ahead",
}
#: A program that waits for a CPU for more than this share was not alone.
BUSY: Final = 0.1
#: With five rounds, chance alone would put all pairs on one side once in 16 times; with nine one may be an outlier.
_ENOUGH_ROUNDS: Final = 5
#: Bytes of a node of a Python class, and some room.
_HELD_BY_PYTHON: Final = 300
_PARTS: Final = {
    "explained": "the program under latlab explain",
    "alone": "each node timed alone",
    "walks": "walking the list",
    "overflow": "21 bytes into 20",
}

#: Of a way in Python: seconds to create, walk and free the list, and bytes a node.
InPython = tuple[Times, Times, Times, float]


@dataclass(frozen=True, slots=True)
class Overflow:
    """What the published copy does: figures of the program, and what AddressSanitizer says of both nodes."""

    told: Mapping[str, str]
    sanitized: str
    exact: str
    why: str


@dataclass(frozen=True, slots=True)
class InC:
    """What the C programs showed; empty without a compiler. `alone`: seconds of nodes by each clock."""

    ways: Mapping[str, Made] = field(default_factory=dict)
    explained: Explained | None = None
    alone: Mapping[str, list[float]] = field(default_factory=dict)
    walks: Mapping[str, Mapping[str, Times]] = field(default_factory=dict)
    overflow: Overflow | None = None


def wanted() -> Iterator[str]:
    """What is to be installed for which rows."""
    packages = [package for name, (_, package) in ALLOCATORS.items() if library_of(name) is None]
    if packages:
        yield f"for the rows of other allocators (Debian): apt install {' '.join(packages)}"


def run(bench: Bench) -> Reported:
    """The published program, its profile, each improvement, and the same in Python."""
    plan = PLANS[bench.size]
    lists, programs = "linked lists in Python", "the C programs"
    python = bench.attempt(lists, lambda: in_python(bench, plan)) or {}
    with contextlib.ExitStack() as stack:
        compiler = bench.attempt(programs, lambda: _compiler(bench, plan, stack))
        c = InC() if compiler is None else in_c(bench, compiler, plan)
    native, why_native = probed(
        bench,
        plan.probes,
        "the Rust probes (alloc.nodes, alloc.malloc)",
        profile=plan.profile,
        budget=plan.native_s,
    )
    why = {name: bench.why(what) or bench.why(programs) for name, what in (WAYS | _PARTS).items()}
    explained = c.explained
    return reported(
        __name__,
        **{name: getattr(c, name) for name in InC.__slots__},
        plan=plan,
        symbols=symbol_cells(explained, why["explained"]),
        others=others(explained),
        parts=part_cells(explained) if explained else {},
        profiled_s=explained.wall_s * on_cpu(explained) / PROFILED if explained else math.nan,
        alone_cells=alone_cells(c, plan.nodes),
        python=python,
        native=native_nodes(native),
        native_parts=native_parts(native),
        native_allocators=native_allocators(native),
        why=why | {"python": bench.why(lists), "native": why_native},
        why_c=bench.why(programs),
        why_list=bench.why(LIST),
        why_parts=why_native if native is None else "too few builds in this time for a sum of parts",
    )


def _compiler(bench: Bench, plan: Plan, stack: contextlib.ExitStack) -> Compiler:
    if bench.plain:
        raise Cannot(PLAIN)
    enough_memory(plan.nodes * HELD)
    return Compiler(stack.enter_context(bench.scratch()))


def in_c(bench: Bench, compiler: Compiler, plan: Plan) -> InC:
    """Everything that needs a compiler."""
    listed = bench.attempt(LIST, lambda: compiler.program("linked_list", libraries=("-ldl",)))
    if listed is None:
        return InC()
    own = bench.attempt("a linear allocator and a pool", lambda: compiler.program("list_ways"))
    return InC(
        created(bench, plan, listed, own),
        bench.attempt(_PARTS["explained"], lambda: profiled(listed, plan.runs)),
        bench.attempt(_PARTS["alone"], lambda: each_alone(listed, plan)) or {},
        bench.attempt(_PARTS["walks"], lambda: walked(bench, compiler, plan)) or {},
        bench.attempt(_PARTS["overflow"], lambda: overflowing(compiler)),
    )


# --------------------------------------------------------------------------------------
# what is done


def each_alone(listed: Path, plan: Plan) -> dict[str, list[float]]:
    """Seconds of each node by the published program's clock, and by a finer one."""
    found: dict[str, list[float]] = {"us": [], "ns": []}
    for line in compiled.lines_of(listed, min(plan.nodes, 100_000), "alone"):
        unit, _, number = line.partition(" ")
        found[unit].append(float(number) * (1e-6 if unit == "us" else 1e-9))
    return found


def walked(bench: Bench, compiler: Compiler, plan: Plan) -> dict[str, dict[str, Times]]:
    """Seconds a node of walking the list, by layout and order."""
    walker = compiler.program("list_walk")
    kept: dict[str, list[Words]] = {name: [] for name in LAYOUTS}
    for name in bench.turns(LAYOUTS, plan.rounds, plan.turns_s):
        _, apart, start = LAYOUTS[name]
        found = compiled.reported(walker, plan.nodes, apart, start)
        if any(found[f"{order}_whole"] != str(plan.nodes) for order in ORDERS):
            raise Cannot("a proof failed: a walk did not visit each node")
        kept[name].append(found)
    return {
        name: {
            order: Times(tuple(float(each[f"{order}_s"]) / plan.nodes for each in found)) for order in ORDERS
        }
        for name, found in kept.items()
    }


def overflowing(compiler: Compiler) -> Overflow:
    """The published copy, plainly and under AddressSanitizer."""
    found = compiled.reported(compiler.program("list_overflow"))
    said, why = [], ""
    for tag, flags in (("-asan", ()), ("-exact", ("-DEXACT",))):
        try:
            program = compiler.program("list_overflow", "-g", "-fsanitize=address", *flags, tag=tag)
            done = compiled.ran(program, environment={"ASAN_OPTIONS": "detect_leaks=0"})
        except (Cannot, subprocess.TimeoutExpired, OSError) as error:
            why = f"AddressSanitizer is not here: {error}"
            break
        lines = done.stderr.splitlines()
        line = next((line for line in lines if "ERROR: AddressSanitizer" in line), "")
        if done.returncode == 0:
            said.append("no error")
        elif "heap-buffer-overflow" in line:
            wrote = next((line.strip() for line in lines if line.startswith("WRITE of size")), "")
            said.append(f"heap-buffer-overflow, {wrote.partition(' at ')[0]}")
        else:
            why = f"AddressSanitizer does not run here: {line or done.returncode}"
            break
    sanitized, exact = (*said, "", "")[:2]
    return Overflow(found, sanitized, exact, why)


def in_python(bench: Bench, plan: Plan) -> dict[str, InPython]:
    """Seconds to create, walk and free, and bytes a node, of each way in Python."""
    enough_memory(plan.python_nodes * _HELD_BY_PYTHON)
    kept: dict[str, list[tuple[float, float, float]]] = {name: [] for name in program.WAYS}
    for name in bench.turns(program.WAYS, plan.python_rounds):
        kept[name].append(program.create(name, plan.python_nodes))
    found = {}
    for name, rounds in kept.items():
        creating, walking, freeing = (Times(column) for column in zip(*rounds, strict=True))
        found[name] = creating, walking, freeing, program.bytes_a_node(name, 10_000)
    return found


# --------------------------------------------------------------------------------------
# what follows from it


def by_time(ways: Mapping[str, Made]) -> list[str]:
    """The ways, the fastest first."""
    return sorted(ways, key=lambda name: ways[name].created.median)


def fault_s(ways: Mapping[str, Made]) -> float | None:
    """What a page fault of the linear way costs: the list on new pages less the list on old ones."""
    new, old = ways.get("linear"), ways.get("touched")
    if new is None or old is None:
        return None
    faults = new.faults.median - old.faults.median
    cost = new.created.median - old.created.median
    return cost / faults if faults > 0 and cost > 0 else None


def compared(before: Times, after: Times, what: str) -> str:
    """Whether a difference is more than run-to-run variation; of none nothing is said."""
    rounds = min(len(before.values), len(after.values))
    if not rounds:
        return ""
    ratio = before.over(after)
    # A difference of some percent is one too: with two digits it would be 1.0.
    times = words.ratio(ratio, 3)
    if rounds < _ENOUGH_ROUNDS:
        many = "one round" if rounds == 1 else f"{format_count(rounds)} rounds"
        return f"{what} was tried in {many}, too few to conclude: without it, creation takes {times} as long."
    if ratio.above(1):
        return f"{what} saves time: {times}."
    if ratio.below(1):
        return f"{what} costs time: {words.ratio(after.over(before), 3)} as long."
    return f"{what} makes no difference beyond run-to-run variation: {times}."


def alone_cells(c: InC, nodes: int) -> dict[str, Cell]:
    """One node alone, and a million at once."""
    if not c.alone:
        return {}
    coarse, fine = c.alone["us"], sorted(c.alone["ns"])
    count, mean = len(fine), statistics.fmean(fine)
    # To a last digit that nobody reads, statistics.pstdev takes a hundred times as long.
    deviation_of_nodes = math.dist(fine, [mean] * count) / math.sqrt(count)
    why = f"of {format_count(count)} nodes, each timed alone"

    def at(share: float) -> Cell:
        return Cell("s", fine[min(int(share * count), count - 1)], why=why)

    cells = {
        "zeros": Cell("share", sum(value == 0 for value in coarse) / count, why=why),
        "middle": at(0.5),
        "slow": at(0.999),
        "slowest": at(1.0),
        "deviation_ratio": Cell("ratio", deviation_of_nodes / mean, why=why),
    }
    if "malloc" in c.ways:
        lists = c.ways["malloc"].created
        deviation = statistics.pstdev(lists.values) / statistics.fmean(lists.values)
        cells |= {
            "in_list": lists.cell(divide=nodes),
            "alone_ratio": Cell("ratio", mean / (lists.median / nodes), why="includes the clock's own time"),
            "list_deviation_ratio": Cell("ratio", max(deviation, 1e-6), why=f"of {len(lists.values)} lists"),
        }
    return cells


def scaled(cell: Cell, nodes: int) -> Cell:
    """So many of it."""
    value, low, high = (None if each is None else each * nodes for each in (cell.number, cell.low, cell.high))
    return replace(cell, value=value, low=low, high=high)


def native_nodes(run: Run | None) -> dict[str, Cell]:
    """What a node costs in the Rust probe, by way."""
    found: dict[str, Cell] = {}
    for record in records(run, "alloc.nodes", "batch_mean"):
        if record.point.operation and record.value:
            found.setdefault(record.point.operation, cell_of(record))
    return found


def native_parts(run: Run | None) -> dict[str, float]:
    """Ns a node of malloc's parts."""
    for record in records(run, "alloc.nodes", "derived"):
        if parts := findings(record).section("parts"):
            return {name: value for name in parts if (value := parts.number(name)) is not None}
    return {}


def native_allocators(run: Run | None) -> Iterator[tuple[str, int, str, Cell]]:
    """What malloc and free of a node's size cost, by allocator."""
    for record in records(run, "alloc.malloc", "batch_mean", size_bytes=32, placement="same-thread"):
        if record.value and record.point.allocator:
            yield record.point.allocator, 32, record.point.state or "", cell_of(record)
