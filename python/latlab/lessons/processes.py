"""Programs that a lesson starts: run to their end, and ended together with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from latlab import environment
from latlab.text import clean


def run_whole(
    command: Sequence[str | Path],
    longest: float,
    *,
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
) -> int:
    """The exit code of a command, run in the usual environment; it finds this latlab where it imports it.

    Args:
        command: What is run.
        longest: Seconds after which it is ended, with all that it started.
        stdin: Its input.
        stdout: Where its output goes.
        stderr: Where its errors go.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    own = str(Path(__file__).parents[2])
    kept = environment.usual()
    path = os.pathsep.join(filter(None, (own, kept.get("PYTHONPATH"))))
    process = subprocess.Popen(  # noqa: S603 - programs of the lessons
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**kept, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        return process.wait(longest)
    finally:
        _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it started, where it has not ended by itself."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
        process.wait()


def last_words(output: bytes | str | None) -> str:
    """The last line of what a program said, safe to show; empty where it said nothing."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
    return clean(text.strip().rpartition("\n")[2], most=200)
