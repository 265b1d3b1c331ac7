"""Why the measuring process died: told from its exit status, its last words and the kernel's counters."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from latlab.text import clean


def cause_of_death(code: int | None, *, fatal: str, oom_kills_before: int | None) -> str:
    """How a process that should have gone on has ended, as a sentence for the user.

    Args:
        code: its exit status as `subprocess` has it: negative for a signal, None while it runs.
        fatal: what it said of its own end.
        oom_kills_before: the kernel's count when it was started.
    """
    if code is None:
        return "the measuring process does not answer"
    if code >= 0:
        what = fatal or "without saying why"
        return f"the measuring process ended with code {code}, {clean(what, most=300)}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name != "SIGKILL":
        meaning = {
            "SIGBUS": ": a page could not be had",
            "SIGILL": ": an instruction that this CPU lacks",
        }.get(name, "")
        return f"the measuring process died of {name}{meaning}"
    now = oom_kills()
    if now is not None and oom_kills_before is not None and now > oom_kills_before:
        return (
            "the measuring process was killed (SIGKILL) at the memory limit, as the kernel's count"
            " of such kills says: give it more memory to lift this"
        )
    return "the measuring process was killed (SIGKILL): most likely for want of memory, or by somebody"


def last_words(err: bytes | bytearray) -> str:
    """The end of what a process wrote to standard error, as one line."""
    lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    return clean(" / ".join(lines[-3:]), most=500)


def oom_kills(root: Path = Path("/")) -> int | None:
    """How many processes of this control group, or else of the machine, were killed for want of memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            path = group.strip("/")
            if not controllers:
                candidates = [root / "sys/fs/cgroup" / path / "memory.events"]
            elif "memory" in controllers.split(","):
                base = root / "sys/fs/cgroup/memory"
                candidates = [base / path / "memory.oom_control", base / "memory.oom_control"]
            else:
                continue
            for candidate in candidates:
                count = _counter(candidate, "oom_kill")
                if count is not None:
                    return count
    return _counter(root / "proc/vmstat", "oom_kill")


def _counter(path: Path, name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return None
