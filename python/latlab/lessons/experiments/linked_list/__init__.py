"""A million nodes from malloc: where the time goes, and what each improvement saves."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import PLAIN, Bench, Cannot, Times, enough_memory, nothing
from latlab.lessons.compiled import Compiler, ran, told, usual_environment
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
)
from latlab.lessons.native import cell_of, why_not
from latlab.lessons.processes import run_whole
from latlab.lessons.programs import linked_list as program
from latlab.units import format_bytes, format_count, format_ns, format_percent

if TYPE_CHECKING:
    from latlab.explain.model import Explained, Function
    from latlab.run.run import Run

QUESTION = "How can we “reduce the latencies” in our code, exactly?"
ORIGIN = "part 1 of a learning path on memory latency: a list of 1,000,000 nodes from malloc()"
PROGRAMS = ("linked_list.c", "list_ways.c", "list_walk.c", "list_overflow.c", "linked_list.py")

CREATION: Final = Published("29473 us", 0.029473)
GUESS = Guess(
    "How many milliseconds does a C program take to create a list of 1,000,000 nodes, each by a call of malloc?",
    "original.creation.c",
    CREATION,
)
ORIGINAL_TAKES: Final = Original(
    80, 0, "the list is made in up to 16 ways, 21 times each, and 100 times under latlab explain"
)
#: The profile of the document: what it calls a symbol, and its share.
SHARES: Final = {
    "malloc": Published("24.62%", 0.2462),
    "int_malloc": Published("23.70%", 0.2370),
    "clear_page": Published("17.14%", 0.1714),
    "get_page_from_freelist": Published("5.77%", 0.0577),
    "unmap_page_range": Published("4.01%", 0.0401),
    "free_unref_page_list": Published("3.34%", 0.0334),
    "main": Published("2.03%", 0.0203),
}
SYMBOLS: Final = {
    "malloc": "malloc",
    "int_malloc": "_int_malloc",
    "clear_page": "clearing pages (__pi_clear_page there)",
    "get_page_from_freelist": "get_page_from_freelist",
    "unmap_page_range": "unmap_page_range or zap_pte_range",
    "free_unref_page_list": "free_unref_page_list or free_unref_folios",
    "main": "main and what is compiled into it",
    "free": "free and _int_free (not listed there)",
}
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

PARTS: Final = {
    "allocator": "the allocator (malloc, free, growing the heap)",
    "user_cpu": "the program's own code and the allocator, not separable at this level",
    "page_clearing": "clearing new pages",
    "page_faults": "page faults but for that",
    "main": "main: the list itself",
    "start_and_exit": "loading the program, and giving its memory back at its end",
    "waiting": "ready to run, while other programs had the CPU",
    "unexplained": "not explained",
    "rest": "everything else",
}
#: Categories in which the program is not on a CPU: perf, whose profile the document shows, does not see them.
_WAITS: Final = (
    *("run-queue-wait", "sleep", "storage-wait", "network", "pipe", "locks", "waiting-for-children"),
    "interrupts-for-others",
)

WAYS: Final = {
    "malloc": "malloc, one call a node (the document)",
    "again": "malloc, from what was freed before",
    "linear": "linear allocator: a pointer moves on",
    "populated": "linear, all pages in one call (MAP_POPULATE)",
    "huge": "linear, in pages of 2 MiB (madvise)",
    "touched": "linear, pages that were there before",
    "prefetched": "linear, each line asked for 512 bytes ahead",
    "aligned": "linear, a line of 64 bytes for each node",
    "across": "linear, each node across two lines",
    "pool": "pool: nodes that were given back before",
    "top_pad": "malloc, heap grown by 64 MiB (top_pad)",
    "mmap_threshold": "malloc, mmap_threshold of 32 MiB",
    "hugetlb": "malloc, heap in huge pages (hugetlb)",
    "jemalloc": "malloc of jemalloc, preloaded",
    "tcmalloc": "malloc of tcmalloc, preloaded",
    "mimalloc": "malloc of mimalloc, preloaded",
}
#: Those of the program list_ways.c, with the bytes from node to node.
_OWN: Final = {
    "linear": 32,
    "populated": 32,
    "huge": 32,
    "touched": 32,
    "prefetched": 32,
    "aligned": 64,
    "across": 64,
    "pool": 32,
}
_PAD: Final = 64 << 20
TUNABLES: Final = {
    "top_pad": f"glibc.malloc.top_pad={_PAD}",
    "mmap_threshold": f"glibc.malloc.mmap_threshold={32 << 20}",
    "hugetlb": "glibc.malloc.hugetlb=1",
}
#: Names of the libraries, and Debian's packages.
ALLOCATORS: Final = {
    "jemalloc": (("libjemalloc.so.2", "libjemalloc.so"), "libjemalloc2"),
    "tcmalloc": (
        ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so"),
        "libtcmalloc-minimal4",
    ),
    "mimalloc": (
        ("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"),
        "libmimalloc2.0",
    ),
}
#: Name, bytes from node to node, where in a line the first begins.
LAYOUTS: Final = {
    "close": ("32 bytes apart, none across lines", 32, 0),
    "aligned": ("64 bytes apart, each in one line", 64, 0),
    "across": ("64 bytes apart, each across two lines", 64, 48),
}
ORDERS: Final = {
    "in_order": "in the order of memory",
    "shuffled": "in any order",
    "ahead": "in any order, 16 nodes asked for ahead",
}
PYTHON: Final = {
    "class": "objects of a class",
    "slots": "objects of a class with __slots__",
    "tuples": "pairs (text, rest)",
    "deque": "collections.deque: a linked list in C",
    "list": "list: no links",
    "array": "array of links and bytes of texts: no objects",
}
#: What `explain` knows at each level.
_SIGHT: Final = {
    2: "at level 2 only the program's own code is sampled, the kernel's is counted",
    3: "at level 3 nothing looks into a program's code; the kernel's work is counted and priced",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything.

    Attributes:
        nodes: In C.
        rounds: Of the ways and of the walks, at most.
        runs: Under explain.
        python_nodes: In Python.
        python_rounds: Of them.
        probes: Of the native arm.
        profile: Its profile.
        native_s: Its seconds.
        turns_s: Seconds of the rounds of the ways, and again of the walks.
    """

    nodes: int
    rounds: int
    runs: int
    python_nodes: int
    python_rounds: int
    probes: str = "alloc.nodes,alloc.malloc"
    profile: str = "standard"
    native_s: float = 12.0
    turns_s: float = 10.0


PLANS: Final = {
    "small": Plan(100_000, 3, 10, 10_000, 3, "alloc.nodes", "quick", 1.2),
    "default": Plan(1_000_000, 7, 30, 300_000, 3),
    "original": Plan(1_000_000, 21, 100, 1_000_000, 5, turns_s=math.inf),
}
#: Nodes of the program that is profiled, at every size: a shorter run is over before it is sampled.
_PROFILED: Final = 1_000_000
_EXPLAINS_S: Final = 60.0
#: Fewer samples than this make no profile.
_FEWEST: Final = 30
#: A program that waits for a CPU for more than this share was not alone.
_BUSY: Final = 0.1
#: Bytes that the largest of our C programs holds for a node, and some room.
_HELD: Final = 80
#: Bytes of a node of a Python class, and some room.
_HELD_BY_PYTHON: Final = 300


@dataclass(frozen=True, slots=True)
class Made:
    """One way of creating the list: seconds of each part, page faults, bytes a node, share of nodes across lines."""

    created: Times
    faults: Times
    freed: Times | None
    bytes: float
    across: float


@dataclass(frozen=True, slots=True)
class Overflow:
    """What the document's copy does: figures of the program, and what AddressSanitizer says of both nodes."""

    told: Mapping[str, str]
    sanitized: str
    exact: str
    why: str


@dataclass(frozen=True, slots=True)
class InC:
    """What the C programs showed; empty without a compiler."""

    ways: dict[str, Made] = field(default_factory=dict)
    alone: dict[str, list[float]] = field(default_factory=dict)
    walks: dict[str, dict[str, Times]] = field(default_factory=dict)
    overflow: Overflow | None = None
    explained: Explained | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was found."""

    plan: Plan
    c: InC
    why_c: str
    why_explained: str
    python: dict[str, tuple[Times, Times, Times, float]]
    native: Run | None
    why_native: str


def run(bench: Bench) -> Told:
    """The document's program, its profile, each improvement, and the same in Python."""
    plan = PLANS[bench.size]
    python = bench.attempt("linked lists in Python", lambda: in_python(bench, plan)) or {}
    what = "the C programs"
    with contextlib.ExitStack() as stack:
        compiler = bench.attempt(what, lambda: _compiler(bench, plan, stack))
        why_c = bench.why(what)
        in_c = InC() if compiler is None else _in_c(bench, compiler, plan)
    native_name = "the native arm (probes alloc.nodes, alloc.malloc)"
    native = bench.native(native_name, plan.probes, profile=plan.profile, budget=plan.native_s)
    found = Evidence(plan, in_c, why_c, bench.why(_EXPLAIN) or why_c, python, native, bench.why(native_name))
    whys = {name: bench.why(text) or why_c or bench.why(_WAYS_WHAT) for name, text in WAYS.items()}
    tables = [
        original(found),
        symbols(found),
        parts(found),
        ways_table(found, whys),
        walk_table(found, bench.why(_WALK)),
        alone_table(found, bench.why(_ALONE)),
        overflow_table(found, bench.why(_OVERFLOW)),
        python_table(found, bench.why("linked lists in Python")),
        native_table(found),
    ]
    return Told(
        answer=answer(found),
        tables=tuple(tables),
        pictures=tuple(pictures(found)),
        reasons=tuple(reasons(found)),
        misled=tuple(misled(found)),
        answers=tuple(answers(found)),
        further=(
            "latlab explain -- ./your-program: where your own program's time goes",
            "latlab measure --only alloc.nodes,alloc.malloc --profile thorough: malloc by size, thread and allocator",
            "GLIBC_TUNABLES=glibc.malloc.top_pad=67108864 ./your-program: no compiler needed",
            "latlab lesson heat-equation: the same question in Python",
        ),
        charts=("nodes", "allocation"),
    )


_EXPLAIN: Final = "the program under latlab explain"
_WAYS_WHAT: Final = "the list from malloc"
_WALK: Final = "walking the list"
_ALONE: Final = "each node timed alone"
_OVERFLOW: Final = "21 bytes into 20"


def _compiler(bench: Bench, plan: Plan, stack: contextlib.ExitStack) -> Compiler:
    if bench.plain:
        raise Cannot(PLAIN)
    enough_memory(plan.nodes * _HELD)
    return Compiler(stack.enter_context(bench.scratch()))


def _in_c(bench: Bench, compiler: Compiler, plan: Plan) -> InC:
    """Everything that needs a compiler."""
    listed = bench.attempt(_WAYS_WHAT, lambda: compiler.program("linked_list", libraries=("-ldl",)))
    if listed is None:
        return InC()
    own = bench.attempt("a linear allocator and a pool", lambda: compiler.program("list_ways"))
    return InC(
        ways=created(bench, plan, listed, own),
        explained=bench.attempt(_EXPLAIN, lambda: profiled(listed, plan)),
        alone=bench.attempt(_ALONE, lambda: each_alone(listed, plan)) or {},
        walks=bench.attempt(_WALK, lambda: walked(bench, compiler, plan)) or {},
        overflow=bench.attempt(_OVERFLOW, lambda: overflowing(compiler)),
    )


# ----------------------------------------------------------------------------------------------------------
# what is done


def created(bench: Bench, plan: Plan, listed: Path, own: Path | None) -> dict[str, Made]:
    """Every way that this machine has, in turns; without malloc's list none, as all are compared with it."""
    nodes = plan.nodes
    asked: dict[str, Callable[[], dict[str, str]]] = {
        "malloc": lambda: told(listed, nodes, "proof"),
    }
    if own is not None:
        asked |= {name: functools.partial(told, own, name, nodes) for name in _OWN}
    asked |= {name: functools.partial(tuned, listed, nodes, name) for name in TUNABLES}
    asked |= {name: functools.partial(preloaded, listed, nodes, name) for name in ALLOCATORS}

    def once(name: str) -> dict[str, str]:
        return _whole(asked[name](), nodes)

    firsts = {name: bench.attempt(WAYS[name], functools.partial(once, name)) for name in asked}
    able = {name: first for name, first in firsts.items() if first is not None}
    _without_huge_pages(bench, able)
    kept: dict[str, list[dict[str, str]]] = {name: [] for name in able}
    for name in bench.turns(able, plan.rounds, plan.turns_s):
        if name in kept:
            again = bench.attempt(WAYS[name], functools.partial(once, name), told=False)
            if again is None:
                del kept[name]
            else:
                kept[name].append(again)
    if "malloc" not in kept:
        bench.keep_why(
            _WAYS_WHAT, f"there is no list from malloc to compare with: {bench.why(WAYS['malloc'])}"
        )
        return {}
    made = {
        name: Made(
            _all(values, "created_s"),
            _all(values, "created_faults"),
            _all(values, "freed_s"),
            float(_OWN.get(name, 0) or values[0]["apart"]),
            float(values[0]["across"]) / nodes,
        )
        for name, values in kept.items()
    }
    own_again = kept["malloc"]
    made["again"] = Made(
        _all(own_again, "again_s"),
        _all(own_again, "again_faults"),
        None,
        made["malloc"].bytes,
        made["malloc"].across,
    )
    return made


def _without_huge_pages(bench: Bench, able: dict[str, dict[str, str]]) -> None:
    """Takes away the ways with huge pages where none came."""
    for name, usual in (("huge", "linear"), ("hugetlb", "malloc")):
        small = able.get(usual) or able.get("malloc")
        if name not in able or small is None:
            continue
        faults, without = (float(found["created_faults"]) for found in (able[name], small))
        if faults > without / 2:
            bench.lacks(
                WAYS[name],
                f"no or few huge pages came ({_huge_pages()}): {format_count(faults)} page faults, without them {format_count(without)}",
            )
            del able[name]


def _all(kept: list[dict[str, str]], name: str) -> Times:
    return Times(tuple(float(each[name]) for each in kept))


def _whole(found: dict[str, str], nodes: int) -> dict[str, str]:
    """The program's words, when it met each node of the list with its text.

    Raises:
        Cannot: it did not.
    """
    if found.get("whole") != str(nodes):
        raise Cannot(f"a proof failed: {found.get('whole', 'none')} of {nodes} nodes were whole")
    return found


def tuned(listed: Path, nodes: int, name: str) -> dict[str, str]:
    """The document's program with a setting of glibc's malloc.

    Raises:
        Cannot: another C library, or the setting had no effect.
    """
    if platform.libc_ver()[0] != "glibc":
        raise Cannot("these settings are of glibc, which is not the C library here")
    found = told(listed, nodes, "proof", environment={"GLIBC_TUNABLES": TUNABLES[name]})
    if name == "top_pad" and int(found["ahead"]) < _PAD:
        raise Cannot("the setting had no effect: the heap was not grown by 64 MiB")
    return found


def preloaded(listed: Path, nodes: int, name: str) -> dict[str, str]:
    """The document's program with another allocator.

    Raises:
        Cannot: it is not installed, or did not answer.
    """
    library = library_of(name)
    if library is None:
        raise Cannot(f"it is not installed (Debian: apt install {ALLOCATORS[name][1]})")
    found = told(listed, nodes, "proof", environment={"LD_PRELOAD": str(library)})
    if name not in Path(found["library"]).name:
        raise Cannot(f"{library} was preloaded, but malloc is that of {found['library']}")
    return found


def library_of(name: str) -> Path | None:
    """Where an allocator lies; None where it does not."""
    roots = [Path(root) for root in ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib")]
    triple = f"{platform.machine()}-linux-gnu"
    folders = [Path(text) for text in os.environ.get("LD_LIBRARY_PATH", "").split(":") if text]
    folders += [folder for root in roots for folder in (root / triple, root)]
    return next(
        (path for folder in folders for file in ALLOCATORS[name][0] if (path := folder / file).is_file()),
        None,
    )


def _huge_pages() -> str:
    with contextlib.suppress(OSError):
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
        return f"transparent_hugepage is {text.partition('[')[2].partition(']')[0]}"
    return "this kernel has no transparent huge pages"


def profiled(listed: Path, plan: Plan) -> Explained:
    """The document's program under `latlab explain`, run often enough for its shares.

    Raises:
        Cannot: too little memory, its books do not close, or there were too few samples for a profile.
    """
    enough_memory(_PROFILED * _HELD)
    found = _explained(listed, plan.runs)
    if found.level < 3 and found.observer.samples < _FEWEST:
        found = _explained(listed, 4 * plan.runs)
    if not found.closure.holds:
        raise Cannot(f"its shares sum to {format_percent(found.closure.sum)}")
    if found.level < 3 and found.observer.samples < _FEWEST:
        raise Cannot(
            f"{found.observer.samples} samples in {found.runs} runs make no profile: the machine is busy, or the runs are too short"
        )
    return found


def _explained(listed: Path, runs: int) -> Explained:
    import msgspec  # noqa: PLC0415 - the core is not there everywhere

    from latlab.explain.model import Explained  # noqa: PLC0415 - see above

    target, errors = listed.parent / "explained.json", listed.parent / "errors"
    command = [sys.executable, "-m", "latlab", "explain", "--no-limits", "--runs", str(runs)]
    with errors.open("wb") as said:
        code = run_whole(
            [*command, "--json", str(target), "--", str(listed), str(_PROFILED)],
            _EXPLAINS_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            environment=usual_environment(),
        )
    if code:
        raise subprocess.CalledProcessError(code, command, stderr=errors.read_bytes())
    return msgspec.json.decode(target.read_bytes(), type=Explained)


def each_alone(listed: Path, plan: Plan) -> dict[str, list[float]]:
    """Seconds of each node by the document's clock, and by a finer one."""
    done = ran(listed, min(plan.nodes, 100_000), "alone")
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, listed.name, done.stdout, done.stderr)
    found: dict[str, list[float]] = {"us": [], "ns": []}
    for line in done.stdout.splitlines():
        unit, _, number = line.partition(" ")
        found[unit].append(float(number) * (1e-6 if unit == "us" else 1e-9))
    return found


def walked(bench: Bench, compiler: Compiler, plan: Plan) -> dict[str, dict[str, Times]]:
    """Seconds a node of walking the list, by layout and order."""
    walker = compiler.program("list_walk")
    kept: dict[str, list[dict[str, str]]] = {name: [] for name in LAYOUTS}

    def arm(name: str) -> Callable[[], float]:
        _, apart, start = LAYOUTS[name]

        def once() -> float:
            found = told(walker, plan.nodes, apart, start)
            if any(found[f"{order}_whole"] != str(plan.nodes) for order in ORDERS):
                raise Cannot("a proof failed: a walk did not meet each node")
            kept[name].append(found)
            return float(found["shuffled_s"])

        return once

    bench.times({name: arm(name) for name in LAYOUTS}, plan.rounds, plan.turns_s)
    return {
        name: {
            order: Times(tuple(float(each[f"{order}_s"]) / plan.nodes for each in kept[name]))
            for order in ORDERS
        }
        for name in LAYOUTS
    }


def overflowing(compiler: Compiler) -> Overflow:
    """The document's copy, plainly and under AddressSanitizer."""
    found = told(compiler.program("list_overflow"))
    said, why = [], ""
    for tag, flags in (("-asan", ()), ("-exact", ("-DEXACT",))):
        try:
            program = compiler.program("list_overflow", "-g", "-fsanitize=address", *flags, tag=tag)
            done = ran(program, environment={"ASAN_OPTIONS": "detect_leaks=0"})
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


def in_python(bench: Bench, plan: Plan) -> dict[str, tuple[Times, Times, Times, float]]:
    """Seconds to create, walk and free, and bytes a node, of each way in Python."""
    enough_memory(plan.python_nodes * _HELD_BY_PYTHON)
    kept: dict[str, list[tuple[float, float, float]]] = {name: [] for name in PYTHON}

    def arm(name: str) -> Callable[[], float]:
        def once() -> float:
            kept[name].append(program.create(name, plan.python_nodes))
            return kept[name][-1][0]

        return once

    bench.times({name: arm(name) for name in PYTHON}, plan.python_rounds)
    found = {}
    for name, values in kept.items():
        creating, walking, freeing = (Times(column) for column in zip(*values, strict=True))
        found[name] = (creating, walking, freeing, program.bytes_a_node(name, 10_000))
    return found


# ----------------------------------------------------------------------------------------------------------
# what is told: tables


def original(found: Evidence) -> Table:
    """The document's one timing."""
    plan = found.plan
    count = format_count(plan.nodes)
    record = _native_node(found.native, "malloc")
    native = (
        nothing("s", why_not(found.native, "alloc.nodes", found.why_native))
        if record is None
        else _scaled(record, plan.nodes)
    )
    python = (
        found.python["class"][0].cell(divide=plan.python_nodes / plan.nodes)
        if found.python
        else nothing("s", "lists in Python were not made")
    )
    c = (
        found.c.ways["malloc"].created.cell(published=CREATION)
        if "malloc" in found.c.ways
        else nothing("s", found.why_c or "the list was not made", CREATION)
    )
    notes = (
        [f"The published figure is of 1,000,000 nodes; this is of {count}."] if plan.nodes != 10**6 else []
    )
    notes.append("The native arm and Python are reckoned from the time of one node.")
    return Table(
        "original",
        f"Creating {count} nodes, each by a call of malloc",
        "what",
        (Column("c", "C, here"), Column("native", "native arm"), Column("python", "Python, a class")),
        (Row("creation", f"{count} nodes", {"c": c, "native": native, "python": python}),),
        original=True,
        note=" ".join(notes),
    )


def _scaled(cell: Cell, nodes: int) -> Cell:
    value, low, high = (None if each is None else each * nodes for each in (cell.number, cell.low, cell.high))
    return Cell(cell.unit, value, low, high, cell.repeats, cell.published, cell.why)


def share_of(explained: Explained, name: str) -> float | None:
    """Share of one of the document's symbols, of the time on a CPU; None where the level cannot know it or no sample fell in it."""
    if not sees(explained, name):
        return None
    found = [each.share for row in explained.categories for each in row.functions if _is(name, each)]
    return sum(found) / on_cpu(explained) if found else None


def on_cpu(explained: Explained) -> float:
    """Share of wall time in which the program was on a CPU."""
    return max(1 - explained.share(*_WAITS), 0.01)


def sees(explained: Explained, name: str) -> bool:
    """Whether explain's level can tell this symbol."""
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


def symbols(found: Evidence) -> Table:
    """The document's profile."""
    explained = found.c.explained
    rows, known = [], 0.0
    for name, title in SYMBOLS.items():
        published = SHARES.get(name)
        share = None if explained is None else share_of(explained, name)
        if share is not None and explained is not None:
            known += share
            cell = _sampled(explained, share, published)
        else:
            cell = nothing("share", _no_share(found, name), published)
        rows.append(Row(name, title, {"share": cell}))
    if explained is not None and explained.level == 1:
        rows.append(
            Row("rest", "...", {"share": Cell("share", max(1 - known, 0.0), why="what the rows above leave")})
        )
    return Table(
        "symbols",
        "Where the whole run of the program goes, by symbol",
        "symbol",
        (Column("share", "here"),),
        tuple(rows),
        original=True,
        note="Of the whole run with 1,000,000 nodes, as there: from its start to its end, not only of the creation. Ours are by latlab explain, shares of the time on a CPU, as perf's are"
        + ("" if explained is None else f", level {explained.level} of 3, {explained.runs} runs")
        + "; brackets hold what chance makes of so many samples. In a library that was stripped of its names, _int_malloc holds all of malloc.c that has none, _int_free too. Of each category the 16 functions with most samples are known.",
    )


def _sampled(explained: Explained, share: float, published: Published | None = None) -> Cell:
    """A share of so many samples, with what chance makes of it (Wilson's 95 % interval)."""
    count = max(explained.observer.samples, 1)
    square = 1.96**2 / count
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(max(share * (1 - share), 0.0) * square + square**2 / 4) / (1 + square)
    return Cell(
        "share",
        share,
        min(max(middle - reach, 0.0), share),
        max(min(middle + reach, 1.0), share),
        count,
        published,
        f"{count} samples of {explained.runs} runs; 95 % interval",
    )


def _no_share(found: Evidence, name: str) -> str:
    explained = found.c.explained
    if explained is None:
        return found.why_explained or "the program was not explained"
    if sees(explained, name):
        if name in {"unmap_page_range", "free_unref_page_list"}:
            return "the end of a program, where its memory goes back, is counted as a whole by latlab explain: see the next table"
        return "no or few samples fell into a function of that name"
    raised = f"; to see more: {explained.raise_}" if explained.raise_ else ""
    return f"{_SIGHT[explained.level]}{raised}"


def part_cells(explained: Explained) -> dict[str, Cell]:
    """The program's wall time in a few parts that sum to all of it; a part that the level cannot tell has no figure."""
    runs, used = explained.runs, set[str]()

    def of(*names: str) -> Cell:
        rows = [row for row in explained.categories if row.name in names]
        used.update(row.name for row in rows)
        value = sum(row.share for row in rows)
        low, high = sum(row.low for row in rows), sum(row.high for row in rows)
        return Cell("share", value, min(low, value), max(high, value), max(runs, 1), why="95 % interval")

    def in_the_kernel(name: str) -> Cell:
        kernel = explained.row("kernel-cpu")
        for part in kernel.counted if kernel else ():
            if part.name == name:
                told = f"{format_percent(part.low)} to {format_percent(part.high)}"
                return nothing("share", f"the kernel's work is not divided: {told} of the time")
        return of(name)

    cells: dict[str, Cell] = {}
    if explained.level < 3:
        cells["allocator"] = of("allocator")
        cells["main"] = of("compute", "memory-copy", "garbage-collection")
    else:
        own = explained.row("user-cpu")
        within = {each.name: each for each in ([] if own is None else own.within)}
        for name, category in (("allocator", "allocator"), ("main", "compute")):
            each = within.get(category)
            told = f": between {format_percent(each.low)} and {format_percent(each.high)}" if each else ""
            cells[name] = nothing("share", f"{_SIGHT[3]}{told}")
        cells["user_cpu"] = of("user-cpu", "allocator", "compute", "memory-copy", "garbage-collection")
    faults = explained.row("page-faults")
    clearing = sum(
        each.share for each in (faults.functions if faults is not None else ()) if _is("clear_page", each)
    )
    if explained.level == 1 and faults is not None and clearing > 0:
        used.add("page-faults")
        cells["page_clearing"] = _sampled(explained, clearing)
        cells["page_faults"] = _sampled(explained, max(faults.share - clearing, 0.0))
    else:
        cells["page_clearing"] = nothing("share", _SIGHT.get(explained.level, "no sample fell into it"))
        cells["page_faults"] = in_the_kernel("page-faults")
    cells["start_and_exit"] = in_the_kernel("start-and-exit")
    cells["waiting"] = of("run-queue-wait")
    cells["unexplained"] = of("unexplained")
    cells["rest"] = of(*(row.name for row in explained.categories if row.name not in used))
    return {name: cells[name] for name in PARTS if name in cells}


def parts(found: Evidence) -> Table:
    """The same in a few words."""
    explained = found.c.explained
    cells = (
        {name: nothing("share", found.why_explained) for name in PARTS if name != "user_cpu"}
        if explained is None
        else part_cells(explained)
    )
    note = "Shares of wall time; they sum to all of it."
    if explained is not None:
        method = {
            1: "samples of the program and the kernel",
            2: "samples of the program",
            3: "/proc and counts",
        }
        note += f" Seen at level {explained.level} of 3 ({method[explained.level]}); a run takes {format_ns(explained.wall_s * 1e9)}."
        if explained.share("run-queue-wait") > _BUSY:
            note += " Other programs had the CPUs for much of it: measure again on a quiet machine."
        if explained.raise_:
            note += f" To see more: {explained.raise_}."
    return Table(
        "parts",
        "Allocator, page clearing, kernel, main",
        "part",
        (Column("share", "share"),),
        tuple(Row(name, _part(name, cells), {"share": cell}) for name, cell in cells.items()),
        note=note,
    )


def _part(name: str, cells: Mapping[str, Cell]) -> str:
    if name == "page_faults" and cells["page_clearing"].value is None:
        return "page faults, with the clearing"
    return PARTS[name]


_WAY_HEADS: Final = (
    Column("created", "creating the list"),
    Column("gain_ratio", "malloc over it"),
    Column("faults", "page faults"),
    Column("bytes", "bytes a node"),
    Column("across", "nodes across lines"),
    Column("freed", "giving it back"),
)


def ways_table(found: Evidence, whys: Mapping[str, str]) -> Table:
    """Each improvement."""
    rows = []
    for name, title in WAYS.items():
        made = found.c.ways.get(name)
        if made is None:
            rows.append(Row(name, title, {"created": nothing("s", whys[name] or "it was not made")}))
            continue
        cells = {
            "created": made.created.cell(),
            "gain_ratio": found.c.ways["malloc"].created.over(made.created),
            "faults": made.faults.cell("count"),
            "bytes": Cell("bytes", made.bytes, why="from the addresses of two nodes, or as the program says"),
            "across": Cell("share", made.across, why="counted by their addresses"),
        }
        if made.freed is not None:
            cells["freed"] = made.freed.cell()
        rows.append(Row(name, title, cells))
    return Table(
        "ways",
        f"Ways to create the list of {format_count(found.plan.nodes)} nodes",
        "way",
        _WAY_HEADS,
        tuple(rows),
        note="Medians of runs in turns, each in a new process. Mapping the memory is part of the time, except in “pages that were there before” and in the pool. "
        "Huge pages are refused to the linear ways but the one, so that all have the same pages. Giving back: free for each node, or one munmap.",
    )


def walk_table(found: Evidence, why: str) -> Table:
    """By layout and order."""
    rows = []
    for name, (title, _, _) in LAYOUTS.items():
        walks = found.c.walks.get(name)
        if walks is None:
            rows.append(Row(name, title, {"shuffled": nothing("s", why or found.why_c or "not walked")}))
            continue
        cells = {order: walks[order].cell() for order in ORDERS}
        cells["ahead_ratio"] = walks["shuffled"].over(walks["ahead"])
        rows.append(Row(name, title, cells))
    return Table(
        "walking",
        "Walking the list: time a node",
        "layout",
        (
            *(Column(name, title) for name, title in ORDERS.items()),
            Column("ahead_ratio", "gain of asking ahead"),
        ),
        tuple(rows),
        note="Of each node the link, the first and the last byte of the text are read. The number of the node 16 further on lies in the four bytes by which the compiler rounds the node up: it costs no memory.",
    )


def alone_table(found: Evidence, why: str) -> Table:
    """One node alone, and a million at once."""
    absent = why or found.why_c or "not timed"
    if not found.c.alone:
        return Table(
            "alone",
            "Timing one node alone",
            "what",
            (Column("here", "here"),),
            (Row("zeros", "nodes that take 0 us by gettimeofday", {"here": nothing("share", absent)}),),
        )
    coarse, fine = found.c.alone["us"], sorted(found.c.alone["ns"])
    count = len(fine)
    why_all = f"of {format_count(count)} nodes, each timed alone"

    def at(share: float) -> float:
        return fine[min(int(share * count), count - 1)]

    rows = [
        Row(
            "zeros",
            "nodes that take 0 us by gettimeofday, the document's clock",
            {"here": Cell("share", sum(value == 0 for value in coarse) / count, why=why_all)},
        ),
        Row("middle", "by a finer clock: the median", {"here": Cell("s", at(0.5), why=why_all)}),
        Row("slow", "one in 1,000 takes at least", {"here": Cell("s", at(0.999), why=why_all)}),
        Row("slowest", "the slowest", {"here": Cell("s", fine[-1], why=why_all)}),
        Row(
            "deviation_ratio",
            "standard deviation over mean, one node",
            {"here": Cell("ratio", statistics.pstdev(fine) / statistics.fmean(fine), why=why_all)},
        ),
    ]
    if "malloc" in found.c.ways:
        values = found.c.ways["malloc"].created.values
        each = statistics.median(values) / found.plan.nodes
        rows += [
            Row(
                "in_list",
                "a node as a part of the whole list",
                {"here": found.c.ways["malloc"].created.cell(divide=found.plan.nodes)},
            ),
            Row(
                "alone_ratio",
                "a node alone over a node of the list, means",
                {"here": Cell("ratio", statistics.fmean(fine) / each, why="the clock's own time is in it")},
            ),
            Row(
                "list_deviation_ratio",
                "standard deviation over mean, the whole list",
                {
                    "here": Cell(
                        "ratio",
                        max(statistics.pstdev(values) / statistics.fmean(values), 1e-6),
                        why=f"of {len(values)} lists",
                    )
                },
            ),
        ]
    return Table("alone", "Timing one node alone", "what", (Column("here", "here"),), tuple(rows))


def overflow_table(found: Evidence, why: str) -> Table:
    """The node and what is copied into it."""
    overflow = found.c.overflow
    if overflow is None:
        cell = nothing("bytes", why or found.why_c or "not run")
        rows = [Row("node", "the node, as the compiler lays it out", {"here": cell})]
    else:
        said = overflow.told
        exact = "as the program says"
        rows = [
            Row(name, title, {"here": Cell("bytes", float(said[key]), why=exact)})
            for name, key, title in (
                ("field", "field", "room for the text"),
                ("copied", "copied", "bytes copied into it: strlen of the text, without its zero"),
                ("end", "end", "end of the text in the node"),
                ("node", "node", "the node: rounded up to a multiple of 8"),
                ("usable", "usable", "what malloc gives for that"),
            )
        ]
        if "malloc" in found.c.ways:
            rows.append(
                Row(
                    "chunk",
                    "from one node to the next in the heap",
                    {"here": Cell("bytes", found.c.ways["malloc"].bytes, why="addresses of two nodes")},
                )
            )
        rows += [
            Row(
                "behind",
                "the byte behind the text: '.' before the copy, after it",
                {"here": Cell("text", f"'{said['behind']}'", why=exact)},
            ),
            Row(
                "zero",
                "is there a zero at the end of the text?",
                {"here": Cell("text", "yes" if said["zero"] == "1" else "no", why=exact)},
            ),
            Row(
                "sanitized",
                "AddressSanitizer on the node as published",
                {"here": _text(overflow.sanitized, overflow.why)},
            ),
            Row(
                "exact",
                "AddressSanitizer on a node of 28 bytes, not rounded up",
                {"here": _text(overflow.exact, overflow.why)},
            ),
            Row(
                "freed",
                "freed as published, of 1,000 nodes",
                {"here": Cell("count", float(said["freed"]), why="counted")},
            ),
        ]
    return Table("overflow", "21 bytes into 20", "what", (Column("here", "here"),), tuple(rows))


def _text(text: str, why: str) -> Cell:
    return Cell("text", text, why="its own words") if text else nothing("text", why or "not run")


def python_table(found: Evidence, why: str) -> Table:
    """Lists in Python."""
    nodes = found.plan.python_nodes
    rows = []
    for name, title in PYTHON.items():
        if name not in found.python:
            rows.append(Row(name, title, {"created": nothing("s", why or "not made")}))
            continue
        creating, walking, freeing, size = found.python[name]
        rows.append(
            Row(
                name,
                title,
                {
                    "created": creating.cell(),
                    "node": creating.cell(divide=nodes),
                    "bytes": Cell("bytes", size, why="asked of Python's allocator (tracemalloc)"),
                    "walked": walking.cell(),
                    "freed": freeing.cell(),
                },
            )
        )
    return Table(
        "python",
        f"{format_count(nodes)} nodes in Python: less evidence",
        "way",
        (
            Column("created", "creating it"),
            Column("node", "a node"),
            Column("bytes", "bytes a node"),
            Column("walked", "walking it"),
            Column("freed", "giving it back"),
        ),
        tuple(rows),
        note="Plain Python: the interpreter's own steps are most of it. All nodes refer to one text, but in the last way, which copies it as C does.",
    )


_NATIVE: Final = {
    "malloc": "malloc",
    "arena": "linear",
    "arena-touched": "linear, pages that were there before",
    "arena-prefetch": "linear, asked for ahead",
    "arena-aligned": "linear, a line for each node",
    "pool": "pool",
    "vec": "a vector that grows, links by number",
}
_NATIVE_PARTS: Final = {
    "faults_ns": "of malloc's: page faults",
    "allocator_ns": "of malloc's: the allocator",
    "stores_ns": "of malloc's: the stores, the list itself",
    "whole_ns": "of malloc's: the whole",
}


def native_table(found: Evidence) -> Table:
    """The probe's ways and parts, time a node."""
    absent = why_not(found.native, "alloc.nodes", found.why_native)
    rows = []
    for operation, title in _NATIVE.items():
        cell = _native_node(found.native, operation)
        rows.append(
            Row(operation.replace("-", "_"), title, {"node": nothing("s", absent) if cell is None else cell})
        )
    measured = native_parts(found.native)
    for name, title in _NATIVE_PARTS.items():
        value = measured.get(name)
        cell = (
            nothing("s", absent if found.native is None else "too few builds in this time for a sum of parts")
            if value is None
            else Cell("s", value / 1e9, why="from medians of builds of the probe alloc.nodes")
        )
        rows.append(Row(name, title, {"node": cell}))
    for allocator, size, state, cell in _native_allocators(found.native):
        rows.append(
            Row(
                f"{allocator}_{state}",
                f"malloc and free of {format_bytes(size)}, {state}: {allocator}",
                {"node": cell},
            )
        )
    return Table(
        "native",
        "The native arm: time a node",
        "way",
        (Column("node", "a node"),),
        tuple(rows),
        note="Probe alloc.nodes: no compiler is needed. Medians with their 95 % interval; each list is walked, page faults are counted. The parts of malloc's are measured each by itself, so that their sum is a check (see the probe's method).",
    )


def _native_node(run: Run | None, operation: str) -> Cell | None:
    for record in [] if run is None else run.select("alloc.nodes", kind="batch_mean"):
        if record.point.operation == operation and record.value:
            return cell_of(record)
    return None


def native_parts(run: Run | None) -> dict[str, float]:
    """Ns a node of malloc's parts."""
    for record in [] if run is None else run.select("alloc.nodes", kind="derived"):
        measured = record.finding("parts")
        if isinstance(measured, dict):
            return {
                name: float(value)
                for name, value in measured.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
    return {}


def _native_allocators(run: Run | None) -> Iterable[tuple[str, int, str, Cell]]:
    """What malloc and free of a node's size cost, by allocator."""
    for record in [] if run is None else run.select("alloc.malloc", kind="batch_mean"):
        point = record.point
        if point.size_bytes == 32 and point.placement == "same-thread" and record.value and point.allocator:
            yield point.allocator, point.size_bytes, point.state or "", cell_of(record)


# ----------------------------------------------------------------------------------------------------------
# what is told: words


def _best(found: Evidence) -> str | None:
    """The fastest way that has no memory prepared beforehand."""
    able = [name for name in found.c.ways if name not in {"malloc", "again", "touched", "pool"}]
    return min(able, key=lambda name: found.c.ways[name].created.median) if able else None


def answer(found: Evidence) -> tuple[str, ...]:
    """The short answer."""
    ways = found.c.ways
    if "malloc" not in ways:
        cell = _native_node(found.native, "malloc")
        if cell is not None:
            return (
                f"Without a compiler the native arm answers: a node from malloc takes {cell.shown} here; there {CREATION.text} for 1,000,000.",
            )
        if found.python:
            each = found.python["class"][0].median / found.plan.python_nodes
            return (
                f"In Python a node of a list takes {format_ns(each * 1e9)} here. The document's C program was not run.",
            )
        return ("Nothing was measured here, so there is no answer from this machine.",)
    malloc = ways["malloc"].created
    said = [
        f"Here creating {format_count(found.plan.nodes)} nodes by malloc takes {format_ns(malloc.median * 1e9)}; there it took {CREATION.text}."
    ]
    best = _best(found)
    if best is not None and malloc.median > ways[best].created.median:
        said.append(
            f"The same list {_in_words(best)} takes {format_ns(ways[best].created.median * 1e9)}: malloc takes {words.ratio(malloc.over(ways[best].created))} as long."
        )
    if "pool" in ways:
        said.append(
            f"From a pool of used nodes it takes {format_ns(ways['pool'].created.median * 1e9)}: no new memory, no page faults."
        )
    return tuple(said)


def _in_words(name: str) -> str:
    words_of = {
        "huge": "from a linear allocator in huge pages",
        "linear": "from a linear allocator",
        "populated": "from a linear allocator whose pages come in one call",
        "prefetched": "from a linear allocator with prefetches",
    }
    return words_of.get(name, f"by “{WAYS[name]}”")


def fault_ns(found: Evidence) -> float | None:
    """What a page fault of the linear way costs: the list on new pages less the list on old ones."""
    new, old = found.c.ways.get("linear"), found.c.ways.get("touched")
    if new is None or old is None:
        return None
    faults = new.faults.median - old.faults.median
    cost = new.created.median - old.created.median
    return cost / faults * 1e9 if faults > 0 and cost > 0 else None


def reasons(found: Evidence) -> list[str]:
    """Causes, with their size here."""
    ways, nodes, said = found.c.ways, found.plan.nodes, []
    if "malloc" in ways:
        malloc = ways["malloc"]
        price = fault_ns(found)
        said.append(
            f"A node of 32 bytes takes {format_bytes(malloc.bytes)} of malloc's heap, {format_bytes(malloc.bytes * nodes)} in all: {format_count(malloc.faults.median)} page faults in the creation."
        )
        if price is not None:
            share = min(malloc.faults.median * price / (malloc.created.median * 1e9), 1.0)
            said[-1] += (
                f" One costs {format_ns(price)} here (the linear list on new pages less that on old ones): {format_percent(share)} of malloc's time."
            )
        said += _ways_told(found)
    measured = native_parts(found.native)
    if measured.get("whole_ns"):
        whole = measured["whole_ns"]
        named = ", ".join(
            f"{name} {format_ns(measured[key])} ({format_percent(measured[key] / whole)})"
            for key, name in (
                ("faults_ns", "page faults"),
                ("allocator_ns", "the allocator"),
                ("stores_ns", "the stores"),
            )
            if key in measured
        )
        said.append(
            f"The parts of malloc's node, measured each by itself by the native arm: {named}; together {format_ns(measured.get('sum_ns', 0.0))} of {format_ns(whole)}."
        )
    if found.c.walks:
        said += _walks_told(found)
    if found.python:
        each = {name: times[0].median / found.plan.python_nodes * 1e9 for name, times in found.python.items()}
        said.append(
            f"In Python a node is an object of {format_bytes(found.python['class'][3])} and takes {format_ns(each['class'])}; __slots__ make it {format_ns(each['slots'])},"
            f" a list without links {format_ns(each['list'])} an element. The interpreter's steps cost more than the memory."
        )
    return said


def _ways_told(found: Evidence) -> list[str]:
    ways, said = found.c.ways, []

    def ns(name: str) -> str:
        return format_ns(ways[name].created.median * 1e9)

    if {"linear", "touched"} <= ways.keys():
        said.append(
            f"Linear allocator: {ns('linear')}. It has no call for a node and no bytes between nodes: {format_count(ways['linear'].faults.median)} page faults instead of {format_count(ways['malloc'].faults.median)}."
            f" On pages that are there already it takes {ns('touched')}: the rest is the kernel's."
        )
    if "populated" in ways:
        said.append(
            f"MAP_POPULATE: {ns('populated')}, with the call. The pages are cleared all the same; what goes away is one entry into the kernel for each (which counts them as faults all the same)."
        )
    if "huge" in ways:
        said.append(
            f"Huge pages: {ns('huge')} with {format_count(ways['huge'].faults.median)} page faults: each clears 2 MiB at once."
        )
    if {"prefetched", "linear"} <= ways.keys():
        said.append(
            f"Prefetch while creating: {ns('prefetched')} against {ns('linear')}. {_compared(ways['linear'].created, ways['prefetched'].created, 'Asking ahead')}"
            " The addresses go up one by one: the hardware fetches such lines by itself, and a prefetch does not cause a page fault."
        )
    if {"aligned", "across", "linear", "malloc"} <= ways.keys():
        said.append(
            f"Alignment: one line for each node takes {ns('aligned')}, each node across two lines {ns('across')}; both take twice the memory of nodes side by side, {format_count(ways['aligned'].faults.median)} page faults."
            f" {_compared(ways['across'].created, ways['aligned'].created, 'Not to cross lines')} Side by side {format_percent(ways['linear'].across)} of the nodes lie across lines, at malloc's distance of {format_bytes(ways['malloc'].bytes)} {format_percent(ways['malloc'].across)}."
        )
    if "pool" in ways:
        said.append(
            f"Pool: {ns('pool')} and {format_count(ways['pool'].faults.median)} page faults. The memory is there; each node is asked for its successor in the pool, which lies beside it."
        )
    if "again" in ways:
        said.append(
            f"malloc's own pool: a second list of the same process takes {ns('again')} and {format_count(ways['again'].faults.median)} page faults, because free keeps nodes of this size."
        )
    for name, told_as in (
        ("top_pad", "top_pad lets the heap grow in one step; the pages come one by one all the same"),
        ("mmap_threshold", "mmap_threshold concerns large blocks, not nodes: it is here as a control"),
        ("hugetlb", "hugetlb asks for huge pages under the heap"),
    ):
        if name in ways:
            said.append(
                f"{told_as}: {ns(name)}, {format_count(ways[name].faults.median)} page faults. {_compared(ways['malloc'].created, ways[name].created, 'It')}"
            )
    others = [name for name in ALLOCATORS if name in ways]
    if others:
        said.append(
            "Other allocators: "
            + "; ".join(
                f"{name} {ns(name)}, {format_bytes(ways[name].bytes)} a node, {format_count(ways[name].faults.median)} page faults"
                for name in others
            )
            + ". They keep sizes apart, so that a node needs no header."
        )
    return said


def _compared(before: Times, after: Times, what: str) -> str:
    """Whether a difference is beyond what the rounds differ: with five, chance alone would say so once in 126 times."""
    if min(len(before.values), len(after.values)) < 5:
        return f"{what} was tried in too few rounds to tell."
    if max(after.values) < min(before.values):
        return f"{what} saves time in every round: {words.ratio(before.over(after))}."
    if min(after.values) > max(before.values):
        return f"{what} costs time in every round: {words.ratio(after.over(before))} as long."
    return f"{what} makes no difference beyond what the rounds differ."


def _walks_told(found: Evidence) -> list[str]:
    close, across = found.c.walks["close"], found.c.walks["across"]
    aligned = found.c.walks["aligned"]
    return [
        f"Walking: in the order of memory {format_ns(close['in_order'].median * 1e9)} a node, in any order {format_ns(close['shuffled'].median * 1e9)}: the address of the next node is known only when this one has come, so each waits."
        f" With the node 16 further on asked for ahead {format_ns(close['ahead'].median * 1e9)}: many are under way at once.",
        f"In any order a node in one line takes {format_ns(aligned['shuffled'].median * 1e9)}, across two lines {format_ns(across['shuffled'].median * 1e9)}. {_compared(across['shuffled'], aligned['shuffled'], 'Alignment')}",
    ]


def misled(found: Evidence) -> list[Misled]:
    """Where the document misleads."""
    said = []
    overflow, ways = found.c.overflow, found.c.ways
    size = f"{format_bytes(ways['malloc'].bytes)} of heap" if "malloc" in ways else "48 bytes of glibc's heap"
    said.append(
        Misled(
            "Its node is a pointer and 20 bytes: 28, one would think.",
            f"The compiler rounds it up to 32, and malloc takes {size} for it: its size is kept beside it, in steps of 16.",
        )
    )
    told_of = "The text has 21 characters, and strlen does not count the zero: the last one lands behind the buffer, and there is no zero at all."
    if overflow is not None:
        told_of += f" Here the byte behind is '{overflow.told['behind']}' after the copy. It is one of the four by which the node was rounded up, so nothing breaks"
        told_of += (
            f", and AddressSanitizer says: {overflow.sanitized}. With a node of 28 bytes it says: {overflow.exact}."
            if overflow.exact
            else f". ({overflow.why}.)"
        )
    said.append(Misled("It copies a text of 21 bytes into a buffer of 20.", told_of))
    explained = found.c.explained
    told_of = "perf records the whole run: loading, freeing and the end are in its shares, the creation is a part of it; unmap_page_range and free_unref_page_list belong to the end."
    if explained is not None and "malloc" in ways:
        # The fastest: the one that was disturbed least.
        creation = ways["malloc"].created.best * _PROFILED / found.plan.nodes
        share = creation / (explained.wall_s * on_cpu(explained))
        # A creation that had to wait for a CPU is no part of the time on one.
        if share < 1:
            told_of += f" Here the creation, where it was fastest, is {format_percent(share)} of the run's time on a CPU."
    said.append(Misled("It asks where “those 30ms” of the creation go, and answers with a profile.", told_of))
    told_of = "Its own rows sum to 80.61%; the rest is behind three dots."
    if {"malloc", "touched"} <= ways.keys():
        share = ways["touched"].created.median / ways["malloc"].created.median
        told_of += f" And the list itself is not nothing: on memory that is there, without a call, it takes {format_percent(share)} of malloc's time here, because stores have to wait for memory too."
    said.append(
        Misled("“All the time was spent on routines that had almost nothing to do with the core.”", told_of)
    )
    freed = "" if overflow is None else f" Of 1,000 nodes {overflow.told['freed']} are freed."
    said.append(
        Misled(
            "free_nodes() goes through the list as long as there is a next node.",
            f"So the last one is never freed.{freed} And “1000000 Nodes creation” times 999,999: the first is created before the clock is read.",
        )
    )
    return said


def answers(found: Evidence) -> list[Answer]:
    """What else it says."""
    said, ways = [], found.c.ways
    best = _best(found)
    if "malloc" in ways and best is not None:
        order = sorted(ways, key=lambda name: ways[name].created.median)
        said.append(
            Answer(
                "Surely there is a way to improve this?",
                "By creation time: "
                + "; ".join(f"{WAYS[name]} {format_ns(ways[name].created.median * 1e9)}" for name in order)
                + ".",
            )
        )
    if found.c.explained is not None:
        cells = part_cells(found.c.explained)
        said.append(
            Answer(
                "Where do the milliseconds go?",
                "; ".join(
                    f"{_part(name, cells)}: {words.figure(cell)}"
                    for name, cell in cells.items()
                    if cell.number is not None
                )
                + f" (level {found.c.explained.level}).",
            )
        )
    if found.c.alone:
        fine = found.c.alone["ns"]
        zeros = sum(value == 0 for value in found.c.alone["us"]) / len(fine)
        said.append(
            Answer(
                "Does timing a single node have “a large statistical error margin”?",
                f"Yes: by its clock {format_percent(zeros)} of the nodes take no time at all, and by a finer one the deviation is {words.plain(statistics.pstdev(fine) / statistics.fmean(fine))} times the mean, with the clock's own time in each.",
            )
        )
    return said


# ----------------------------------------------------------------------------------------------------------
# pictures


def pictures(found: Evidence) -> list[Picture]:
    """The ways, the profile, the walks."""
    plan, marks = found.plan, []
    for name, title in WAYS.items():
        if name in found.c.ways:
            marks.append(found.c.ways[name].created.cell(divide=plan.nodes).mark(title, "C"))
    if not found.c.ways:
        for operation, title in _NATIVE.items():
            cell = _native_node(found.native, operation)
            if cell is not None and cell.number is not None:
                marks.append(cell.mark(title, "native arm"))
    marks += [
        times[0].cell(divide=plan.python_nodes).mark(PYTHON[name], "Python")
        for name, times in found.python.items()
    ]
    drawn = []
    if marks:
        marks.append(Mark("malloc, published (an SVE2 system)", CREATION.value / 1e6, "published"))
        drawn.append(
            Picture(
                "ways",
                "What does a node cost, by where it comes from?",
                "bars",
                "time to create a node",
                "s",
                tuple(marks),
                caption="Medians; the thin lines go from the fastest to the slowest round. Each step of the axis is ten times the one before.",
            )
        )
    drawn += _profile(found)
    if found.c.walks:
        drawn.append(
            Picture(
                "walks",
                "What does a step along the list cost?",
                "bars",
                "time to walk on by a node",
                "s",
                tuple(
                    walks[order].cell().mark(LAYOUTS[name][0], ORDERS[order])
                    for name, walks in found.c.walks.items()
                    for order in ORDERS
                ),
            )
        )
    return drawn


def _profile(found: Evidence) -> list[Picture]:
    explained = found.c.explained
    if explained is None or explained.level == 3:
        return []
    marks = []
    for name, title in SYMBOLS.items():
        share = share_of(explained, name)
        if share is not None:
            marks.append(_sampled(explained, share).mark(title, f"here, level {explained.level}"))
        if name in SHARES:
            marks.append(Mark(title, SHARES[name].value, "published"))
    return [
        Picture(
            "symbols",
            "Where does the run go, by symbol?",
            "bars",
            "share of the whole run",
            "share",
            tuple(marks),
            log=False,
        )
    ]
