"""Two programs, or two settings of one, run in turn: which is faster, by how much, and how sure that is.

from latlab.duet import duet
found = duet(["./a"], ["./b"], pairs=10)
found.says
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from latlab import signals
from latlab.compare.verdict import MOST_RUNS, SHOWN
from latlab.duet.judge import FEWEST, Figure, Itself, figures, itself
from latlab.duet.runs import Runner, orders, pairs, sides
from latlab.errors import UserError
from latlab.explain.program import on_cpus
from latlab.units import format_change, format_cpus, format_factor, format_ns, format_percent, format_span

if TYPE_CHECKING:
    from latlab.compare.verdict import Kind
    from latlab.duet.judge import Pair
    from latlab.duet.runs import Side

__all__ = ["SAME", "Duet", "duet"]

#: What counts as the same unless something else is asked for: pairs show less than runs of another day.
SAME: Final = 0.05
#: Pairs, unless something else is asked for; of an even number each program is first in half.
PAIRS: Final = 10
#: Starting a program, or waiting for a CPU, is reported where it is more of wall time.
_MUCH: Final = 0.05
#: From here on nobody thinks in percent.
_TIMES: Final = 2.0


@dataclass(frozen=True, slots=True)
class Duet:
    """What the runs of two programs said.

    Attributes:
        a: The first program.
        b: The second, whose figures are compared with the first's.
        same: Changes up to this share count as none.
        pairs: Both programs' runs, in their order.
        a_first: Of each pair, whether the first program ran first.
        figures: Wall time first.
        itself: Each program against itself; None where there were too few pairs.
        cpus: Where they ran.
        warmup: Runs of each before.
        interrupted: Whether fewer pairs were run than asked for.
    """

    a: Side
    b: Side
    same: float
    pairs: tuple[Pair, ...]
    a_first: tuple[bool, ...]
    figures: tuple[Figure, ...]
    itself: tuple[Itself | None, Itself | None]
    cpus: tuple[int, ...]
    warmup: int
    interrupted: bool = False

    @property
    def kind(self) -> Kind:
        """Of wall time."""
        return self.figures[0].kind

    @property
    def says(self) -> str:
        """The verdict on wall time in a sentence."""
        wall = self.figures[0]
        verdict = wall.verdict
        assert verdict is not None  # noqa: S101 - every run has a wall time
        a, b, limit = self.a.label, self.b.label, format_percent(self.same)
        if wall.kind == "same":
            ends = format_span(verdict.low, verdict.high, lambda end: format_factor(end, 3))
            return f"The same within {limit}: {b} takes {ends} times as long as {a}."
        differs = _differs(a, b, verdict.low, verdict.high)
        if wall.kind == "changed":
            return f"{differs}."
        if verdict.low > 1 or verdict.high < 1:
            return f"{differs}; whether that is more than {limit} is not known."
        visible = format_change(verdict.smallest_visible)
        return f"No difference demonstrated; changes above {visible} would have shown."

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know beside the verdict."""
        return tuple(_notes(self))

    def as_json(self) -> dict[str, object]:
        """As `latlab duet --json` prints it."""
        return {
            "verdict": self.kind,
            "says": self.says,
            "same": self.same,
            "sides": [{"label": side.label, "command": side.command} for side in (self.a, self.b)],
            "cpus": list(self.cpus),
            "warmup": self.warmup,
            "pairs": len(self.pairs),
            "interrupted": self.interrupted,
            "figures": [_figure_json(each) for each in self.figures],
            "itself": [
                own
                and {
                    "pairs": own.times,
                    "ratio": own.ratio,
                    "ratio_low": own.verdict.low,
                    "ratio_high": own.verdict.high,
                    "verdict": own.verdict.kind,
                }
                for own in self.itself
            ],
            "notes": list(self.notes),
            "runs": [
                {"first": "a" if a_first else "b", "a": asdict(a), "b": asdict(b)}
                for a_first, (a, b) in zip(self.a_first, self.pairs, strict=True)
            ],
        }


def _figure_json(figure: Figure) -> dict[str, object]:
    verdict = figure.verdict
    return {
        "name": figure.name,
        "unit": figure.unit,
        "category": figure.is_category,
        "a": figure.a,
        "b": figure.b,
        "ratio": figure.ratio,
        "ratio_low": verdict and verdict.low,
        "ratio_high": verdict and verdict.high,
        "verdict": figure.kind,
        "smallest_visible": verdict and verdict.smallest_visible,
        "more_pairs": verdict and verdict.more_runs,
        "why": figure.why,
    }


def duet(
    a: Sequence[str],
    b: Sequence[str],
    *,
    count: int = PAIRS,
    same: float = SAME,
    warmup: int = 1,
    cpus: Sequence[int] | None = None,
    prepare: Sequence[str] = (),
    longest_s: float | None = None,
    watched: bool = False,
    output: int | None = None,
    report: Callable[[str], None] | None = None,
    seed: int | None = None,
) -> Duet:
    """Runs two programs in turn, in pairs of random order, and compares them.

    Args:
        a: The first command line.
        b: The second.
        count: Pairs, three or more.
        same: Changes up to this share count as none.
        warmup: Runs of each before that are not counted.
        cpus: Where both run; None: wherever this process may.
        prepare: What a shell runs before each run, not timed: one for both, or one for each.
        longest_s: A run may take so long.
        watched: Whether each run is explained, for where its time goes.
        output: Where the programs' output goes; None: nowhere.
        report: Is given progress.
        seed: Of the order; None: another one each time.

    Raises:
        UserError: a program is not there, fails or takes too long.
        KeyboardInterrupt: before three pairs were run; after that they are compared.
    """
    first, second = sides(a, b, prepare)
    runner = Runner(watched=watched, longest_s=longest_s, output=output)
    done: list[Pair] = []
    a_first = orders(count, random.Random(seed))  # noqa: S311 - an order, nothing secret
    interrupted = False
    # Without the signals' exceptions a program would go on when this process is asked to end.
    with signals.raised(), on_cpus(cpus) as used:
        for number in range(warmup):
            _tell(report, f"warm-up {number + 1} of {warmup}")
            for side in (first, second):
                runner.once(side)
        begun = time.perf_counter()
        try:
            _tell(report, f"pair 1 of {count}")
            for pair in pairs(runner, first, second, a_first):
                done.append(pair)
                if len(done) < count:
                    left = (time.perf_counter() - begun) / len(done) * (count - len(done))
                    _tell(report, f"pair {len(done) + 1} of {count}, about {left:.0f} s left")
        except KeyboardInterrupt:
            if len(done) < FEWEST:
                raise
            interrupted = True
    return judged(first, second, done, a_first, same, cpus=used, warmup=warmup, interrupted=interrupted)


def judged(
    a: Side,
    b: Side,
    done: Sequence[Pair],
    a_first: Sequence[bool],
    same: float,
    *,
    cpus: Sequence[int] = (),
    warmup: int = 0,
    interrupted: bool = False,
) -> Duet:
    """What pairs of runs say: see :func:`duet`.

    Raises:
        UserError: there are fewer than three.
    """
    if len(done) < FEWEST:
        raise UserError(f"{len(done)} pairs: {FEWEST} are needed")
    return Duet(
        a,
        b,
        same,
        tuple(done),
        tuple(a_first[: len(done)]),
        figures(done, same),
        (itself(done, 0, same), itself(done, 1, same)),
        tuple(cpus),
        warmup,
        interrupted,
    )


def _tell(report: Callable[[str], None] | None, text: str) -> None:
    if report is not None:
        report(text)


def _differs(a: str, b: str, low: float, high: float) -> str:
    """`./b is 12–15 % faster than ./a`: by its wall time, or how many times as long the slower one takes."""
    if low >= _TIMES or high <= 1 / _TIMES:
        slow, fast = (b, a) if low > 1 else (a, b)
        ends = (low, high) if low > 1 else (1 / high, 1 / low)
        return f"{slow} takes {format_span(*ends, lambda end: format_factor(end, 2))} times as long as {fast}"
    ends = (low - 1, high - 1) if low + high > 2 else (1 - high, 1 - low)  # noqa: PLR2004 - twice 1
    word = "slower" if low + high > 2 else "faster"  # noqa: PLR2004 - see above
    return f"{b} is {format_span(*ends, format_percent)} {word} than {a}"


def _notes(found: Duet) -> Iterator[str]:
    where = f"on CPU{'s' if len(found.cpus) > 1 else ''} {format_cpus(found.cpus)}" if found.cpus else ""
    short = ", interrupted" if found.interrupted else ""
    yield f"{len(found.pairs)} pairs in random order {where}{short}; each ratio with its 95 % interval."
    wall, *others = found.figures
    cpu = next((each for each in others if each.name == "CPU time"), None)
    if wall.kind != "changed" and cpu and cpu.kind == "changed" and cpu.verdict:
        ends = format_span(cpu.verdict.low, cpu.verdict.high, lambda end: format_factor(end, 3))
        yield (
            f"CPU time, which other programs disturb less, changed: {found.b.label} takes {ends} times as"
            f" much as {found.a.label}."
        )
    verdict = wall.verdict
    if found.kind == "cannot-tell" and verdict is not None:
        more, limit = verdict.more_runs, format_percent(SHOWN * found.same)
        if more:
            yield f"{more} more {'pair' if more == 1 else 'pairs'} would show a change of {limit}."
        elif more is None:
            most = max(MOST_RUNS, len(found.pairs))
            yield f"{most} pairs would not show a change of {limit}: make runs longer or the machine quieter."
    for side, own in zip((found.a, found.b), found.itself, strict=True):
        if own is not None and own.verdict.kind == "changed":
            yield f"{side.label} differs from itself: something else changes between runs. Do not trust this."
    for place, side in enumerate((found.a, found.b)):
        runs = [pair[place] for pair in found.pairs]
        took, start, waited = (
            statistics.median(values)
            for values in zip(*((each.wall_s, each.start_s, each.waited_s) for each in runs), strict=True)
        )
        if start > _MUCH * took:
            share = format_percent(start / took)
            yield f"Starting a program takes {format_ns(1e9 * start)} here, {share} of {side.label}."
        if waited > _MUCH * took:
            yield f"{side.label} waited for a CPU {format_percent(waited / took)} of its time: others ran."
