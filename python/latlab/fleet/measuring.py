"""The process that measures a host for a survey: `python -m latlab.fleet.measuring FOLDER`.

It reads its request, one line of JSON, from standard input, and writes the run file, packed, to standard
output. It stops measuring when standard input ends before that: the worker that asked has ended. It makes the
folder itself, and removes it: a worker that is killed leaves none.
"""

from __future__ import annotations

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
    from latlab.run.run import Run


def main() -> int:
    """Measures once; returns the exit code."""
    # A worker that was started in the background has it ignored, and this process would not hear of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1
    asked = json.loads(line)
    folder = Path(sys.argv[1])
    try:
        folder.mkdir(0o700)
    except OSError as error:
        sys.stderr.write(f"the disk of {folder.parent} takes no folder: {error.strerror}\n")
        return 1
    try:
        threading.Thread(target=_watch, daemon=True).start()
        packed = _measured(asked, folder)
        # The worker that is to read on may hang.
        shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.buffer.write(packed)
        sys.stdout.buffer.flush()
    except LatlabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    # The latter three, too, come of too little memory.
    except (OSError, KeyboardInterrupt, MemoryError, ImportError, RuntimeError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _watch() -> None:
    """Ends the measurement, as Ctrl-C does, when standard input ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)


def _measured(asked: dict[str, object], folder: Path) -> bytes:
    """The run file, packed.

    Raises:
        LatlabError: the settings are not possible here, or no whole run file came of it.
    """
    import zstandard  # noqa: PLC0415 - what is asked for is read, and its end watched, before anything is loaded

    from latlab.run.conduct import conduct  # noqa: PLC0415 - see above
    from latlab.run.settings import make_settings  # noqa: PLC0415 - see above

    file = folder / "run.latlab.jsonl"
    run = conduct(make_settings(**asked), out=file)
    why_not = _why_not(run, folder.parent)
    if why_not:
        raise WorkerError(why_not)
    return zstandard.ZstdCompressor().compress(file.read_bytes())


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
