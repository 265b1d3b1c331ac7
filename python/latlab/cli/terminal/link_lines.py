"""A survey of links on a screen: the verdict, then each boundary, host and link that is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latlab.cli.terminal.fleet_lines import MOST, described, reason
from latlab.cli.terminal.screen import Line, Screen
from latlab.fleet.naming import ALARMS
from latlab.text import counted, listed, some
from latlab.units import format_factor

if TYPE_CHECKING:
    from latlab.fleet.pairs import Links


def link_lines(links: Links, screen: Screen, *, verbose: bool = False) -> list[Line]:
    """The whole; with `verbose` a line for each of them."""
    lines = screen.wrapped(_verdict(links), rest="  ", style="bold")
    most = None if verbose else MOST
    for text in (*_basis(links), *_failures(links)[:most]):
        lines += screen.wrapped(text, rest="  ")
    shown = [own for own in links.tested if own.because or verbose]
    for own in shown[:most]:
        lines += described(own.called, own, screen)
    return lines


def _verdict(links: Links) -> str:
    named = links.named
    if not named:
        suspects = [own.called for own in links.tested if own.kind == "suspect"]
        if suspects:
            return f"Nothing is clearly slow; measure again: {some(suspects)}."
        if "host" not in links.visible:
            return "Nothing to compare: fewer than five hosts were measured."
        return f"No host and no measured link{' or boundary' if 'boundary' in links.visible else ''} is slow."
    if len(named) == 1:
        called = named[0].called
        first = called if named[0].what == "host" else called[0].upper() + called[1:]
        return f"{first} is slow: {reason(named[0].because[0])}."
    return f"Slow: {some([own.called for own in named])}."


def _basis(links: Links) -> Iterator[str]:
    hosts = counted(len(links.hosts) + len(links.failed), "host")
    groups = f" in {links.grouped} groups" if links.grouped > 1 else ""
    yield f"{hosts}{groups}, {len(links.links):,} of {counted(links.possible, 'pair')} measured."
    if links.grouped > 1 and "boundary" not in links.visible:
        yield "No boundary was compared with others: that needs five groups of at least three hosts."
    shown: list[str] = []
    for what in (own for own in ("boundary", "host", "link") if own in links.visible):
        trip, rate = (format_factor(own, 3) for own in links.visible[what])
        long = f"{trip} times slower in round trip or {rate} in throughput"
        shown.append(f"a {what} {f'{trip} or {rate} times' if shown else long}")
    if shown:
        yield f"It would have shown {listed(shown)}. False alarms: one fleet in {1 / ALARMS:,.0f}."
    if links.contention is not None:
        yield links.contention.words
    yield from links.notes


def _failures(links: Links) -> list[str]:
    hosts = [f"{own.name}: not measured: {own.reason}" for own in links.failed]
    return hosts + [f"{a}–{b}: not measured: {why}" for a, b, why in links.broken]
