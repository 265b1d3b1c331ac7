"""Why the measuring process died: told from its exit status, its last words and the kernel's counters."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import NamedTuple

from latlab.text import clean


def cause_of_death(code: int | None, *, fatal: str, before: OomKills) -> str:
    """How a process that should have gone on has ended, as a sentence for the user.

    Args:
        code: its exit status as `subprocess` has it: negative for a signal, None while it runs.
        fatal: what it said of its own end.
        before: the kernel's counts when it was started.
    """
    if code is None:
        return "the measuring process does not answer"
    if code >= 0:
        what = fatal or "without a message"
        return f"the measuring process ended with code {code}, {clean(what, most=300)}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name != "SIGKILL":
        meaning = {
            "SIGBUS": ": a page could not be provided",
            "SIGILL": ": an instruction that this CPU lacks",
        }.get(name, "")
        return f"the measuring process died of {name}{meaning}"
    now = oom_kills()
    if _rose(before.group, now.group):
        return (
            "the measuring process was killed (SIGKILL) at the memory limit, as the kernel's count "
            "of such kills shows: give it more memory"
        )
    if _rose(before.machine, now.machine):
        return (
            "the measuring process was killed (SIGKILL) while the kernel was killing processes to "
            "free memory: give it more memory"
        )
    return "the measuring process was killed (SIGKILL): out of memory, or by another process"


def _rose(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before


def last_words(err: bytes | bytearray) -> str:
    """The end of what a process wrote to standard error, as one line."""
    lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    return clean(" / ".join(lines[-3:]), most=500)


class OomKills(NamedTuple):
    """How many processes the kernel has killed for lack of memory since the start; None = it does not say."""

    group: int | None
    machine: int | None


def oom_kills(root: Path = Path("/")) -> OomKills:
    """The kernel's counts, of this process's control group and of the machine."""
    return OomKills(_group_kills(root), _counter(root / "proc/vmstat", "oom_kill"))


def _group_kills(root: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            path = group.strip("/")
            if not controllers:
                candidates = [root / "sys/fs/cgroup" / path / "memory.events"]
            elif "memory" in controllers.split(","):
                base = root / "sys/fs/cgroup/memory"
                # In a container, the group's path is the host's, and its files are at the top.
                candidates = [base / path / "memory.oom_control", base / "memory.oom_control"]
            else:
                continue
            for candidate in candidates:
                count = _counter(candidate, "oom_kill")
                if count is not None:
                    return count
    return None


def _counter(path: Path, name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return None
