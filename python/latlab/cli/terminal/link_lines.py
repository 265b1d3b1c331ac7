"""A survey of links on a screen: the verdict, then each host and link that is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latlab.cli.terminal.fleet_lines import MOST, counted, described, names, reason
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.fleet.naming import ALARMS
from latlab.units import format_factor

if TYPE_CHECKING:
    from latlab.fleet.pairs import Links, Tested


def link_lines(links: Links, screen: Screen, *, verbose: bool = False) -> list[Line]:
    """The whole.

    Args:
        links: What is shown.
        screen: Where it is shown.
        verbose: Whether each host and link has a line.
    """
    lines = [styled(line.text, "bold") for line in screen.wrapped(_verdict(links), rest="  ")]
    most = None if verbose else MOST
    for text in (*_basis(links), *_failures(links)[:most]):
        lines += screen.wrapped(text, rest="  ")
    shown = [own for own in (*links.hosts, *links.links) if own.because or verbose]
    for own in shown[:most]:
        lines += described(str(own), own, screen)
    return lines


def _verdict(links: Links) -> str:
    named = links.named
    if not named:
        suspects = [str(own) for own in (*links.hosts, *links.links) if own.kind == "suspect"]
        if suspects:
            return f"Nothing is clearly slow; measure again: {names(suspects)}."
        if links.hosts_visible is None:
            return "Nothing to compare: fewer than five hosts were measured."
        return "No host and no measured link is slow."
    if len(named) == 1:
        return f"{_called(named[0])} is slow: {reason(named[0].because[0])}."
    return f"Slow: {names([str(own) for own in named])}."


def _called(own: Tested) -> str:
    return f"The link {own}" if len(own.names) > 1 else str(own)


def _basis(links: Links) -> Iterator[str]:
    hosts = len(links.hosts) + len(links.failed)
    yield f"{counted(hosts, 'host')}, {len(links.links):,} of {counted(links.possible, 'pair')} measured."
    if links.hosts_visible is not None and links.links_visible is not None:
        host, link = (
            [format_factor(own, 3) for own in each] for each in (links.hosts_visible, links.links_visible)
        )
        yield (
            f"It would have shown: a host {host[0]} times slower in round trip or {host[1]} in throughput,"
            f" a link {link[0]} or {link[1]} times. False alarms: one fleet in {1 / ALARMS:,.0f}."
        )
    yield from links.notes


def _failures(links: Links) -> list[str]:
    hosts = [f"{own.name}: not measured: {own.reason}" for own in links.failed]
    return hosts + [f"{a}–{b}: not measured: {why}" for a, b, why in links.broken]
