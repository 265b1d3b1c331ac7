"""A ledger of a program that runs apart from this process: with a deadline, and streams of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from latlab.explain.model import Explained
from latlab.explain.program import ProgramError, run
from latlab.explain.run import NotStartedError, explain


def explain_apart(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdout: int = subprocess.DEVNULL,
    stderr: int | None = None,
    runs: int = 1,
    longest_s: float | None = None,
) -> Explained:
    """Runs a program and returns its ledger.

    Args:
        arguments: Name and arguments.
        environment: All that the program is given.
        stdout: As of `subprocess`.
        stderr: Likewise; None: read, and its last words are in the error.
        runs: How often it is run; from the second time on its output is thrown away.
        longest_s: It is killed after that time, all runs together.

    Raises:
        ProgramError: it could not be started, failed, or took too long.
    """
    # A file without a name: nothing is left of it.
    with os.fdopen(os.memfd_create("latlab-ledger"), "rb") as ledger:
        os.set_inheritable(ledger.fileno(), True)
        run(
            [
                *(sys.executable, "-P", "-m", "latlab.explain.apart"),
                *(str(ledger.fileno()), str(runs), *map(os.fspath, arguments)),
            ],
            environment,
            stdout=stdout,
            stderr=stderr,
            longest_s=longest_s,
        )
        ledger.seek(0)
        found = msgspec.json.decode(ledger.read(), type=Explained | str)
    if isinstance(found, str):
        raise ProgramError(f"cannot be started: {found}")
    return found


def main() -> None:
    """Explains the program of the command line, writes its ledger, and ends as it did."""
    ledger, runs, *arguments = sys.argv[1:]
    # It is not the program's.
    os.set_inheritable(int(ledger), False)
    try:
        explained, plain = explain(arguments, runs=int(runs))
    except NotStartedError as error:
        Path(f"/proc/self/fd/{ledger}").write_bytes(msgspec.json.encode(str(error)))
        return
    Path(f"/proc/self/fd/{ledger}").write_bytes(plain)
    if explained.program.signal is not None:
        # The program has left a dump, if one was wanted.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(ValueError, OSError):
            signal.signal(explained.program.signal, signal.SIG_DFL)
        os.kill(os.getpid(), explained.program.signal)
    sys.exit(explained.program.exit_code or 0)


if __name__ == "__main__":
    main()
