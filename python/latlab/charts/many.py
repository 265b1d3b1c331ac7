"""Several runs side by side: what each machine is called, what may be compared, and what differs."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from latlab.compare import SAME
from latlab.compare.contrast import contrasts
from latlab.compare.sides import OF_NETWORK, OTHER_PATH
from latlab.compare.verdict import Contrast, Kind, Verdict, factor, is_same, verdicts
from latlab.compare.words import below
from latlab.errors import UserError
from latlab.run.run import Run
from latlab.run.samples import Sample
from latlab.run.sharing import TOKEN
from latlab.text import clean
from latlab.units import format_factor, format_percent, format_span

#: So many machines have a colour and a shape of their own, and so many lines can still be told apart.
MOST: Final = 30
_LONGEST_NAME: Final = 24


@dataclass(frozen=True, slots=True)
class Machine:
    """One run, and what its machine, or its side of a comparison, is called in a legend."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Figure:
    """One machine's figure, with its interval."""

    machine: str
    sample: Sample


@dataclass(frozen=True, slots=True)
class Difference:
    """What can be said of several machines' figures.

    Attributes:
        kind: The verdict on the two that lie farthest apart.
        ratio: The larger of these two over the smaller; None where they cannot be judged.
        words: The same for people.
    """

    kind: Kind
    ratio: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Part:
    """One level of the ladder, curve or distribution, of all machines that have it.

    Attributes:
        name: Its name.
        differences: What was compared, by name: a size, a quantile; one without a name for a level.
        figures: What was compared, likewise.
    """

    name: str
    differences: dict[str, Difference]
    figures: dict[str, list[Figure]]

    @property
    def words(self) -> str:
        """What can be said of all of it in one line."""
        every = list(self.differences.items())
        if not every:
            return "not comparable: no point in common"
        if len(every) == 1:
            at, only = every[0]
            return f"{at}: {only.words}" if at else only.words
        apart = [(at, each) for at, each in every if each.kind == "changed"]
        if apart:
            at, most = max(apart, key=lambda pair: pair[1].ratio or 0.0)
            return f"{at}: {most.words}; differs at {len(apart)} of {len(every)}"
        unknown = [(at, each) for at, each in every if each.kind != "same"]
        if not unknown:
            return f"{every[0][1].words} at all {len(every)}"
        at, middle = unknown[len(unknown) // 2]
        same = len(every) - len(unknown)
        return f"{at}: {middle.words}{f'; the same at {same} of {len(every)}' if same else ''}"


def machines_of(runs: Sequence[Run]) -> list[Machine]:
    """The runs with a name each: the host's, or its number where it has none or was left out.

    Raises:
        UserError: there are too many, or one is there twice.
    """
    if len(runs) > MOST:
        raise UserError(f"{len(runs)} runs: a chart shows {MOST} at most")
    twice = [name for name, count in Counter(run.id for run in runs).items() if count > 1]
    if twice:
        raise UserError(f"the run {clean(twice[0], most=80)} was given twice: a chart shows each once")
    hosts = [_host(run) for run in runs]
    counts = Counter(hosts)
    seen: Counter[str] = Counter()
    found = []
    for number, (run, host) in enumerate(zip(runs, hosts, strict=True), 1):
        if host is None:
            found.append(Machine(f"machine {number}", run))
            continue
        seen[host] += 1
        found.append(Machine(f"{host}, run {seen[host]}" if counts[host] > 1 else host, run))
    return found


def _host(run: Run) -> str | None:
    host = run.machine.text("os.host_name")
    return None if not host or TOKEN.fullmatch(host) else clean(host, most=_LONGEST_NAME)


def comparable(machines: Sequence[Machine]) -> tuple[list[Machine], list[str]]:
    """The machines with only those records that measured what the first one's did, and what was left out.

    Left out are records of a probe by another version of its method, and those of network probes over another
    path (`--delay`, `--rate`, `--distance`, `--url`).
    """
    methods: dict[str, int] = {}
    path: tuple[object, ...] | None = None
    found, notes = [], []
    for machine in machines:
        run = machine.run
        others: dict[str, str] = {}
        kept = []
        own = tuple(getattr(run.settings, name) for name in OF_NETWORK)
        for record in run.records:
            method = methods.setdefault(record.probe, record.method)
            if record.probe.startswith("network."):
                path = own if path is None else path
            if record.method != method:
                others[record.probe] = f"method version: {method} and {record.method}"
            elif record.probe.startswith("network.") and own != path:
                others[record.probe] = OTHER_PATH
            else:
                kept.append(record)
        notes += [f"{machine.name}: {probe} is not comparable: {why}" for probe, why in others.items()]
        found.append(Machine(machine.name, Run(run.header, kept, run.footer, path=run.path, notes=run.notes)))
    return found, notes


def differences(
    figures: Sequence[Sequence[Figure]], kept: Sequence[Sequence[Sample]], *, together: bool
) -> list[Difference]:
    """Whether machines differ, by the rule of `latlab compare`: of each figure the lowest and the highest.

    Disturbed figures are not judged: they are of the disturbance. More machines are more pairs, for which the
    intervals are corrected.

    Args:
        figures: Of each what the machines have; of several runs of a machine one each.
        kept: Of each what other runs of the first machine have: how far its runs lie apart.
        together: Whether any false difference among them counts, as of headline figures, or their share.
    """
    sound = [by_machine(each for each in own if not each.sample.disturbed) for own in figures]
    places = [place for place, own in enumerate(sound) if len(own) > 1]

    def contrasted(pairs: Sequence[tuple[str, str]]) -> list[Contrast]:
        calm = ([each for each in kept[place] if not each.disturbed] for place in places)
        sides = ((sound[place][a], sound[place][b]) for place, (a, b) in zip(places, pairs, strict=True))
        return contrasts([(*pair, own) for pair, own in zip(sides, calm, strict=True)])

    pairs = [_farthest(sound[place]) for place in places]
    known = [
        replace(contrast, pairs=math.comb(len(sound[place]), 2))
        for place, contrast in zip(places, contrasted(pairs), strict=True)
    ]
    # Two that are precise may lie near each other where a third could be anywhere.
    widest = contrasted([_farthest(sound[place], ends=True) for place in places])
    found = [_not_judged(own) for own in figures]
    for place, pair, contrast, verdict, wide in zip(
        places, pairs, known, verdicts(known, SAME, together=together), widest, strict=True
    ):
        if verdict.kind == "same" and not is_same(wide, SAME):
            verdict = replace(verdict, kind="cannot-tell")  # noqa: PLW2901 - the verdict on all of them
        found[place] = _difference(pair, factor(contrast.ratio), verdict)
    return found


def by_machine(own: Iterable[Figure]) -> dict[str, list[Sample]]:
    """The figures of each machine."""
    found: dict[str, list[Sample]] = {}
    for each in own:
        found.setdefault(each.machine, []).append(each.sample)
    return found


def _farthest(own: Mapping[str, Sequence[Sample]], *, ends: bool = False) -> tuple[str, str]:
    """The lowest and the highest; or those that reach lowest and highest."""

    def reach(name: str, end: int) -> float:
        return statistics.median(
            each.ends[end] if ends and each.ends is not None else each.value for each in own[name]
        )

    low = min(own, key=lambda name: reach(name, 0))
    return low, max((name for name in own if name != low), key=lambda name: reach(name, -1))


def _not_judged(own: Sequence[Figure]) -> Difference:
    calm = [each.machine for each in own if not each.sample.disturbed]
    who = f"in all but {calm[0]}" if calm else "in all"
    return Difference("cannot-tell", None, f"cannot tell: disturbed {who}")


def _difference(pair: tuple[str, str], ratio: float, verdict: Verdict) -> Difference:
    if verdict.kind == "changed":
        ends = format_span(verdict.low, verdict.high, lambda end: format_factor(end, 3))
        words = f"{format_factor(ratio, 3)} times ({ends}), {pair[0]} to {pair[1]}"
    elif verdict.kind == "same":
        words = f"the same within {format_percent(SAME)}"
    else:
        words = below(verdict.smallest_visible)
    return Difference(verdict.kind, ratio, words)
