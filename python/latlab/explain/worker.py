"""Which process of a program did its work, and what only started it: by what each was seen to do."""

from __future__ import annotations

import shlex
from collections import defaultdict
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from latlab.explain.model import Explained, Process
from latlab.text import clean
from latlab.units import format_percent

_IDLE: Final = frozenset({"waiting-for-children", "sleep", "pipe"})
"""Waits of a process that others work for."""
_LITTLE: Final = 0.05
"""Share of wall time with less work than that, and nobody is known to have done it."""
_SEEN: Final = 0.02
_LONGEST_NAME: Final = 15
"""Bytes that the kernel keeps of a process's name."""
_MOST: Final = 48


class Worker(NamedTuple):
    """Who did the work.

    Attributes:
        name: of its processes.
        command: its part of the command line where it has one, otherwise its name.
        started_by: the program that was given, where that is another one; empty otherwise.
        shells: share of wall time in which shells that it started ran.
    """

    name: str
    command: str
    started_by: str
    shells: float

    @property
    def says(self) -> str | None:
        """A sentence; None where the program that was given did the work itself, without shells."""
        if not self.started_by and self.shells < _SEEN:
            return None
        by = f", started by {self.started_by}" if self.started_by else ""
        shells = (
            f"; shells below it ran {format_percent(self.shells)} of the time, such as those of pyenv's shims"
            if self.shells >= _SEEN
            else ""
        )
        return f"The work was done by {self.command}{by}{shells}."


def worker(explained: Explained) -> Worker:
    """The processes of one name that did more than half of the work; otherwise the program as given."""
    arguments, root = explained.program.arguments, explained.program.pid
    first = next((each.name for each in explained.processes if each.pid == root), "")
    given = _base(arguments[0]) if arguments else first or "the process"
    worked: dict[str, float] = defaultdict(float)
    for process in explained.processes:
        worked[process.name] += _worked_s(process)
    most = max(worked, key=lambda name: worked[name], default="")
    total = sum(worked.values())
    known = most and total >= _LITTLE * explained.wall_s and worked[most] > total / 2
    words = _words(arguments)
    if not known or not _is_another(explained, most, given, words):
        return Worker(given, given, "", _shells(explained, given))
    shell = " -c" if _is_shell(given) and "-c" in arguments[1:] else ""
    return Worker(most, _command(words, most), f"{given}{shell}", _shells(explained, most))


def look_through(whole: dict[str, Any]) -> None:
    """Gives what the only process below a sleeping wrapper waited for instead of the wrapper's sleep.

    `timeout` sleeps until a signal tells it that its child has ended; whatever the child waited for would be
    that sleep. `whole` is a ledger as the core writes it; nothing of it changes where this is not so.
    """
    root = whole["program"]["pid"]
    processes = sorted(whole["processes"], key=lambda each: each["pid"] != root)
    if len(processes) != 2 or processes[0]["pid"] != root or processes[1]["parent"] != root:  # noqa: PLR2004 - these two
        return
    (wrapper, child), rows = processes, {row["name"]: row for row in whole["categories"]}
    sleep, waits = rows.get("sleep"), _waits(child)
    total = sum(waits.values())
    parts = {
        name: share / total for name, share in waits.items() if total and name != "sleep" and name in rows
    }
    if not parts or not sleep or not sleep["share"] or _waits(wrapper).get("sleep", 0.0) < 1 - _LITTLE:
        return
    for field in ("share", "low", "high", "seconds"):
        amounts = _shared_out({name: row[field] for name, row in rows.items()}, parts)
        for name, row in rows.items():
            row[field] = amounts[name]
    for name in parts:
        rows[name]["method"] = sleep["method"]
    for part in sleep.get("parts", ()):
        for field in ("share", "seconds"):
            part[field] *= 1 - sum(parts.values())
    whole["categories"].sort(key=lambda row: -row["share"])
    timeline = whole["timeline"]
    names = timeline["names"]
    if "sleep" in names:
        moments = [_shared_out(dict(zip(names, one, strict=True)), parts) for one in timeline["bins"]]
        timeline["names"] = list(dict.fromkeys([*names, *parts]))
        timeline["bins"] = [list(moment.values()) for moment in moments]
    slept, worked = clean(wrapper["name"], most=_MOST), clean(child["name"], most=_MOST)
    whole["notes"] = [*whole.get("notes", ()), f"While {slept} slept, the waits of {worked} count instead."]


def _waits(process: dict[str, Any]) -> dict[str, float]:
    return {wait["name"]: wait["share"] for wait in process.get("waits", ())}


def _shared_out(amounts: dict[str, float], parts: dict[str, float]) -> dict[str, float]:
    """Amounts by category once these parts of what `sleep` has are of others."""
    slept = amounts["sleep"]
    given = {name: amounts.get(name, 0.0) + part * slept for name, part in parts.items()}
    return amounts | given | {"sleep": slept * (1 - sum(parts.values()))}


def _worked_s(process: Process) -> float:
    waited = sum(wait.share for wait in process.waits if wait.name not in _IDLE)
    return process.wall_s * (process.running + waited)


def _base(word: str) -> str:
    return clean(PurePath(word).name or word, most=_MOST)


def _is(word: str, name: str) -> bool:
    return bool(name) and PurePath(word).name[:_LONGEST_NAME] == name


def _is_shell(name: str) -> bool:
    return name in {"sh", "bash", "dash", "ash", "zsh", "ksh", "fish"}


def _is_another(explained: Explained, name: str, given: str, words: list[str]) -> bool:
    """Not the given program: one that it started, or went on as; who only renames itself is none of these."""
    if _is(given, name) or not explained.program.arguments:
        return False
    started = any(each.name == name and each.pid != explained.program.pid for each in explained.processes)
    return started or any(_is(word, name) for word in words)


def _words(arguments: tuple[str, ...]) -> list[str]:
    """The command line, and what it has a shell run, as single words."""
    words: list[str] = []
    for at, argument in enumerate(arguments):
        script = arguments[at - 1] == "-c" and any(_is_shell(_base(each)) for each in arguments[: at - 1])
        if at < 2 or not script:  # noqa: PLR2004 - a shell and its option come before
            words.append(argument)
            continue
        lexer = shlex.shlex(argument, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words += list(lexer)
        except ValueError:
            words += argument.split()
    return words


def _command(words: list[str], name: str) -> str:
    """From the name to the end of its command."""
    start = next((at for at, word in enumerate(words) if _is(word, name)), None)
    if start is None:
        return clean(name, most=_MOST)
    rest = words[start + 1 :]
    end = next((at for at, word in enumerate(rest) if word and not word.strip("();<>|&")), len(rest))
    return clean(" ".join([name, *rest[:end]]), most=_MOST)


def _shells(explained: Explained, name: str) -> float:
    """Share of wall time in which shells ran that processes of this name started, one after the other."""
    if _is_shell(name):
        return 0.0
    pids = {process.pid for process in explained.processes if process.name == name[:_LONGEST_NAME]}
    ran = sum(each.wall_s for each in explained.processes if each.parent in pids and _is_shell(each.name))
    return min(ran / max(explained.wall_s, 1e-9), 1.0)
