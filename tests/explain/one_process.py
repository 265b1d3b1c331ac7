"""Explains one program after another in one process, and keeps what became of each."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Reported = dict[str, dict[str, Any]]


def explained(
    folder: Path, level: int, programs: Mapping[str, Sequence[str]], *, memory_bytes: int | None = None
) -> Reported:
    """What became of each program: its exit code, what was said and written, and whether anything changed.

    Args:
        folder: Where the answer is written.
        level: The highest tracing level to use.
        programs: The arguments of each, by name.
        memory_bytes: Of address space, for explain and the programs.
    """
    answer = folder / "answer.jsonl"
    root = Path(__file__).parents[2]

    def limited() -> None:
        if memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    # What a program leaves running may hold these files, which would keep a pipe open.
    with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(level), json.dumps(programs), str(answer)],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            timeout=120,
            check=False,
            preexec_fn=limited,
        )
    assert done.returncode == 0, (folder / "errors").read_text(encoding="utf-8", errors="replace")
    found = map(json.loads, answer.read_text(encoding="utf-8").splitlines())
    return {each["name"]: each for each in found}


def state() -> dict[str, object]:
    """What must be as before, whatever was explained."""
    return {
        "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        "directory": str(Path.cwd()),
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "handlers": [
            str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        ],
        "nice": os.nice(0),
        "affinity": sorted(os.sched_getaffinity(0)),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split(),
    }


def main(level: str, programs: str, answer: str) -> None:
    """Runs them all, and adds a line of JSON to the answer after each."""
    from tests.calling import called  # noqa: PLC0415 - who imports this file may not need it

    ledger = Path(answer).with_name("ledger.json")
    for name, arguments in json.loads(programs).items():
        ledger.unlink(missing_ok=True)
        before = state()
        options = ["--no-limits", "--level", level, "--json", str(ledger)]
        result = called(["explain", *options, "--", *arguments], Path.cwd(), os.environ)
        ended, after = time.time(), state()
        each = {
            "name": name,
            "exit_code": result.returncode,
            "said": result.stderr,
            "ended": ended,
            "ledger": json.loads(ledger.read_text(encoding="utf-8")) if ledger.exists() else None,
            "changed": {key: (before[key], after[key]) for key in before if before[key] != after[key]},
        }
        with Path(answer).open("a", encoding="utf-8") as file:
            file.write(json.dumps(each) + "\n")


if __name__ == "__main__":
    # The first child that a process starts may leave something open in it.
    subprocess.run(["true"], check=True)
    main(*sys.argv[1:])
