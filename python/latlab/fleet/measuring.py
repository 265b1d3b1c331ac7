"""The process that measures a host for a survey: `python -m latlab.fleet.measuring FOLDER`.

It reads its request, one line of JSON, from standard input, and writes the run file, packed, to standard
output. It stops measuring when standard input ends before that: the worker that asked has ended. It makes the
folder itself, and removes it: a worker that is killed leaves none.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from latlab.errors import LatlabError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latlab.run.run import Run


def main() -> int:
    """Measures once; returns the exit code."""
    # A worker that was started in the background has it ignored, and this process would not hear of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1
    asked, folder = json.loads(line), Path(sys.argv[1])
    try:
        # Before the end of the input is watched: an interrupt while msgspec makes a decoder is a crash.
        import zstandard  # noqa: PLC0415 - too little memory for it is said below

        from latlab.run.conduct import conduct  # noqa: PLC0415 - see above
        from latlab.run.settings import make_settings  # noqa: PLC0415 - see above

        with _made(folder):
            threading.Thread(target=_watch, daemon=True).start()
            file = folder / "run.latlab.jsonl"
            run = conduct(make_settings(**asked), out=file)
            if why_not := _why_not(run, folder.parent):
                raise WorkerError(why_not)
            packed = zstandard.ZstdCompressor().compress(file.read_bytes())
        # The folder is gone by now: the worker that is to read on may hang.
        sys.stdout.buffer.write(packed)
        sys.stdout.buffer.flush()
    except LatlabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    # The latter three, too, come of too little memory.
    except (OSError, KeyboardInterrupt, MemoryError, ImportError, RuntimeError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, until it is left.

    Raises:
        WorkerError: it cannot be made.
    """
    try:
        folder.mkdir(0o700)
    except OSError as error:
        raise WorkerError(f"the disk of {folder.parent} takes no folder: {error.strerror}") from None
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch() -> None:
    """Ends the measurement, as Ctrl-C does, when standard input ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)


def _why_not(run: Run, folder: Path) -> str:
    """Why a run is of no use; empty where it is."""
    if run.write_error is not None:
        return f"the disk of {folder} does not take the run file: {run.write_error}"
    failed = run.stopped_by.startswith("failed")
    if not failed and any(record.value is not None for record in run.records):
        return ""
    absent = [line.error for line in run.lines if line.error is not None]
    why = next((own.text for own in absent if own.kind == "worker_died"), absent[0].text if absent else "")
    return ": ".join(filter(None, [run.stopped_by if failed else "nothing was measured", why]))


if __name__ == "__main__":
    # The watching thread waits for input: without the interpreter's tidying up.
    code = main()
    sys.stderr.flush()
    os._exit(code)
