"""A survey of a fleet on a screen: the verdict, then each host that is not as its peers are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.fleet.naming import ALARMS, LEAST_HOSTS
from latlab.fleet.why import NO_CAUSE
from latlab.text import counted, some
from latlab.units import format_factor, format_span, format_value

if TYPE_CHECKING:
    from latlab.fleet.standings import Reason, Standing, Survey, Tested

#: Hosts that are described.
MOST: Final = 20


def fleet_lines(survey: Survey, screen: Screen, *, verbose: bool = False) -> list[Line]:
    """The whole.

    Args:
        survey: What is shown.
        screen: Where it is shown.
        verbose: Whether each host has a line.
    """
    lines = screen.wrapped(_verdict(survey), rest="  ", style="bold")
    for text in _basis(survey):
        lines += screen.wrapped(text, rest="  ")
    for failure in survey.failed if verbose else survey.failed[:MOST]:
        lines += screen.wrapped(f"{failure.name}: not measured: {failure.reason}", rest="  ")
    reported = [own for own in survey.standings if own.because or verbose]
    for own in reported if verbose else reported[:MOST]:
        lines += described(own.host.name, own, screen)
        for text in own.differs or [NO_CAUSE] * bool(own.because):
            lines += screen.wrapped(text, first="  ", rest="    ")
    if len(reported) > MOST and not verbose:
        lines += [Line(), *screen.wrapped(f"{len(reported) - MOST} more hosts: -v lists all.")]
    return lines


#: Verdicts for people.
WORDS: Final = {
    "slow": "slow",
    "suspect": "suspect; measure it again",
    "ok": "like its peers",
    "no-peers": f"no peers ({LEAST_HOSTS} hosts of one class are needed)",
}


def described(name: str, own: Standing | Tested, screen: Screen) -> list[Line]:
    """A host or a link, with the figures that show its verdict."""
    lines = [Line(), styled(screen.fit(f"{name}: {WORDS[own.kind]}"), "bold")]
    for each in own.because:
        lines += screen.wrapped(reason(each), first="  ", rest="    ")
    return lines


def reason(own: Reason) -> str:
    """`RAM: 210 ns, peers 105 ns, 2.00 times slower (1.85–2.16)`."""
    span = format_span(own.low, own.high, lambda value: format_factor(value, 3))
    return (
        f"{own.name}: {format_value(own.value, own.unit)}, peers {format_value(own.peers, own.unit)},"
        f" {format_factor(own.ratio, 3)} times slower ({span})"
    )


def _verdict(survey: Survey) -> str:
    named = survey.named
    if not named:
        suspects = [own.host.name for own in survey.standings if own.kind == "suspect"]
        if suspects:
            return f"No host is clearly slow; measure again: {some(suspects)}."
        if not survey.standings:
            return "Nothing to compare: no host was measured."
        return "No host is slow." if survey.tests else "Nothing to compare: no class has enough hosts."
    if len(named) == 1:
        return f"{named[0].host.name} is slow: {reason(named[0].because[0])}."
    return f"{len(named)} hosts are slow: {some([own.host.name for own in named])}."


def _basis(survey: Survey) -> Iterator[str]:
    hosts = len(survey.standings) + len(survey.failed)
    classes = len(survey.classes)
    runs = sum(own.host.runs for own in survey.standings)
    yield f"{counted(hosts, 'host')} of {counted(classes, 'class')}, {counted(runs, 'run')}."
    if survey.visible is not None:
        shown = format_factor(survey.visible, 3)
        yield (
            f"A host {shown} times slower would have shown in half of the figures."
            f" False alarms: one fleet in {1 / ALARMS:,.0f}."
        )
    if len(survey.failed) > MOST:
        yield f"{len(survey.failed):,} hosts were not measured; --json lists all."
    yield from survey.notes
    alone = [own for own in survey.standings if own.kind == "no-peers"]
    if alone:
        yield f"Without peers: {some([own.host.name for own in alone])}; a class needs {LEAST_HOSTS} hosts."
