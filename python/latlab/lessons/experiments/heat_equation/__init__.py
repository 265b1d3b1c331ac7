"""A new grid in every step, or two that swap."""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.lessons import words
from latlab.lessons.bench import Bench, Cannot, Times, available_memory, nothing
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
from latlab.lessons.native import why_not
from latlab.lessons.programs import heat_equation, heat_lines
from latlab.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from latlab.run.run import Run

QUESTION = "Is it worth re-using existing variables over creating new ones?"
ORIGIN = "a lesson, “Understanding Latency”: Memory Allocation is not Free"
PROGRAMS = ("heat_equation.py", "heat_lines.py", "heat_numpy.py")

ARMS: Final = {
    "published": "a new grid in each step, as published",
    "fresh": "a new grid in each step, of the right size",
    "swapped": "two grids that swap",
}
#: The document's two profiles: line, hits, microseconds, microseconds a hit, per cent.
FRESH: Final = {
    "shape": ("100", "127.7", "1.3", "0.0"),
    "allocate": ("100", "21822304.9", "218223.0", "39.3"),
    "rows": ("51300", "7741.9", "0.2", "0.0"),
    "columns": ("26265600", "3632718.1", "0.1", "6.5"),
    "along_x": ("26214400", "11207717.9", "0.4", "20.2"),
    "along_y": ("26214400", "11163116.5", "0.4", "20.1"),
    "assign": ("26214400", "7633720.1", "0.3", "13.8"),
    "return": ("100", "27.8", "0.3", "0.0"),
}
SWAPPED: Final = {
    "shape": ("100", "43.5", "0.4", "0.0"),
    "rows": ("51300", "7965.8", "0.2", "0.0"),
    "columns": ("26265600", "3569519.4", "0.1", "10.5"),
    "along_x": ("26214400", "11291491.6", "0.4", "33.2"),
    "along_y": ("26214400", "11409533.7", "0.4", "33.5"),
    "assign": ("26214400", "7781156.4", "0.3", "22.8"),
}
LINES: Final = {
    "shape": "unpack the shape",
    "allocate": "allocate the new grid (and free the old one)",
    "rows": "loop over rows",
    "columns": "loop over columns",
    "along_x": "differences along x",
    "along_y": "differences along y",
    "assign": "assign the sum",
    "return": "return",
}
TOTALS: Final = {"published": Published("55.4675 s", 55.4675), "swapped": Published("34.0597 s", 34.0597)}
SAVING: Final = Published("39%", 0.39)
GUESS = Guess(
    "By how many per cent does the total time fall when the grid is reused?",
    "original.saving.python",
    SAVING,
)
ORIGINAL_TAKES: Final = Original(
    100, 0, "100 steps in each of three ways, one of which makes a grid of 1 GiB in each step"
)
#: The document's number of steps; with fewer, totals are reckoned.
STEPS: Final = 100
#: Of all steps of the document the spread is that of so many parts: single steps say little of a hundred.
_PARTS: Final = 10
#: What else is alive beside two grids of the published size, and some room.
_ROOM: Final = 1.25


@dataclass(frozen=True, slots=True)
class Plan:
    """Grid of n x n, steps in a round (the first is not counted), rounds."""

    n: int
    steps: int
    rounds: int

    @property
    def published_bytes(self) -> int:
        """Of one grid as published: n rows of n times n pointers of eight bytes."""
        return self.n**3 * 8


PLANS: Final = {"small": Plan(64, 3, 3), "default": Plan(512, 3, 3), "original": Plan(512, 26, 4)}


@dataclass(frozen=True, slots=True)
class Arm:
    """Seconds a step; in making and freeing grids; page faults a step."""

    step: Times
    making: Times | None
    faults: float | None


def typical(times: Times) -> float:
    """Seconds of a step: where all steps of the document were run their mean, so that totals are sums; else the median."""
    return statistics.fmean(times.values) if len(times.values) >= STEPS else times.median


def parts(times: Times) -> tuple[float, ...]:
    """What the spread is of: single steps, or the means of consecutive tenths of very many."""
    values, count = times.values, len(times.values)
    if count < STEPS:
        return values
    ends = [count * number // _PARTS for number in range(_PARTS + 1)]
    return tuple(statistics.fmean(values[start:end]) for start, end in itertools.pairwise(ends))


def steps_cell(times: Times, steps: int = 1, published: Published | None = None) -> Cell:
    """So many steps."""
    own = parts(times)
    return Cell(
        "s", steps * typical(times), steps * min(own), steps * max(own), len(own), published=published
    )


def run(bench: Bench) -> Told:
    """The three arms, the share of each line, the same in NumPy, and below Python."""
    plan = PLANS[bench.size]
    what = {name: f"{text} ({plan.n} x {plan.n})" for name, text in ARMS.items()}
    kept: dict[str, list[Arm]] = {name: [] for name in ARMS}
    for name in bench.turns(ARMS, plan.rounds):
        if name in kept:
            arm = bench.attempt(what[name], functools.partial(stepped, name, plan), told=not kept[name])
            if arm is None:
                del kept[name]
            else:
                kept[name].append(arm)
    arms = {name: together(rounds) for name, rounds in kept.items()}
    lines = bench.attempt("the lines of a step", lambda: by_line(bench, plan)) or {}
    traced = bench.attempt("a step under a line tracer", lambda: tracer(plan))
    arrays = bench.attempt("the same in NumPy", lambda: in_numpy(bench, plan)) or {}
    native_name = "the native arm (probe alloc.reuse)"
    native = bench.native(
        native_name, "alloc.reuse", profile="quick", budget=1.0 if bench.size == "small" else 4.0
    )
    whys = {name: bench.why(text) for name, text in what.items()}
    tables = [
        totals(plan, arms, whys),
        profile(
            "profile_fresh",
            "Share by line, a new grid in each step as published",
            "published",
            FRESH,
            plan,
            arms,
            lines,
            whys["published"],
        ),
        profile(
            "profile_swapped", "Share by line, two grids that swap", "swapped", SWAPPED, plan, arms, lines, ""
        ),
        grids(plan, arms),
        others(
            arms,
            lines,
            traced,
            arrays,
            native,
            bench.why("the same in NumPy"),
            why_not(native, "alloc.reuse", bench.why(native_name)),
        ),
    ]
    return Told(
        answer=answer(plan, arms),
        tables=tuple(tables),
        pictures=(picture(plan, arms),) if arms else (),
        reasons=tuple(reasons(plan, arms, lines, arrays, native)),
        misled=tuple(misled(plan, arms, traced, lines, whys["published"])),
        answers=answers(arms),
        further=(
            "latlab lesson heat-equation --original: all 100 steps",
            "latlab measure --only alloc.reuse --profile standard: from which size on a kept buffer pays, below Python",
            "latlab lesson list-cost: what the lists themselves cost",
            "scalene, memray or py-spy: what your own program allocates, and where its time goes",
        ),
        charts=("reuse",),
    )


def stepped(name: str, plan: Plan) -> Arm:
    """A round of one arm; its first step is left out: it has no old grid to free.

    Raises:
        Cannot: the grid as published does not fit into memory twice.
    """
    if name == "published":
        needed, available = int(2 * _ROOM * plan.published_bytes), available_memory()
        if available is not None and available < needed:
            raise Cannot(
                f"two grids as published need {format_bytes(needed)} of memory, and {format_bytes(available)} are free"
            )
    made: list[float] = []
    before = _faults()
    if name == "swapped":
        seconds, grid = heat_equation.swapped(plan.n, plan.steps)
    else:
        make = heat_equation.new_as_published if name == "published" else heat_equation.new
        seconds, made, grid = heat_equation.fresh(plan.n, plan.steps, make)
    heat_equation.check(grid, plan.n, plan.steps)
    del grid
    after = _faults()
    faults = None if before is None or after is None else (after - before) / plan.steps
    return Arm(Times(tuple(seconds[1:])), Times(tuple(made[1:])) if made else None, faults)


def together(rounds: Sequence[Arm]) -> Arm:
    """Several rounds of one arm."""
    making = [value for arm in rounds if arm.making is not None for value in arm.making.values]
    faults = [arm.faults for arm in rounds if arm.faults is not None]
    return Arm(
        Times(tuple(value for arm in rounds for value in arm.step.values)),
        Times(tuple(making)) if making else None,
        statistics.fmean(faults) if faults else None,
    )


def _faults() -> int | None:
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def by_line(bench: Bench, plan: Plan) -> dict[str, Times]:
    """Seconds of each line of a step: the step with it less the step without it, round by round."""
    n = plan.n
    grid, out = heat_equation.start(n), heat_equation.new(n)
    variants = {
        "rows": heat_lines.rows_only,
        "columns": heat_lines.loops,
        "along_x": heat_lines.with_x,
        "along_y": heat_lines.with_y,
        "assign": heat_lines.whole,
    }
    found = bench.times(
        {
            name: functools.partial(heat_lines.seconds_of, variant, grid, out, n)
            for name, variant in variants.items()
        },
        7,
    )
    heat_equation.check(out, n, 1)
    parts, before = {}, Times((0.0,) * 7)
    for name, times in found.items():
        # A step without a line that seems longer than with it is noise: the line then costs nothing.
        parts[name] = Times(tuple(max(a - b, 0.0) for a, b in zip(times.values, before.values, strict=True)))
        before = times
    return parts | {"step": before}


def tracer(plan: Plan) -> tuple[float, int]:
    """Seconds of a step while a tracer times each line, and the lines."""
    grid, out = heat_equation.start(plan.n), heat_equation.new(plan.n)
    found = heat_lines.traced(grid, out, plan.n)
    heat_equation.check(out, plan.n, 1)
    return found


def in_numpy(bench: Bench, plan: Plan) -> dict[str, Times]:
    """Seconds a step with arrays."""
    from latlab.lessons.programs import heat_numpy  # noqa: PLC0415 - NumPy is not everywhere

    steps = 20 if plan.n < 512 else 100
    heat_numpy.check(heat_numpy.fresh(plan.n, steps)[1], heat_numpy.swapped(plan.n, steps)[1])
    return bench.times(
        {
            "fresh": lambda: heat_numpy.fresh(plan.n, steps)[0],
            "swapped": lambda: heat_numpy.swapped(plan.n, steps)[0],
        },
        5,
    )


# ----------------------------------------------------------------------------------------------------------
# what is told


def totals(plan: Plan, arms: dict[str, Arm], whys: dict[str, str]) -> Table:
    """Total times of 100 steps, and the saving."""
    rows = []
    for name, text in ARMS.items():
        cell = (
            steps_cell(arms[name].step, STEPS, TOTALS.get(name))
            if name in arms
            else nothing("s", whys[name], TOTALS.get(name))
        )
        rows.append(Row(f"total_{name}", f"{text}, {STEPS} steps", {"python": cell}))
    rows += [
        Row(
            "allocation_share",
            "share of making and freeing grids, as published",
            {"python": _allocation(arms, "published", whys)},
        ),
        Row(
            "saving",
            "saved by two grids that swap, of the published program",
            {"python": saving(arms, "published", whys["published"] or whys["swapped"], SAVING)},
        ),
        Row(
            "allocation_share_fresh",
            "share of making and freeing grids, right size",
            {"python": _allocation(arms, "fresh", whys)},
        ),
        Row(
            "saving_fresh",
            "saved by two grids that swap, of the right size",
            {"python": saving(arms, "fresh", whys["fresh"] or whys["swapped"], None)},
        ),
    ]
    reckoned = (
        f" Totals are sums; the brackets are of means of {STEPS // _PARTS} steps."
        if plan.rounds * (plan.steps - 1) >= STEPS
        else f" Totals are reckoned: {STEPS} times the median step of {plan.rounds * (plan.steps - 1)}; the brackets are of single steps."
    )
    size = "" if plan.n == 512 else f" The published figures are of 512 x 512; this is {plan.n} x {plan.n}."
    return Table(
        "original",
        f"The heat equation on {plan.n} x {plan.n}, in Python lists",
        "what",
        (Column("python", "Python"),),
        tuple(rows),
        original=True,
        note=f"Without a profiler; the published totals are under one.{reckoned}{size}",
    )


def _allocation(arms: dict[str, Arm], name: str, whys: dict[str, str]) -> Cell:
    published = Published("39.3%", 0.393) if name == "published" else None
    arm = arms.get(name)
    if arm is None or arm.making is None:
        return nothing("share", whys[name], published)
    value = typical(arm.making) / typical(arm.step)
    shares = [made / step for made, step in zip(parts(arm.making), parts(arm.step), strict=True)]
    return Cell("share", value, min(value, *shares), max(value, *shares), len(shares), published)


def saving(arms: dict[str, Arm], name: str, why: str, published: Published | None) -> Cell:
    """What swapping saves of an arm's time: of the totals that are shown."""
    if name not in arms or "swapped" not in arms:
        return nothing("share", why, published)
    mine, theirs = arms["swapped"].step, arms[name].step
    value = 1 - typical(mine) / typical(theirs)
    pairs = [1 - a / b for a, b in zip(parts(mine), parts(theirs), strict=False)]
    return Cell("share", value, min(value, *pairs), max(value, *pairs), len(pairs), published)


_HEADS: Final = (
    Column("hits", "hits"),
    Column("time", "time"),
    Column("per_hit", "per hit"),
    Column("share", "% time"),
)


def profile(
    name: str,
    title: str,
    arm: str,
    published: dict[str, tuple[str, str, str, str]],
    plan: Plan,
    arms: dict[str, Arm],
    lines: dict[str, Times],
    why: str,
) -> Table:
    """The document's line profile: hits, time, time a hit, share; ours for 100 steps by leaving lines out."""
    n, seconds = plan.n, line_seconds(arm, arms, lines)
    hits = {"rows": n + 1, "columns": n * (n + 1)} | dict.fromkeys(("along_x", "along_y", "assign"), n * n)
    known = [value for value in seconds.values() if value is not None]
    all_of_it = sum(map(typical, known))
    rows = []
    for line, theirs in published.items():
        count = hits.get(line, 1) * STEPS
        quoted = [
            Published(theirs[0], float(theirs[0])),
            Published(f"{theirs[1]} us", float(theirs[1]) / 1e6),
            Published(f"{theirs[2]} us", float(theirs[2]) / 1e6),
            Published(f"{theirs[3]} %", float(theirs[3]) / 100),
        ]
        part = seconds.get(line)
        reason = why or (
            "once a step, below what the clock and the rounds resolve here"
            if line in {"shape", "return"}
            else "the lines were not measured"
        )
        cells = {"hits": Cell("count", float(count), published=quoted[0], why="counted, not measured")}
        if part is None or not all_of_it:
            cells["time"] = nothing("s", reason, quoted[1])
            cells["per_hit"] = nothing("s", reason, quoted[2])
            cells["share"] = nothing("share", reason, quoted[3])
        else:
            cells |= {
                "time": steps_cell(part, STEPS, quoted[1]),
                "per_hit": part.cell(divide=hits[line], published=quoted[2])
                if line in hits
                else steps_cell(part, 1, quoted[2]),
                "share": Cell(
                    "share",
                    typical(part) / all_of_it,
                    published=quoted[3],
                    why="of the sum of the lines",
                ),
            }
        rows.append(Row(line, LINES[line], cells))
    return Table(
        name,
        title,
        "line",
        _HEADS,
        tuple(rows),
        original=True,
        note="Ours: 100 times the time of one step; a line's time is that of a step with it less that of a step without it, so nothing slows the others down. The published ones are a line profiler's.",
    )


def line_seconds(arm: str, arms: dict[str, Arm], lines: dict[str, Times]) -> dict[str, Times | None]:
    """Seconds of each line in a step of an arm."""
    found: dict[str, Times | None] = (
        {name: lines[name] for name in ("rows", "columns", "along_x", "along_y", "assign")} if lines else {}
    )
    if arm != "swapped":
        making = arms[arm].making if arm in arms else None
        if making is None:
            return {}
        found["allocate"] = making
    return found


def grids(plan: Plan, arms: dict[str, Arm]) -> Table:
    """How large the grids are."""
    n = plan.n
    exact = "counted, not measured"
    right = sys.getsizeof([0.0] * n) * n
    rows = []
    for name, entries, size in (
        ("published", n * n, sys.getsizeof([0.0] * n) * n + (n * n - n) * 8 * n),
        ("fresh", n, right),
        ("swapped", n, right),
    ):
        faults = arms[name].faults if name in arms else None
        rows.append(
            Row(
                name,
                ARMS[name],
                {
                    "entries": Cell("count", float(entries), why=exact),
                    "bytes": Cell("bytes", float(size), why=exact),
                    "alive": Cell("bytes", 2.0 * size, why=exact),
                    "faults": nothing("count", "not counted on this system")
                    if faults is None
                    else Cell("count", faults, why="mean of all steps"),
                },
            )
        )
    heads = (
        Column("entries", "entries in a row"),
        Column("bytes", "one grid"),
        Column("alive", "two alive"),
        Column("faults", "page faults a step"),
    )
    return Table(
        "grids",
        "How large the grids are",
        "arm",
        heads,
        tuple(rows),
        note=f"Both programs read and write {n} entries of each row; the elements all are one shared 0.0 at first.",
    )


def others(
    arms: dict[str, Arm],
    lines: dict[str, Times],
    traced: tuple[float, int] | None,
    arrays: dict[str, Times],
    native: Run | None,
    why_numpy: str,
    why_native: str,
) -> Table:
    """The tracer, NumPy, and below Python."""
    rows = []
    if traced is not None and lines:
        rows += [
            Row("plain_step", "a step, undisturbed", {"here": lines["step"].cell()}),
            Row(
                "traced_step",
                "the same step while each line is timed",
                {"here": Cell("s", traced[0], why=f"one step, {format_count(traced[1])} lines")},
            ),
            Row(
                "traced_ratio",
                "timed over undisturbed",
                {"here": Cell("ratio", traced[0] / lines["step"].median, why="of the two times above")},
            ),
        ]
    for name, text in (
        ("fresh", "NumPy, new arrays for each result, a step"),
        ("swapped", "NumPy, nothing new, a step"),
    ):
        rows.append(
            Row(f"numpy_{name}", text, {"here": arrays[name].cell() if arrays else nothing("s", why_numpy)})
        )
    rows.append(
        Row(
            "numpy_ratio",
            "new arrays over nothing new",
            {"here": arrays["fresh"].over(arrays["swapped"]) if arrays else nothing("ratio", why_numpy)},
        )
    )
    if arrays and "swapped" in arms:
        rows.append(
            Row(
                "lists_ratio",
                "lists over NumPy, both swapped",
                {"here": arms["swapped"].step.over(arrays["swapped"])},
            )
        )
    rows += [
        Row(
            f"native_ratio_{size}",
            f"below Python: array of {format_bytes(size)}, new over kept",
            {"here": Cell("ratio", new / kept, why="medians of the probe alloc.reuse")},
        )
        for size, new, kept in reuse_ratios(native)
    ] or [
        Row(
            "native_ratio",
            "below Python: new over kept",
            {"here": nothing("ratio", why_native)},
        )
    ]
    return Table(
        "others", "A line profiler, NumPy, and below Python", "what", (Column("here", "here"),), tuple(rows)
    )


def reuse_ratios(run: Run | None) -> list[tuple[int, float, float]]:
    """Bytes, ns of an iteration with a new array, ns with a kept one."""
    found: dict[int, dict[str, float]] = {}
    for record in [] if run is None else run.select("alloc.reuse", kind="batch_mean"):
        size = record.point.size_bytes or record.point.working_set_bytes
        if size and record.value and record.point.operation:
            found.setdefault(size, {})[record.point.operation] = record.value
    return [
        (size, own["fresh"], own["swapped"])
        for size, own in sorted(found.items())
        if own.keys() >= {"fresh", "swapped"}
    ]


def answer(plan: Plan, arms: dict[str, Arm]) -> tuple[str, ...]:
    """The short answer."""
    mine, published = saving(arms, "fresh", "", None), saving(arms, "published", "", None)
    said = []
    if mine.number is not None:
        said.append(
            f"Here two grids that swap save {mine.shown} of the time of a program that makes a new grid of the right size in each step."
            if (mine.low or 0.0) > 0
            else f"Here two grids that swap save no time beyond what the steps differ ({mine.shown}), against a program that makes a new grid of the right size in each step."
        )
    if published.number is not None:
        said.append(
            f"The published program makes grids {plan.n} times too large: of its time the swap saves {published.shown} here, and {SAVING.text} there."
        )
    elif said:
        said.append("The published program, whose grids are too large, could not be run here.")
    return tuple(said) or ("Nothing was measured here, so there is no answer from this machine.",)


def reasons(
    plan: Plan,
    arms: dict[str, Arm],
    lines: dict[str, Times],
    arrays: dict[str, Times],
    native: Run | None,
) -> list[str]:
    """Causes, with their size here."""
    said = []
    published, fresh = arms.get("published"), arms.get("fresh")
    if published is not None and published.making is not None and published.faults:
        pages = published.faults
        said.append(
            f"A grid as published is {format_bytes(plan.published_bytes)}: making and freeing one takes {format_ns(typical(published.making) * 1e9)} and {format_count(pages)} page faults."
            f" The kernel clears each page before the list's pointers are copied into it, and takes it back when the grid is freed: {format_ns(typical(published.making) / pages * 1e9)} a page in all."
        )
    if fresh is not None and fresh.making is not None:
        said.append(
            f"A grid of the right size is {plan.n} lists of {plan.n}: {format_ns(typical(fresh.making) * 1e9)} a step to make and free, beside {format_ns((typical(fresh.step) - typical(fresh.making)) * 1e9)} for the arithmetic."
        )
    if lines:
        each = lines["step"].median / plan.n**2 * 1e9
        said.append(
            f"The arithmetic is slow because it is Python: {format_ns(each)} for one cell. Each result is a new float object, too: reusing the list does not reuse those."
        )
    if arrays and "swapped" in arms:
        cost = arrays["fresh"].over(arrays["swapped"])
        worth = (
            "in NumPy allocation is worth a look, new arrays take"
            if (cost.low or 0.0) > 1
            else "beyond what the rounds differ new arrays cost no more, they take"
        )
        said.append(
            f"In NumPy the step takes {format_ns(arrays['swapped'].median * 1e9)} where nothing new is made, and lists take {words.ratio(arms['swapped'].step.over(arrays['swapped']))} as long:"
            f" {worth} {words.ratio(cost)} as long. Part of that is np.roll, which copies."
        )
    ratios = reuse_ratios(native)
    if ratios:
        size, new, kept = ratios[-1]
        said.append(
            f"Below Python a new array of {format_bytes(size)} in each iteration takes {words.plain(new / kept)} times as long as two that swap (probe alloc.reuse)."
        )
    return said


def misled(
    plan: Plan, arms: dict[str, Arm], traced: tuple[float, int] | None, lines: dict[str, Times], why: str
) -> list[Misled]:
    """Where the document misleads."""
    n = plan.n
    published, fresh = saving(arms, "published", "", None), saving(arms, "fresh", "", None)
    told = (
        f" Here the swap saves {fresh.shown} of a program with the right size"
        if fresh.number is not None
        else ""
    )
    told += (
        f", and {published.shown} of the published one."
        if published.number is not None
        else f"; the published one was not run: {why}."
        if told
        else ""
    )
    said = [
        Misled(
            "Its “fresh” grid multiplies each row of a comprehension by its length, and it blames the cost on allocating.",
            f"That makes 512 rows of 262,144 entries, 1.07 GB, two of them alive; a grid of 512 x 512 is 2.1 MB.{told}",
        ),
        Misled(
            "It calls its grid 500x500.",
            "Its code has 512 x 512, and so has its profile: 26,214,400 hits are 100 steps of 512 x 512.",
        ),
    ]
    if traced is not None and lines:
        said.append(
            Misled(
                "It gives the total under a line profiler as the program's run time.",
                f"A tracer of ours that times each line makes a step {words.plain(traced[0] / lines['step'].median)} times as long here ({n} x {n}). Its line profiler is in C and slows less; but what it adds falls on the lines of the loop, and the allocation, one line a step, looks smaller beside them than it is.",
            )
        )
    return said


def answers(arms: dict[str, Arm]) -> tuple[Answer, ...]:
    """What else it says."""
    mine = saving(arms, "fresh", "", None)
    if mine.number is None:
        return ()
    beyond = (mine.low or 0.0) > 0
    verdict = (
        "Yes, beyond what the steps differ, but by little"
        if beyond and mine.number < 0.2
        else "Yes"
        if beyond
        else "Not beyond what the steps differ"
    )
    return (
        Answer(
            "Does avoiding the new grid save time, once it has the right size?", f"{verdict}: {mine.shown}."
        ),
    )


def picture(plan: Plan, arms: dict[str, Arm]) -> Picture:
    """A step of each arm."""
    marks = [
        steps_cell(arms[name].step).mark(text, "a step, here") for name, text in ARMS.items() if name in arms
    ]
    marks += [
        steps_cell(making).mark(text, "of it making and freeing grids")
        for name, text in ARMS.items()
        if name in arms and (making := arms[name].making) is not None
    ]
    if plan.n == 512:
        marks += [
            Mark(ARMS[name], total.value / STEPS, "a step, published (profiled)")
            for name, total in TOTALS.items()
        ]
    return Picture(
        "steps",
        "What does a step cost, and how much of it is the new grid?",
        "bars",
        f"one step on {plan.n} x {plan.n}",
        "s",
        tuple(marks),
        caption="The thin lines are the spread of the table above. Each step of the axis is ten times the one before.",
    )
