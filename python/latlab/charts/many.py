"""Several runs side by side: what each machine is called, what may be compared, and what is only noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from latlab.errors import UserError
from latlab.run.run import Run
from latlab.run.sharing import TOKEN
from latlab.text import clean
from latlab.units import format_digits

#: So many machines have a colour and a shape of their own, and so many lines can still be told apart.
MOST: Final = 30
_LONGEST_NAME: Final = 24
#: 95 % point of the studentised range of so many equal machines, in standard errors: the span that chance
#: alone reaches between the lowest and the highest of them (Tukey; R: `qtukey(0.95, n, Inf)`).
_RANGE: Final = ((2, 2.77), (3, 3.31), (4, 3.63), (5, 3.86), (6, 4.03), (8, 4.29), (10, 4.47), (12, 4.62))
_RANGE_OF_MANY: Final = ((15, 4.80), (20, 5.01), (25, 5.17), (30, 5.30))
#: What runs of one machine differ, whatever their intervals: these hold what changed within a run, not its
#: clock frequency or where its pages lay (docs/method/runs.md). Less is no difference.
SAME: Final = 1.25
#: The same of disks, networks and tails, and of what a virtual machine shares with neighbours.
SAME_OF_WHAT_VARIES: Final = 1.5
#: Two 95 % intervals that only just touch: their middles are that many standard errors apart.
_TOUCHING: Final = 2 * 1.96


@dataclass(frozen=True, slots=True)
class Machine:
    """One run, and what its machine is called in a legend."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Figure:
    """One machine's figure.

    Attributes:
        machine: Its name.
        value: The figure.
        low: Lower end of its interval; with `high` absent where it has none.
        high: Upper end.
        step: Smallest difference that the instrument can show.
        doubtful: Something else ran meanwhile.
    """

    machine: str
    value: float
    low: float | None = None
    high: float | None = None
    step: float = 0.0
    doubtful: bool = False

    @property
    def ends(self) -> tuple[float, float] | None:
        """Its interval; None where it has none."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Difference:
    """What can be said of several machines' figures.

    Attributes:
        beyond: Whether two of them differ by more than the noise; None where that cannot be said.
        ratio: The larger of these two over the smaller.
        words: The same for people.
    """

    beyond: bool | None
    ratio: float | None
    words: str


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
        settings = run.settings
        own = (settings.delay_ms, settings.rate_mbit, settings.distance, settings.url)
        for record in run.records:
            method = methods.setdefault(record.probe, record.method)
            if record.probe.startswith("network."):
                path = own if path is None else path
            if record.method != method:
                others[record.probe] = (
                    f"measured by version {record.method} of its method, others by {method}"
                )
            elif record.probe.startswith("network.") and own != path:
                others[record.probe] = "measured over another path than the first run's"
            else:
                kept.append(record)
        notes += [f"{machine.name}: {probe} was {why}: left out" for probe, why in others.items()]
        found.append(Machine(machine.name, Run(run.header, kept, run.footer, path=run.path, notes=run.notes)))
    return found, notes


def shared_with_neighbours(machines: Iterable[Machine]) -> bool:
    """Whether one of them is virtual: others, which it cannot see, use its L3 and its memory too."""
    return any(machine.run.machine.flag("virtualisation.guest") for machine in machines)


def widening(machines: int) -> float:
    """By how much 95 % intervals grow before so many are compared: of thirty equals, two often lie apart."""
    points = (*_RANGE, *_RANGE_OF_MANY)
    reached = next((point for count, point in points if count >= machines), points[-1][1])
    return max(1.0, reached / _TOUCHING)


def difference(figures: Iterable[Figure], *, ranges: bool = False, same: float = SAME) -> Difference:
    """Whether any two of the figures differ by more than the noise, and the two that do so most clearly.

    Disturbed figures are not compared: they are of the disturbance.

    Args:
        figures: At most one a machine.
        ranges: The intervals are ranges of what was seen: compared as they are, and called so.
        same: A ratio that runs of one machine reach too.
    """
    whole = [figure for figure in figures if figure.low is not None and figure.high is not None]
    known = [figure for figure in whole if not figure.doubtful]
    if len(known) < 2:  # noqa: PLR2004 - nothing to compare with
        disturbed = "all but one disturbed" if known else "all disturbed"
        why = disturbed if len(whole) > 1 else "no two intervals"
        return Difference(None, None, f"not compared: {why}")
    wide = 1.0 if ranges else widening(len(known))
    ends = [
        (
            figure.value - wide * max(figure.value - (figure.low or 0.0), 0.0) - figure.step / 2,
            figure.value + wide * max((figure.high or 0.0) - figure.value, 0.0) + figure.step / 2,
        )
        for figure in known
    ]
    lowest = min(range(len(known)), key=lambda place: ends[place][1])
    highest = max(range(len(known)), key=lambda place: ends[place][0])
    one, other = known[lowest], known[highest]
    if ends[lowest][1] >= ends[highest][0] or other.value < same * one.value:
        return Difference(beyond=False, ratio=None, words="within the noise")
    if one.value <= 0:
        said = f"beyond the noise ({one.machine}, {other.machine})"
        return Difference(beyond=True, ratio=None, words=said)
    ratio = other.value / one.value
    said = f"{_times(ratio)}, beyond the noise ({one.machine} to {other.machine})"
    return Difference(beyond=True, ratio=ratio, words=said)


def _times(ratio: float) -> str:
    few = 1.995
    return (
        f"{format_digits((ratio - 1) * 100, 2)} % more" if ratio < few else f"{format_digits(ratio, 2)} times"
    )
