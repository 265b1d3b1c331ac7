"""Two surveys on one screen: what changed for which hosts, every figure, and each host that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latlab.cli.terminal.comparison import table
from latlab.cli.terminal.fleet_lines import MOST
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.fleet import change_words as words

if TYPE_CHECKING:
    from latlab.fleet.changes import Changes


def change_lines(found: Changes, screen: Screen, *, verbose: bool = False) -> list[Line]:
    """The whole; with `verbose` a line for each host."""
    lines = screen.wrapped(words.verdict(found), rest="  ", style="bold")
    for text in words.circumstances(found):
        lines += screen.wrapped(text, rest="  ")
    for group in range(len(found.groups)):
        lines.append(Line())
        if len(found.groups) > 1:
            lines += screen.wrapped(words.of_group(found, group), style="bold")
        lines += table(found.of_group(group), (found.a.label, found.b.label), screen)
    told = [own for own in found.hosts if verbose or own.kind != "ok"]
    for own in told if verbose else told[:MOST]:
        lines += [Line(), styled(screen.fit(f"{own.name}: {words.HOSTS[own.kind]}"), "bold")]
        for text in words.of_host(own):
            lines += screen.wrapped(text, first="  ", rest="    ")
    if len(told) > MOST and not verbose:
        lines += [Line(), *screen.wrapped(f"{len(told) - MOST:,} more hosts: -v lists all.")]
    return lines
