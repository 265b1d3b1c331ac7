"""Runs one program and writes how long it took and which stages it marked.

    python listening.py marks ANSWER.json PROGRAM ARGUMENTS...

A process of its own, so that only the program is recorded. `plain` instead of `marks` listens to nothing
and needs no measuring core. Started as a file: what it has imported would count as memory of the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any


def main(kind: str, answer: str, *program: str) -> int:
    """Runs it on this process's own input and output; returns its exit code."""
    environment = dict(os.environ)
    if kind == "marks":
        from latlab import _core  # noqa: PLC0415 - it is not there everywhere

        _core.stages_start()
        environment |= _core.stages_environment()
    begun = time.perf_counter()
    with subprocess.Popen(program, env=environment) as child:  # noqa: S603 - what the lesson asked for
        code, peak = _ended(child)
        seconds = time.perf_counter() - begun
    reported: dict[str, Any] = {"code": code, "seconds": seconds, "peak_bytes": peak, "stages": {}}
    if kind == "marks":
        heard = json.loads(_core.stages_heard() or "{}")
        reported["stages"] = {row["name"]: row["self_seconds"] for row in heard["stages"]}
        # Marks that are missing would make a stage shorter than it was.
        reported["missed"] = heard["lost"] + heard["unmatched"] + sum(row["cut"] for row in heard["stages"])
    with open(answer, "w", encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib takes longer than this
        json.dump(reported, file)
    return 0


def _ended(child: subprocess.Popen[bytes]) -> tuple[int, int | None]:
    """Its exit code and its most memory; None where that cannot be told from this process's own."""
    if sys.platform == "win32":
        return child.wait(), None
    import resource  # noqa: PLC0415 - Unix only

    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    # A new process begins with the peak of the one that it was made from.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return child.returncode, used.ru_maxrss * unit if used.ru_maxrss > own else None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
