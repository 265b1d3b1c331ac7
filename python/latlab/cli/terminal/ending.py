"""The last lines: where it is, and what to do next, to be pasted as they stand."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from latlab import units
from latlab.cli.terminal.screen import Line, Screen, styled

if TYPE_CHECKING:
    from latlab.run.run import Run


def ending_lines(run: Run, report: Path | None, screen: Screen, *, short: bool = False) -> list[Line]:
    """Where the run and its report are, what became of it, and three commands.

    Args:
        run: What was measured.
        report: The report's file.
        screen: Where it is shown.
        short: Without the commands: for `--json`, whose reader is a program.
    """
    lines = [Line()] if not short else []
    if run.stopped_by == "interrupted":
        finished = "1 record was" if len(run.records) == 1 else f"{len(run.records)} records were"
        lines.append(styled(screen.fit(f" interrupted: {finished} finished and kept"), "yellow"))
    elif run.stopped_by.startswith("failed"):
        lines.append(styled(screen.fit(f" {run.stopped_by}: what was finished is kept"), "red"))
    for note in run.notes:
        lines += screen.wrapped(note, first=" ", rest="   ")
    if run.write_error:
        lines += screen.wrapped(f"the run file is not complete: {run.write_error}", first=" ", rest="   ")
    if run.path is not None:
        lines += _place("saved ", run.path, screen)
    if report is not None:
        lines += _place("report", report, screen)
    if short or run.path is None:
        return lines
    name = own_name()
    file = "last" if _in_store(run.path) else shlex.quote(str(run.path))
    commands = [
        (f"{name} show {file} -v", "details"),
        (f"{name} doctor", "what distorts figures here"),
        (f"{name} report {file} -o report.pdf", "to print or send"),
    ]
    width = max(len(command) for command, _ in commands)
    for number, (command, what) in enumerate(commands):
        start = " next    " if number == 0 else " " * 9
        text = f"{start}{command.ljust(width)}  {what}"
        lines.append(Line(screen.fit(text if len(text) <= screen.width else f"{start}{command}")))
    return lines


def _place(label: str, path: Path, screen: Screen) -> list[Line]:
    """The path in one piece: it is copied."""
    try:
        size = f"  ({units.format_bytes(path.stat().st_size)})"
    except OSError:
        size = ""
    place = screen.fit(f" {label}  {_tilde(path)}")
    return [Line(place + size if len(place) + len(size) <= screen.width else place)]


def _tilde(path: Path) -> str:
    """`~/...` where a shell would read it so."""
    text = str(path)
    try:
        home = str(Path.home())
    except RuntimeError:
        return shlex.quote(text)
    plain = shlex.quote(text) == text
    return (
        f"~{text[len(home) :]}"
        if plain and home != "/" and text.startswith(home + os.sep)
        else shlex.quote(text)
    )


def _in_store(path: Path) -> bool:
    from latlab.run.store import default_folder  # noqa: PLC0415 - only where a run was kept

    return path.parent == default_folder()


def own_name() -> str:
    """How this command can be typed again: `latlab` where the shell finds it so, else its path."""
    called = sys.argv[0]
    found = shutil.which("latlab")
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return "latlab"
    if Path(called).name != "latlab" or not Path(called).exists():
        return "latlab" if found else f"{shlex.quote(sys.executable)} -m latlab"
    try:
        relative = os.path.relpath(called)
    except OSError:
        # The folder where the user is was removed.
        return shlex.quote(called)
    return shlex.quote(called if relative.startswith("..") else relative)
