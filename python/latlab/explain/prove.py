"""`explain --prove`: runs the program again with one thing changed, in turn with the program as it was.

Each round runs every variant once, in an order of its own, and each variant is compared with the
unchanged run of the same round: what drifts from round to round cancels. The figure is the median of
these ratios; its interval is that of order statistics, which assumes nothing of how they are
distributed. The unchanged program takes part twice: what it saves against itself is what chance alone
gives.
"""

from __future__ import annotations

import os
import random
import stat
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from latlab import stats
from latlab.errors import UserError
from latlab.explain import inputs
from latlab.explain.bench import CONTROL, Agenda, Bench, FailedError, Streams, replaceable
from latlab.explain.bounds import saving, undisturbed
from latlab.explain.experiments import Experiment, machine_now, planned, subject_of
from latlab.explain.judge import Judgement
from latlab.explain.model import Explained

_ROUNDS: Final = ((7, 120.0), (6, 1800.0), (3, float("inf")))
"""Rounds, and for how long they may take. Six are the fewest whose median has a 95 % interval."""
_VISIT_S: Final = 0.1
"""A shorter program is run several times in a row: starting it is then little of the time."""
_MOST_IN_A_ROW: Final = 10
_NEAR: Final = 0.25
"""Further from the median than this part of it, a run is no usual one: some percent are chance."""
_FROM_MEMORY: Final = frozenset({"input-in-memory", "input-on-tmpfs"})


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one experiment showed. Savings are shares of the unchanged program's wall time; negative: slower.

    Attributes:
        name: of the experiment; `itself-again` is the unchanged program once more.
        says: the change in words.
        how: what to type or do.
        rounds: pairs that were compared.
        wall_s: median wall time with the change.
        base_s: median wall time without it.
        saving: median over rounds.
        low: lower end of its interval.
        high: upper end.
        is_interval: whether low and high are a 95 % interval; else they are the range of too few rounds.
        bound: saved at most, by the ledger; None where the ledger bounds nothing of it.
        beats_bound: whether the whole interval lies above the bound.
        predicted: saving that the limits predict, from and to, where they do.
        is_worse: asks what would be lost.
        failed: why there is no figure.
    """

    name: str
    says: str
    how: str
    rounds: int
    wall_s: float | None = None
    base_s: float | None = None
    saving: float | None = None
    low: float | None = None
    high: float | None = None
    is_interval: bool = False
    bound: float | None = None
    beats_bound: bool = False
    predicted: tuple[float, float] | None = None
    is_worse: bool = False
    failed: str | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """All experiments, and what they were run on."""

    baseline: str
    runs: int
    input_files: int
    input_bytes: int
    experiments: tuple[Measured, ...]
    left_out: tuple[str, ...] = ()
    interrupted: bool = False
    without_waits: bool = False
    """Whether times are without waits for a CPU: those of a program of one thread."""
    explained_s: float | None = None
    """What the run that was explained took, calculated as the times here."""
    unchanged_s: tuple[float, float] | None = None
    """Shortest and longest time of the unchanged program."""
    is_typical: bool = True
    """Whether the run that was explained is like the unchanged ones; if not, its bounds are not theirs."""

    def best(self) -> Measured | None:
        """The largest saving that is more than chance: above nothing, and above the control's interval."""
        control = next((each for each in self.experiments if each.name == CONTROL), None)
        chance = max(control.high or 0.0, 0.0) if control is not None else 0.0
        found = [
            each
            for each in self.experiments
            if each.name != CONTROL
            and not each.is_worse
            and each.is_interval
            and (each.low or 0.0) > 0
            and (each.saving or 0.0) > chance
        ]
        return max(found, key=lambda each: each.saving or 0.0, default=None)


# ---- before anything


def check(arguments: Sequence[str]) -> Streams:
    """Whether the program can be run again as it was.

    Raises:
        UserError: it cannot; nothing was run.
    """
    if not arguments:
        raise UserError("--prove: a running process cannot be started again; name a program instead of --pid")
    place = inputs.place_on_stdin(
        "--prove: standard input is a pipe or socket, which can be read only once: use a file"
    )
    return Streams(place, _output())


def _output() -> str:
    try:
        mode = os.fstat(1).st_mode
        if stat.S_ISREG(mode):
            folder = Path("/proc/self/fd/1").readlink().parent
            return str(folder) if os.access(folder, os.W_OK) else "null"
        if stat.S_ISCHR(mode) and not os.isatty(1):
            return "null"
    except OSError:
        return "null"
    return "pipe"


def reason_not_to(explained: Explained) -> str | None:
    """Why a program that has ended is not run again."""
    if explained.program.signal is not None:
        return "a signal ended it"
    if explained.program.exit_code != 0:
        return f"it ended with {explained.program.exit_code}"
    if explained.program.left_running:
        return "some of its processes are still running"
    return None


def agenda(explained: Explained, arguments: Sequence[str], files: Sequence[Path]) -> Agenda:
    """What is to be run, and for how long; `files` is what the program reads."""
    total = inputs.size(files)
    subject = subject_of(arguments)
    plan = planned(
        explained, subject, machine_now(subject, total, bool(replaceable(arguments, files))), files, total
    )
    wall = max(explained.wall_s, 1e-4)
    in_a_row = max(1, min(_MOST_IN_A_ROW, round(_VISIT_S / wall)))
    a_round = in_a_row * wall * (2 + len(plan.experiments))
    rounds = next(rounds for rounds, most_s in _ROUNDS if rounds * a_round <= most_s)
    return Agenda(
        planned=plan,
        files=tuple(files),
        input_bytes=total,
        rounds=rounds,
        in_a_row=in_a_row,
        seconds=rounds * a_round,
    )


# ---- running it


def prove(
    explained: Explained,
    judgement: Judgement,
    arguments: Sequence[str],
    what: Agenda,
    streams: Streams,
    *,
    seed: int | None = None,
) -> Proof:
    """Runs all rounds; an interrupt ends them early, with what there is."""
    chance = random.Random(seed)  # noqa: S311 - an order, nothing secret
    with Bench(explained, arguments, what, streams) as bench:
        times: dict[str, list[float | None]] = {each.name: [] for each in what.variants}
        failed: dict[str, str] = {}
        interrupted = False
        try:
            for _ in range(what.rounds):
                order = list(what.variants)
                chance.shuffle(order)
                seen: dict[str, float] = {}
                for variant in order:
                    if variant.name in failed:
                        continue
                    try:
                        seen[variant.name] = bench.visit(variant)
                    except FailedError as error:
                        failed[variant.name] = str(error)
                        if variant.name == what.planned.baseline.name:
                            raise
                for name, list_of in times.items():
                    list_of.append(seen.get(name))
        except KeyboardInterrupt:
            interrupted = True
        except FailedError as error:
            failed = {each.name: f"the unchanged program: {error}" for each in what.variants}
        runs, is_alone = bench.runs, bench.is_alone
    base = what.planned.baseline.name
    explained_s = explained.wall_s * (undisturbed(explained) if is_alone else 1.0)
    unchanged = [took for name in (base, CONTROL) for took in times[name] if took is not None]
    is_typical = is_near(explained_s, unchanged)
    measured = [
        _measured(
            explained,
            judgement if is_typical else None,
            each,
            times[base],
            times[each.name],
            failed.get(each.name),
        )
        for each in what.variants[1:]
    ]
    return Proof(
        baseline=what.planned.baseline.cache,
        runs=runs,
        input_files=len(what.files),
        input_bytes=what.input_bytes,
        experiments=tuple(measured),
        left_out=what.planned.left_out,
        interrupted=interrupted,
        without_waits=is_alone,
        explained_s=explained_s,
        unchanged_s=(min(unchanged), max(unchanged)) if unchanged else None,
        is_typical=is_typical,
    )


# ---- what it says


def _measured(
    explained: Explained,
    judgement: Judgement | None,
    variant: Experiment,
    base: Sequence[float | None],
    changed: Sequence[float | None],
    failed: str | None,
) -> Measured:
    """One experiment; `judgement` None: of a run unlike these, so nothing of it bounds them."""
    known = Measured(
        name=variant.name,
        says=variant.says,
        how=variant.how,
        rounds=0,
        is_worse=variant.is_worse,
        bound=bound_of(explained, judgement, variant) if judgement else None,
        predicted=_predicted(explained, judgement, variant) if judgement else None,
        failed=failed,
    )
    pairs = [(one, other) for one, other in zip(base, changed, strict=False) if one and other]
    if not pairs:
        return msgspec.structs.replace(known, failed=failed or "no round was finished")
    low, median, high, is_interval = compared(pairs)
    return msgspec.structs.replace(
        known,
        rounds=len(pairs),
        base_s=statistics.median(one for one, _ in pairs),
        wall_s=statistics.median(other for _, other in pairs),
        saving=median,
        low=low,
        high=high,
        is_interval=is_interval,
        beats_bound=beats(low, known.bound),
    )


def compared(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float, bool]:
    """Median saving over pairs (without, with), between its ends; whether those are a 95 % interval."""
    savings = sorted(1 - other / one for one, other in pairs)
    median = statistics.median(savings)
    try:
        low, high = stats.order_statistic_interval(savings, 0.5)
    except UserError:
        return savings[0], median, savings[-1], False
    return low, median, high, True


def is_near(seconds: float, unchanged: Sequence[float]) -> bool:
    """Whether a run is like the unchanged ones: within their range, or near their median."""
    if not unchanged or min(unchanged) <= seconds <= max(unchanged):
        return True
    usual = statistics.median(unchanged)
    return abs(seconds - usual) <= _NEAR * usual


def beats(low: float, bound: float | None) -> bool:
    """Whether even the lower end of a saving is more than the ledger allows."""
    return bound is not None and low > bound


def bound_of(explained: Explained, judgement: Judgement, variant: Experiment) -> float | None:
    """Saved at most by a change, as a share of wall time.

    What waited for a CPU when it was explained need not wait when it is run again: the rest is then a larger
    share of less wall time. A disk that is not read from costs nothing outside of file I/O either.
    """
    if not variant.categories:
        return None
    beside = judgement.beside_reading if variant.name in _FROM_MEMORY else 0.0
    return min((saving(explained, variant.categories)[2] + beside) / undisturbed(explained), 1.0)


def _predicted(explained: Explained, judgement: Judgement, variant: Experiment) -> tuple[float, float] | None:
    if variant.name not in _FROM_MEMORY:
        return None
    bound = judgement.limit("read-memory")
    if bound is None:
        return None
    return bound.saving_low, min(bound.saving_high / undisturbed(explained), 1.0)
