"""Memory and time of `latlab fleet merge`, by the number of run files.

    .venv/bin/python benches/fleet_files.py [--save]

Each file is a kept run with the name of another host, its figures scattered by 2 %, and without the lines
between its header and its footer, which a merge does not read. A row for each number: the merging process's
peak memory, what each file beyond those of the first row added, wall time. `--save` keeps the table in
benches/results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fleet.files import run_of
from tools import evidence

_COUNTS: Final = (1_000, 10_000)
_MERGE: Final = (sys.executable, "-m", "latlab", "fleet", "merge", "--json")


def merged(folder: Path) -> tuple[int, float]:
    """Peak memory in bytes of a merge of these files, and its wall time in seconds."""
    started = time.monotonic()
    with subprocess.Popen([*_MERGE, str(folder)], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the merge ended with {process.returncode}")
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), time.monotonic() - started


def rows() -> Iterator[dict[str, object]]:
    """A row for each number of files."""
    with tempfile.TemporaryDirectory() as name:
        folder, written, first = Path(name), 0, (0, 0)
        for count in _COUNTS:
            for number in range(written, count):
                (folder / f"node{number}.latlab.jsonl").write_text(
                    run_of(f"node{number}", number, short=True)
                )
            written = count
            peak, seconds = merged(folder)
            first = first if first[1] else (count, peak)
            more = count - first[0]
            yield {
                "run_files": count,
                "peak_MiB": f"{peak / 2**20:.0f}",
                "more_bytes_a_file": f"{(peak - first[1]) / more:.0f}" if more else "",
                "seconds": f"{seconds:.1f}",
            }


if __name__ == "__main__":
    evidence.table("fleet-files.csv", "benches/fleet_files.py", __doc__, rows)
