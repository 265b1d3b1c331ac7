"""Kept runs, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.text import aligned
from latlab.units import format_bytes

_HEADS: Final = ("run", "date", "profile", "probes", "size", "label", "machine")
#: A column wider than this is cut on a terminal.
_WIDEST: Final = 40


def runs_lines(runs: Sequence[Mapping[str, Any]], screen: Screen) -> list[Line]:
    """A table, the newest run last; each as `latlab runs --json` has it."""
    if not runs:
        return [Line("No kept run.")]
    rows = [_HEADS, *(_row(run) for run in runs)]
    fitted = [[_cut(screen.fit(cell), screen) for cell in row] for row in rows]
    heads, *lines = aligned(fitted, range(len(_HEADS)))
    return [styled(heads, "dim"), *map(Line, lines)]


def _row(run: Mapping[str, Any]) -> tuple[str, ...]:
    date = run["started"].replace("T", " ")[:16]
    probes = ",".join(run["only"]) or "all"
    probes += f" but {','.join(run['skip'])}" if run["skip"] else ""
    return (run["id"], date, run["profile"], probes, format_bytes(run["bytes"]), run["label"], run["machine"])


def _cut(cell: str, screen: Screen) -> str:
    if not screen.is_terminal or len(cell) <= _WIDEST:
        return cell
    return f"{cell[: _WIDEST - 1]}{'…' if screen.unicode else '.'}"
