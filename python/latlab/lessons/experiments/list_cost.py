"""What creating a list costs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Times, nothing
from latlab.lessons.model import (
    Answer,
    Cell,
    Column,
    Guess,
    Misled,
    Original,
    Picture,
    Row,
    Table,
    Told,
)
from latlab.lessons.native import why_not
from latlab.lessons.programs import list_cost
from latlab.units import format_bytes, format_count, format_ns, format_percent

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "What’s the cost of creating a list?"
ORIGIN = "a lesson, “Understanding Latency”: Memory Allocation is not Free"
PROGRAMS = ("list_cost.py",)
#: The document asks the question and never answers it with a figure, so there is no textbook to guess against.
GUESS: Guess | None = None
ORIGINAL_TAKES: Final = Original(
    140, 0, "lists of up to 10 million elements are made in seven ways, nine times each"
)

WAYS: Final = {
    "repeat": "[None] * n",
    "copy": "old[:]",
    "range": "list(range(n))",
    "comprehension": "[None for _ in range(n)]",
    "append": "append in a loop",
    "floats": "[float(i) for i in range(n)]",
    "lists": "[[] for _ in range(n)]",
}
#: What the probe python.object calls the same.
NATIVE: Final = {"repeat": "list-multiply", "comprehension": "list-comprehension", "append": "list-append"}
SIZES: Final = {
    "small": (10, 1_000, 10_000),
    "default": (10, 1_000, 100_000, 1_000_000),
    "original": (10, 1_000, 100_000, 1_000_000, 10_000_000),
}
_ROUNDS: Final = {"small": 5, "default": 7, "original": 9}
#: Elements that are made in one timing, so that it is long against the clock's 0.1 us.
_ENOUGH: Final = 100_000
#: Of a list of this length, what is told in words.
_TOLD: Final = 100_000

Grid = dict[tuple[str, int], tuple[Times, Times]]


def run(bench: Bench) -> Told:
    """Every way at every size; then reusing, the collector, and the pages behind it."""
    sizes, rounds = SIZES[bench.size], _ROUNDS[bench.size]
    with _as_in_a_new_process():
        grid = bench.attempt("creating and freeing lists", lambda: created(bench, sizes, rounds)) or {}
        reuse = bench.attempt("a new list against one that is kept", lambda: reused(bench, rounds)) or {}
        garbage = bench.attempt("the garbage collector", lambda: collected(bench, rounds)) or {}
    faults = bench.attempt("page faults of a long list", lambda: faults_of(sizes[-1]))
    what = "the native arm (probe python.object)"
    native = bench.native(
        what,
        "python.object",
        profile="quick" if bench.size == "small" else "standard",
        budget=1.2 if bench.size == "small" else 8.0,
    )
    core = native_lists(native) if native is not None else {}
    why = bench.why("creating and freeing lists")
    tables = [
        by_size("create", "Creating a list of n elements", grid, sizes, 0, why),
        by_size("free", "Giving it back", grid, sizes, 1, why),
        native_table(core, sizes, why_not(native, "python.object", bench.why(what))),
    ]
    tables += [table for table in (other_table(reuse, garbage),) if table is not None]
    return Told(
        answer=answer(grid, sizes),
        tables=tuple(tables),
        pictures=(picture(grid, sizes),) if grid else (),
        reasons=tuple(reasons(grid, sizes, reuse, garbage, faults)),
        misled=misled(grid, reuse),
        answers=answers(reuse),
        further=(
            "latlab lesson heat-equation: what a fresh grid in each step costs a whole program",
            "latlab measure --only alloc.reuse,alloc.malloc: the same below Python, by size and allocator",
            "tracemalloc (in Python's library): what your own program allocates",
            "array.array or NumPy for numbers: one block of memory instead of one object an element",
        ),
        charts=("python",),
    )


@contextlib.contextmanager
def _as_in_a_new_process() -> Iterator[None]:
    """The collector leaves alone what was there before: a notebook's many objects would slow every list of lists."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def created(bench: Bench, sizes: tuple[int, ...], rounds: int) -> Grid:
    """Seconds to create and to give back, of every way and size."""
    making: dict[tuple[str, int], list[float]] = {}
    freeing: dict[tuple[str, int], list[float]] = {}

    def arm(way: str, n: int) -> Callable[[], float]:
        def once() -> float:
            made, freed = list_cost.create(
                way, n, max(_ENOUGH // n, 1) if bench.size != "small" else max(_ENOUGH // 10 // n, 1)
            )
            making.setdefault((way, n), []).append(made)
            freeing.setdefault((way, n), []).append(freed)
            return made

        return once

    bench.times({f"{way} {n}": arm(way, n) for n in sizes for way in WAYS}, rounds)
    return {key: (Times(tuple(making[key])), Times(tuple(freeing[key]))) for key in making}


def reused(bench: Bench, rounds: int) -> dict[str, Times]:
    """The same work in a new list and in one that is kept."""
    n, times = (_TOLD, 1) if bench.size == "small" else (_TOLD, 20)
    return bench.times(
        {"new": lambda: list_cost.fill_new(n, times), "kept": lambda: list_cost.fill_kept(n, times)}, rounds
    )


def collected(bench: Bench, rounds: int) -> dict[str, Times]:
    """The garbage collector while lists are made, and one full collection over them."""
    n = 20_000 if bench.size == "small" else 300_000
    return bench.times(
        {
            "on": lambda: list_cost.collector(n, on=True) / n,
            "off": lambda: list_cost.collector(n, on=False) / n,
            "collection": lambda: list_cost.collect(n) / n,
        },
        rounds,
    )


def faults_of(n: int) -> int:
    """Pages that the kernel has to find and clear while a list of `n` elements is made.

    Raises:
        ImportError: not on this system.
    """
    import resource  # noqa: PLC0415 - Unix only

    made: list[None] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made = [None] * n
    found = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert len(made) == n  # noqa: S101 - it is kept until here
    return found


# ----------------------------------------------------------------------------------------------------------
# what is told


def by_size(name: str, title: str, grid: Grid, sizes: tuple[int, ...], which: int, why: str) -> Table:
    """One row a way, one column a size."""
    columns = tuple(Column(f"n{n}", f"n = {format_count(n)}") for n in sizes)
    rows = []
    for way, text in WAYS.items():
        cells = {f"n{n}": grid[way, n][which].cell() if grid else nothing("s", why) for n in sizes}
        rows.append(Row(way, text, cells))
    note = {
        "create": "Plain Python, medians (smallest – largest). The last two make n objects besides the list. list(range(n)) makes an int for each number above 256.",
        "free": "From del to the return: the reference count is zero at once, no collector is waited for.",
    }[name]
    return Table(name, title, "way", columns, tuple(rows), note=note)


def native_table(core: dict[tuple[str, int], Cell], sizes: tuple[int, ...], why: str) -> Table:
    """The same from the probe, which frees the list before as part of each."""
    shown = [n for n in sizes if n <= 1_000_000]
    rows = [
        Row(way, WAYS[way], {f"n{n}": core.get((way, n), nothing("s", why)) for n in shown}) for way in NATIVE
    ]
    return Table(
        "native",
        "Creating one and freeing the one before, by the native arm",
        "way",
        tuple(Column(f"n{n}", f"n = {format_count(n)}") for n in shown),
        tuple(rows),
        note="Probe python.object: means over windows, 95 % interval in brackets, in a bare interpreter whose results are checked. It differs from the plain arm by freeing the list before, in the window, and by elements that are numbers.",
    )


def native_lists(run: Run) -> dict[tuple[str, int], Cell]:
    """By way and length, seconds."""
    ways = {operation: way for way, operation in NATIVE.items()}
    found = {}
    for record in run.select("python.object", kind="batch_mean"):
        way, n = ways.get(record.point.operation or ""), record.point.elements
        if way is None or not n or record.value is None:
            continue
        low, high = record.interval or (record.value, record.value)
        found[way, n] = Cell("s", record.value / 1e9, low / 1e9, high / 1e9, record.samples)
    return found


def other_table(reuse: dict[str, Times], garbage: dict[str, Times]) -> Table | None:
    """Reusing and collecting."""
    rows = []
    if reuse:
        n = format_count(_TOLD)
        rows += [
            Row("new", f"a new list of {n}, then every element written", {"python": reuse["new"].cell()}),
            Row("kept", "every element of a kept list written", {"python": reuse["kept"].cell()}),
            Row("reuse_ratio", "new over kept", {"python": reuse["new"].over(reuse["kept"])}),
        ]
    if garbage:
        rows += [
            Row("collector_on", "one of many lists made, collector on", {"python": garbage["on"].cell()}),
            Row("collector_off", "the same, collector off", {"python": garbage["off"].cell()}),
            Row("collector_ratio", "on over off", {"python": garbage["on"].over(garbage["off"])}),
            Row(
                "collection",
                "a full collection, for each list alive",
                {"python": garbage["collection"].cell()},
            ),
        ]
    if not rows:
        return None
    return Table(
        "reuse", "Reusing, and the garbage collector", "what", (Column("python", "Python"),), tuple(rows)
    )


def answer(grid: Grid, sizes: tuple[int, ...]) -> tuple[str, ...]:
    """The short answer."""
    if not grid:
        return ("Nothing was measured here, so there is no answer from this machine.",)
    n = max(size for size in sizes if size <= _TOLD)
    least = grid["repeat", sizes[0]][0].median
    cheap, dear = grid["repeat", n][0].median, grid["lists", n][0].median
    return (
        f"Here a list of {sizes[0]} costs {format_ns(least * 1e9)}. One of {format_count(n)} costs from {format_ns(cheap * 1e9)} ([None] * n)"
        f" to {format_ns(dear * 1e9)} (a list of empty lists): {words.plain(dear / cheap)} times as much, by the way that it is made.",
        "The list itself is the smaller part: what fills it, and the objects in it, cost more.",
    )


def reasons(
    grid: Grid, sizes: tuple[int, ...], reuse: dict[str, Times], garbage: dict[str, Times], faults: int | None
) -> list[str]:
    """Causes, with their size here."""
    said = []
    if grid:
        n = max(size for size in sizes if size <= _TOLD)
        each = {way: grid[way, n][0].median / n * 1e9 for way in WAYS}
        said += [
            f"[None] * n is one loop in C: {format_ns(each['repeat'])} an element at {format_count(n)}. A comprehension runs the interpreter for each element"
            f" ({format_ns(each['comprehension'])}), append also calls a method and lets the list grow step by step ({format_ns(each['append'])}).",
            f"Objects cost more than the list: a float of its own for each element {format_ns(each['floats'])}, an empty list {format_ns(each['lists'])}.",
        ]
        freed = {way: grid[way, n][1].median / n * 1e9 for way in WAYS}
        said.append(
            f"Giving it back: {format_ns(freed['repeat'])} an element where all share one object, {format_ns(freed['lists'])} where each has its own. "
            "Python frees an object when its last reference goes; that is not the garbage collector, which only looks for cycles."
        )
    if faults is not None:
        longest = sizes[-1]
        said.append(
            f"Memory from the system: [None] * {format_count(longest)} is {format_bytes(longest * 8)} and took {format_count(faults)} page faults here"
            + (
                ", each a page that the kernel finds and clears."
                if faults
                else ": the C library had kept the memory of the lists before."
            )
        )
    if garbage:
        ratio = garbage["on"].over(garbage["off"])
        said.append(
            f"The collector looks through young objects while many are made: making lists takes {words.ratio(ratio)} as long with it as without."
        )
    if reuse:
        ratio = reuse["new"].over(reuse["kept"])
        said.append(
            f"Reusing saves the allocation and nothing else: writing every element of a new list takes {words.ratio(ratio)} as long as of a kept one, because in Python the writing costs far more than the memory."
        )
    return said


def misled(grid: Grid, reuse: dict[str, Times]) -> tuple[Misled, ...]:
    """Where the document misleads."""
    if not grid or not reuse:
        return ()
    n = max(size for way, size in grid if size <= _TOLD)
    loop = reuse["kept"].median * n / _TOLD
    made = grid["repeat", n][0].median
    return (
        Misled(
            "It asks for the cost of creating a list and answers with a program whose lists are 512 times too long (latlab lesson heat-equation).",
            f"Here making the list by [None] * n is {format_percent(made / loop)} of writing its {format_count(n)} elements once in a loop.",
        ),
        Misled(
            "It says that memory is allocated automatically and “later garbage collected”.",
            "In CPython nearly all memory goes back at once, when the last reference goes: the time of del is in the table above. The collector is for cycles.",
        ),
    )


def answers(reuse: dict[str, Times]) -> tuple[Answer, ...]:
    """What else it says."""
    if not reuse:
        return ()
    ratio = reuse["new"].over(reuse["kept"])
    beyond = ratio.low is not None and ratio.low > 1
    verdict = (
        "It does, beyond what the rounds differ." if beyond else "Here not beyond what the rounds differ."
    )
    return (
        Answer(
            "Does avoiding destroying and recreating objects improve performance?",
            f"{verdict} New over kept: {words.ratio(ratio)}. It matters where little is done with each element, or where each is an object.",
        ),
    )


def picture(grid: Grid, sizes: tuple[int, ...]) -> Picture:
    """Time an element against the length, a line a way."""
    marks = tuple(
        grid[way, n][0].cell(divide=n).mark(text, text, float(n))
        for way, text in WAYS.items()
        for n in sizes
        if way in {"repeat", "range", "comprehension", "append", "floats", "lists"}
    )
    return Picture(
        "by_way",
        "What does one element of a new list cost?",
        "lines",
        "time to create the list, for each element",
        "s",
        marks,
        x_axis="elements, logarithmic",
        x_unit="count",
        caption="Medians; bands go from the smallest to the largest of the repeats. A short list is dear for each element: the call and the list's head are shared by few.",
    )
