"""Compares the ledger with programs that time themselves, at each level; prints the table of METHODOLOGY.md.

    python benches/explain/truth.py [--level 1,2,3] [--only list,random] --dir /data

Needs gcc. Writes a file of 400 MB into the directory and removes it. The difference is in points of wall
time; on a busy machine a program's own clocks count its waits for a CPU too, so `run queue` stands beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from latlab.explain.run import explain

KNOWN: dict[str, tuple[str, ...]] = {
    "list": ("allocator", "page-faults", "compute", "user-cpu", "interrupts-for-others"),
    "random": ("storage-wait", "file-io-cpu"),
    "mapped": ("storage-wait", "file-io-cpu", "page-faults"),
    "cold": ("storage-wait", "file-io-cpu"),
    "warm": ("file-io-cpu",),
    "faults": ("page-faults",),
    "client": ("network",),
    "lock": ("compute", "user-cpu", "locks"),
    "pingpong": ("pipe", "user-cpu", "compute", "file-io-cpu"),
}
"""The program's part, and the rows that make it up."""
_BLOCK = 1 << 20
_FILE_BLOCKS = 400
_REPLY_S = 0.005


@contextlib.contextmanager
def server() -> Iterator[int]:
    """A server that answers a byte after 5 ms; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]


def _serve(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection:
                while connection.recv(1):
                    time.sleep(_REPLY_S)
                    connection.send(b"x")


def main() -> None:
    """Compiles the programs, runs each at each level."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--level", default="1,2,3")
    parser.add_argument("--only", default=",".join(KNOWN))
    parser.add_argument("--dir", default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="latlab-truth-", dir=asked.dir) as directory, server() as port:
        program, file, said = Path(directory, "known"), Path(directory, "file"), Path(directory, "said")
        source = Path(__file__).with_name("known.c")
        subprocess.run(["gcc", "-O2", "-Wall", "-o", program, source, "-lpthread"], check=True)
        with file.open("wb") as out:
            for _ in range(_FILE_BLOCKS):
                out.write(os.urandom(_BLOCK))
            os.fsync(out.fileno())
        # What the programs print is their truth; what they inherit is this.
        out_fd = os.open(said, os.O_RDWR | os.O_CREAT)
        os.dup2(out_fd, 1)
        sys.stderr.write("program   level  truth   ledger  points  closure  run queue\n")
        for name in asked.only.split(","):
            for level in asked.level.split(","):
                os.ftruncate(1, 0)
                os.lseek(1, 0, os.SEEK_SET)
                argument = str(port) if name == "client" else str(file)
                explained, _ = explain([str(program), name, argument], level=int(level), runs=1)
                truth = json.loads(said.read_text(encoding="ascii"))["part"] / explained.wall_s
                found = explained.share(*KNOWN[name])
                points = [100 * value for value in (truth, found, found - truth)]
                rest = 100 * explained.closure.sum, 100 * explained.share("run-queue-wait")
                shown = (
                    f"{points[0]:5.1f}   {points[1]:6.1f}  {points[2]:+6.1f}  {rest[0]:7.2f}  {rest[1]:9.1f}"
                )
                sys.stderr.write(f"{name:9} {level:>5}  {shown}\n")


if __name__ == "__main__":
    main()
