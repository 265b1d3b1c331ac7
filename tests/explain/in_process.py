"""`latlab explain` within this process: most of what a start of the command takes is starting Python."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

from tests.calling import called


def explain(*arguments: str, stdin: int | None = None) -> CompletedProcess[str]:
    """Runs it; on standard error, what the program wrote comes before what is told of it.

    Args:
        arguments: After `explain`.
        stdin: A descriptor that the program reads; nothing by default.
    """
    kept = [os.dup(stream) for stream in range(3)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error, Path(os.devnull).open() as null:
        try:
            given = null.fileno() if stdin is None else stdin
            for stream, descriptor in enumerate((given, out.fileno(), error.fileno())):
                os.dup2(descriptor, stream)
            result = called(["explain", *arguments], Path.cwd(), os.environ)
        finally:
            for stream, was in enumerate(kept):
                os.dup2(was, stream)
                os.close(was)
        out.seek(0)
        error.seek(0)
        result.stdout = out.read().decode() + result.stdout
        result.stderr = error.read().decode() + result.stderr
        return result
