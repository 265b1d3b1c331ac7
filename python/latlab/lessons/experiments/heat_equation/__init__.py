"""A new grid in every step, or two that swap."""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.lessons.bench import NOT_TIMED, Arms, Bench, Cannot, Times, counting, nothing
from latlab.lessons.figures import Cell, Published
from latlab.lessons.memory import free_below
from latlab.lessons.model import Guess, Original, Reported
from latlab.lessons.native import probed, records
from latlab.lessons.programs import heat_equation, heat_lines
from latlab.lessons.template import reported
from latlab.units import format_bytes

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
#: The source's two profiles: line, hits, microseconds, microseconds a hit, per cent.
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
TOTALS: Final = {"published": Published("55.4675 s", 55.4675), "swapped": Published("34.0597 s", 34.0597)}
SAVING: Final = Published("39%", 0.39)
GUESS = Guess(
    "By how many percent does the total time fall when the grid is reused?", "original.saving.python", SAVING
)
ORIGINAL_TAKES: Final = Original(
    130, 0, "100 steps in each of three ways, one of which makes a grid of 1 GiB in each step"
)
#: The source's number of steps.
STEPS: Final = 100
#: The first steps of a round find memory that nobody used lately, and have no old grid to free.
_LEFT_OUT: Final = 2
#: What else is alive beside two grids of the published size, and some room.
_ROOM: Final = 1.25


@dataclass(frozen=True, slots=True)
class Plan:
    """Grid of n x n, steps in a round (the first are not counted), rounds of all variants, and of the two small ones."""

    n: int
    steps: int
    rounds: int
    more: int

    @property
    def published_bytes(self) -> int:
        """Of one grid as published: n rows of n times n pointers of eight bytes."""
        return self.n**3 * 8


#: The steps that are counted are even in number: memory that one step frees is found by the next but one.
PLANS: Final = {
    "small": Plan(64, 4, 3, 6),
    "default": Plan(512, 6, 4, 8),
    "original": Plan(512, 22, 5, 7),
}


NOT_MADE: Final = Times(why="no grid is made in a step")


@dataclass(frozen=True, slots=True)
class Arm:
    """Means of the steps of each round: seconds of one; in making and freeing grids; page faults."""

    step: Times
    making: Times = NOT_MADE
    faults: float | None = None


def run(bench: Bench) -> Reported:
    """The three variants, the share of each line, the same in NumPy, and below Python."""
    plan = PLANS[bench.size]
    what = {name: f"{text} ({plan.n} x {plan.n})" for name, text in ARMS.items()}
    asked = {name: (text, functools.partial(stepped, name, plan)) for name, text in what.items()}
    kept = bench.rounds(asked, plan.rounds, reported=True)
    # What swapping saves of grids of the right size is little: it takes more rounds to tell.
    more = bench.rounds({name: asked[name] for name in kept if name != "published"}, plan.more)
    arms = {
        name: together([*kept.get(name, ()), *more.get(name, ())], bench.why(text))
        for name, text in what.items()
    }
    lines = bench.arms("the lines of a step", lambda: by_line(bench, plan))
    traced = bench.attempt("a step under a line tracer", lambda: tracer(plan))
    arrays = bench.arms("the same in NumPy", lambda: in_numpy(bench, plan))
    native, why_native = probed(bench, "alloc.reuse", budget=1.0 if bench.size == "small" else 4.0)
    return say(plan, arms, lines, traced, arrays, reuse_ratios(native), why_native)


def say(
    plan: Plan,
    arms: Mapping[str, Arm],
    lines: Arms[str] = NOT_TIMED,
    traced: tuple[float, int] | None = None,
    arrays: Arms[str] = NOT_TIMED,
    ratios: Sequence[tuple[int, float, float]] = (),
    why_native: str = "",
) -> Reported:
    """What these figures say."""
    of_lines = {name: times for name, times in lines.items() if name != "step"}
    making = arms["published"].making
    of_published = of_lines | {"allocate": making} if making else {}
    return reported(
        __name__,
        plan=plan,
        arms=arms,
        profile_fresh=profile(FRESH, plan, of_published, arms["published"].step.why),
        profile_swapped=profile(SWAPPED, plan, of_lines),
        row=sys.getsizeof([0.0] * plan.n),
        **{"lines": lines, "traced": traced, "arrays": arrays, "ratios": ratios, "why_native": why_native},
    )


def stepped(name: str, plan: Plan) -> Arm:
    """A round of one variant.

    Raises:
        Cannot: the grid as published does not fit into memory twice.
    """
    if name == "published":
        needed = int(2 * _ROOM * plan.published_bytes)
        if free := free_below(needed):
            raise Cannot(f"two grids as published need {format_bytes(needed)} of memory, and {free} are free")

    def steps() -> tuple[list[float], list[float]]:
        made: list[float] = []
        if name == "swapped":
            seconds, grid = heat_equation.swapped(plan.n, plan.steps)
        else:
            make = heat_equation.new_as_published if name == "published" else heat_equation.new
            seconds, made, grid = heat_equation.fresh(plan.n, plan.steps, make)
        heat_equation.check(grid, plan.n, plan.steps)
        return seconds, made

    found, faults = counting(steps, "ru_minflt")
    step, making = (Times((statistics.fmean(each[_LEFT_OUT:]),)) if each else NOT_MADE for each in found)
    return Arm(step, making, None if faults is None else faults / plan.steps)


def together(rounds: Sequence[Arm], why: str = "") -> Arm:
    """Several rounds of one variant."""
    faults = [arm.faults for arm in rounds if arm.faults is not None]
    step, making = (
        tuple(value for own in each for value in own.values)
        for each in ([arm.step for arm in rounds], [arm.making for arm in rounds])
    )
    return Arm(
        Times(step, why), Times(making, why or NOT_MADE.why), statistics.fmean(faults) if faults else None
    )


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


def making_share(arm: Arm, published: Published | None = None) -> Cell:
    """What share of a variant's time making and freeing grids is."""
    if not arm.making:
        return nothing("share", arm.step.why, published)
    shares = (made / step for made, step in zip(arm.making.values, arm.step.values, strict=True))
    return Times(tuple(shares)).cell("share", published=published)


def saving(arms: Mapping[str, Arm], name: str, published: Published | None = None) -> Cell:
    """What swapping saves of a variant's time, round by round."""
    mine, theirs = arms["swapped"].step, arms[name].step
    if not (mine and theirs):
        return nothing("share", theirs.why or mine.why, published)
    saved = (1 - a / b for a, b in zip(mine.values, theirs.values, strict=False))
    return Times(tuple(saved)).cell("share", published=published)


def profile(
    published: Mapping[str, tuple[str, str, str, str]], plan: Plan, lines: Mapping[str, Times], why: str = ""
) -> dict[str, tuple[Cell, ...]]:
    """The published line profile: hits, time, time a hit, share; ours for 100 steps by leaving lines out."""
    n, whole = plan.n, sum(times.median for times in lines.values())
    hits = {"rows": n + 1, "columns": n * (n + 1)} | dict.fromkeys(("along_x", "along_y", "assign"), n * n)
    cells: dict[str, tuple[Cell, ...]] = {}
    for line, printed in published.items():
        scales = zip(printed, ("", " us", " us", " %"), (1, 1e6, 1e6, 100), strict=True)
        count, time, each, share = (
            Published(f"{text}{unit}", float(text) / scale) for text, unit, scale in scales
        )
        below = "once a step, too short for the clock and the rounds here"
        reason = why or (below if line in {"shape", "return"} else "the lines were not measured")
        part = lines.get(line, Times(why=reason)) if whole else Times(why=reason)
        cells[line] = (
            Cell("count", float(hits.get(line, 1) * STEPS), published=count, why="counted, not measured"),
            part.cell(divide=1 / STEPS, published=time),
            part.cell(divide=hits.get(line, 1), published=each),
            Cell("share", part.median / whole, published=share, why="of the sum of the lines")
            if part
            else nothing("share", reason, share),
        )
    return cells


def reuse_ratios(run: Run | None) -> list[tuple[int, float, float]]:
    """Bytes, ns of an iteration with a new array, ns with a kept one."""
    found: dict[int, dict[str, float]] = {}
    for record in records(run, "alloc.reuse", "batch_mean"):
        size = record.point.size_bytes or record.point.working_set_bytes
        if size and record.value and record.point.operation:
            found.setdefault(size, {})[record.point.operation] = record.value
    return [
        (size, own["fresh"], own["swapped"])
        for size, own in sorted(found.items())
        if own.keys() >= {"fresh", "swapped"}
    ]
