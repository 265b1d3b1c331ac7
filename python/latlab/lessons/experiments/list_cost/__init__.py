"""What creating a list costs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import Arms, Bench, Times
from latlab.lessons.figures import Cell
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import probed, records
from latlab.lessons.programs import list_cost
from latlab.lessons.template import reported

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "What’s the cost of creating a list?"
ORIGIN = "a lesson, “Understanding Latency”: Memory Allocation is not Free"
PROGRAMS = ("list_cost.py",)
#: The source asks the question and never answers it with a figure, so there is no textbook to guess against.
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
TOLD: Final = 100_000

Key = tuple[str, int]


def run(bench: Bench) -> Reported:
    """Every way at every size; then reusing, the collector, and the pages behind it."""
    sizes, rounds = SIZES[bench.size], _ROUNDS[bench.size]
    creating = "creating and freeing lists"
    with _as_in_a_new_process():
        grid = bench.attempt(creating, lambda: created(bench, sizes, rounds)) or {}
        reuse = bench.arms("a new list against one that is kept", lambda: reused(bench, rounds))
        garbage = bench.arms("the garbage collector", lambda: collected(bench, rounds))
    faults = bench.attempt("page faults of a long list", lambda: faults_of(sizes[-1]))
    small = bench.size == "small"
    native, why_native = probed(
        bench, "python.object", profile="quick" if small else "standard", budget=1.2 if small else 8.0
    )
    return reported(
        __name__,
        create=Arms({key: made for key, (made, _) in grid.items()}, bench.why(creating)),
        free=Arms({key: freed for key, (_, freed) in grid.items()}, bench.why(creating)),
        sizes=sizes,
        n=max(size for size in sizes if size <= TOLD),
        reuse=reuse,
        garbage=garbage,
        faults=faults,
        native=native_lists(native),
        why_native=why_native,
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


def created(bench: Bench, sizes: tuple[int, ...], rounds: int) -> dict[Key, tuple[Times, Times]]:
    """Seconds to create and to give back, of every way and size."""
    making: dict[Key, list[float]] = {}
    freeing: dict[Key, list[float]] = {}
    enough = _ENOUGH // 10 if bench.size == "small" else _ENOUGH
    for way, n in bench.turns([(way, n) for n in sizes for way in WAYS], rounds):
        made, freed = list_cost.create(way, n, max(enough // n, 1))
        making.setdefault((way, n), []).append(made)
        freeing.setdefault((way, n), []).append(freed)
    return {key: (Times(tuple(making[key])), Times(tuple(freeing[key]))) for key in making}


def reused(bench: Bench, rounds: int) -> dict[str, Times]:
    """The same work in a new list and in one that is kept."""
    n, times = (TOLD, 1) if bench.size == "small" else (TOLD, 20)
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


def native_lists(run: Run | None) -> dict[Key, Cell]:
    """By way and length, seconds."""
    ways = {operation: way for way, operation in NATIVE.items()}
    found = {}
    for record in records(run, "python.object", "batch_mean"):
        way, n = ways.get(record.point.operation or ""), record.point.elements
        if way is None or not n or record.value is None:
            continue
        low, high = record.interval or (record.value, record.value)
        found[way, n] = Cell("s", record.value / 1e9, low / 1e9, high / 1e9, record.samples)
    return found
