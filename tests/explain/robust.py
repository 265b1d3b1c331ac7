"""Explains one program after another in one process; prints what became of each as a line of JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from latlab.explain.run import NotStartedError, explain

THREADS = """
import threading, time
together = threading.Barrier(501)
def wait():
    together.wait()
    time.sleep(0.6)
threads = [threading.Thread(target=wait) for _ in range(500)]
for thread in threads: thread.start()
together.wait()
for thread in threads: thread.join()
"""
PROGRAMS = {
    "forks": ["sh", "-c", "(exit 3) & wait $!"],
    "execs": ["sh", "-c", "exec sh -c 'exec sh -c \"exit 5\"'"],
    "ignores signals": ["sh", "-c", "trap '' INT TERM HUP; kill -TERM $$; kill -INT $$; sleep 0.05; exit 6"],
    "is killed": ["sh", "-c", "kill -KILL $$"],
    "crashes": ["sh", "-c", "kill -SEGV $$"],
    "exits at once": ["true"],
    "takes two milliseconds": ["sleep", "0.002"],
    "starts 500 threads": [sys.executable, "-I", "-S", "-c", THREADS],
    "closes all descriptors": [
        sys.executable,
        "-I",
        "-S",
        "-c",
        "import os, time; os.closerange(0, 512); time.sleep(0.05); os._exit(9)",
    ],
    "leaves a child running": ["sh", "-c", "sleep 5 >/dev/null 2>&1 & sleep 0.1; exit 4"],
    "does not exist": ["/nowhere/no-such-program"],
    "cannot be executed": ["/etc/passwd"],
}
if os.geteuid() == 0:
    drops = "import os, time; os.setgid(65534); os.setuid(65534); time.sleep(0.05); os._exit(7)"
    PROGRAMS["drops its privileges"] = [sys.executable, "-I", "-S", "-c", drops]


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


def main() -> None:
    """Runs them all at the level in the first argument."""
    level = int(sys.argv[1])
    for name, arguments in PROGRAMS.items():
        before = state()
        told: dict[str, object] = {"name": name}
        try:
            explained, _ = explain(arguments, level=level, runs=1)
        except NotStartedError as error:
            told |= {"not_started": str(error), "exit_code": error.exit_code}
        else:
            told |= {
                "exit_code": explained.program.exit_code,
                "signal": explained.program.signal,
                "left_running": explained.program.left_running,
                "level": explained.level,
                "sum": sum(row.share for row in explained.categories),
                "closes": explained.closure.holds,
                "wall_s": explained.wall_s,
                "threads": explained.threads.most,
                "shares": {row.name: row.share for row in explained.categories},
            }
        after = state()
        told["unchanged"] = before == after or {
            key: (before[key], after[key]) for key in before if before[key] != after[key]
        }
        sys.stderr.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    # Nothing of what these programs print is of interest.
    with tempfile.TemporaryFile() as nowhere:
        subprocess.run(["true"], check=True)
        assert threading.active_count() == 1
        os.dup2(nowhere.fileno(), 1)
        main()
