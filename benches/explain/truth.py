"""Compares the ledger with programs that know where their time goes, at each level of sight.

    python benches/explain/truth.py [--level 1,2,3] [--only "list;random"] [--times 3] --dir /data

Needs gcc; programs in Go, Rust and Java are compared where their compilers are, else named as absent. Writes
a file of 400 MB and a text into the directory and removes them. Of a part its CPU time by the thread's own
clock is compared, and what it waited, but not for a CPU: neither grows because the machine is busy.
Prints the table of docs/method/explain.md, in points of wall time; `!` marks what is further off than is
allowed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latlab.explain.model import Explained
from latlab.explain.run import explain

_BLOCK = 1 << 20
_REPLY_S = 0.005
_ALLOWED = {1: 3.0, 2: 3.0, 3: 5.0}
"""Points of wall time, by level."""
_CLOSED = 0.005
_USER = ("compute", "allocator", "memory-copy", "garbage-collection", "user-cpu")
_START = ("start-and-exit",)
_READING = ("vfs_read", "ksys_read", "ksys_pread64", "filemap_read", "__x64_sys_read", "__x64_sys_pread64")
_FAULTING = ("asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault")
_UNMAPPING = ("__x64_sys_munmap", "__vm_munmap", "do_vmi_munmap", "do_vmi_align_munmap")
_OWN = "user code"
_KERNEL = (*_READING, *_FAULTING, *_UNMAPPING, "do_syscall_64", "entry_SYSCALL_64_after_hwframe")

Said = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """What a program knows of itself, and the rows that say the same."""

    what: str
    truth: Callable[[Said], float]
    """Seconds."""
    rows: tuple[str, ...]
    cpu: tuple[str, ...] | None = None
    """CPU time: the program's clock counts interrupts in it, which level 1 tells apart by these functions of
    the kernel that were interrupted, or user code."""
    levels: tuple[int, ...] = (1, 2, 3)


def _of(kind: str, *parts: str) -> Callable[[Said], float]:
    return lambda said: sum(said["parts"][part][kind] for part in parts)


def _both(*parts: str) -> Callable[[Said], float]:
    return lambda said: _of("cpu", *parts)(said) + _of("wait", *parts)(said)


_READ = (
    Claim("waiting for the disk", _of("wait", "read"), ("storage-wait",)),
    Claim("reading, on the CPU", _of("cpu", "read"), ("file-io-cpu",), cpu=_READING),
    Claim("computing", _of("cpu", "compute"), _USER, cpu=(_OWN,)),
)
_MAPPED = (
    _READ[0],
    Claim("reading, on the CPU", _of("cpu", "read"), ("file-io-cpu", "page-faults"), cpu=_FAULTING),
    _READ[2],
)
_WORDS = (Claim("reading, CPU and waiting", _both("read"), ("file-io-cpu", "storage-wait"), cpu=_READING),)
# Another thread may run while the one that reads waits: wall time is that one's then, and the wait stands
# in the table of threads.
_WORDS_OF_ONE_THREAD = (
    Claim("reading, CPU and waiting", _both("read"), ("file-io-cpu", "threads: storage-wait"), cpu=_READING),
)
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "list": (
        Claim(
            "allocator with its faults",
            _of("cpu", "allocate"),
            ("allocator", "page-faults"),
            cpu=(*_FAULTING, *_UNMAPPING),
            levels=(1, 2),
        ),
        Claim("using the list", _of("cpu", "use"), ("compute",), cpu=(_OWN,), levels=(1, 2)),
        Claim(
            "all of it on the CPU",
            _of("cpu", "use", "allocate"),
            (*_USER, "page-faults"),
            cpu=(_OWN, *_FAULTING, *_UNMAPPING),
        ),
    ),
    "random": _READ,
    "mapped": _MAPPED,
    "cold": _READ,
    "warm": _READ,
    "faults": (
        Claim("touching pages", _of("cpu", "touch"), ("page-faults",), cpu=_FAULTING, levels=(1, 2)),
        Claim("giving them back", _of("cpu", "unmap"), ("allocator",), cpu=_UNMAPPING, levels=(1, 2)),
        Claim("both", _of("cpu", "touch", "unmap"), ("page-faults", "allocator"), cpu=_KERNEL),
        Claim("computing", _of("cpu", "compute"), ("compute", "user-cpu"), cpu=(_OWN,)),
    ),
    "client": (
        Claim("waiting for replies", _of("wait", "reply"), ("network",)),
        Claim("sleeping", _of("wait", "sleep"), ("sleep",)),
        Claim("computing", _of("cpu", "compute"), _USER, cpu=(_OWN,)),
    ),
    "lock": (
        Claim("anybody at work", lambda said: said["busy"], (*_USER, "run-queue-wait", "locks", *_START)),
        Claim("thread-seconds at the lock", _of("wait", "lock", "join"), ("threads: locks",)),
    ),
    "pipeline": (
        Claim("anybody at work", lambda said: said["busy"], (*_USER, "run-queue-wait", "pipe")),
        *(
            Claim(
                f"stage {at + 1} at its pipes",
                lambda said, at=at: said["processes"][at]["pipe"],  # type: ignore[misc]
                (f"process {at}: pipe",),
            )
            for at in range(3)
        ),
    ),
    "python words": (
        *_WORDS,
        Claim("garbage collection", _of("cpu", "collect"), ("garbage-collection",), levels=(1, 2)),
    ),
    "go words, simple": _WORDS_OF_ONE_THREAD,
    "go words, optimised": _WORDS_OF_ONE_THREAD,
    "rust words": _WORDS,
    "java words": _WORDS_OF_ONE_THREAD,
}
"""The programs, and what each knows of itself."""


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


def written(directory: Path, file_mb: int, text_mb: int) -> tuple[Path, Path]:
    """A file of random bytes and a text of words, both on the disk."""
    file, text = directory / "file", directory / "text"
    chance = random.Random(1)  # noqa: S311 - the same text each time
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(20_000)
    ]
    with file.open("wb") as out:
        for _ in range(file_mb):
            out.write(os.urandom(_BLOCK))
        os.fsync(out.fileno())
    with text.open("wb") as out:
        piece = " ".join(chance.choices(words, k=300_000)).encode()
        while out.tell() < text_mb * _BLOCK:
            out.write(piece + b" ")
        os.fsync(out.fileno())
    return file, text


def built(directory: Path, file: Path, text: Path, port: int) -> dict[str, list[str]]:
    """The programs that can be had here, by name: their arguments."""
    here = Path(__file__).parent
    known = directory / "known"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", known, here / "known.c", "-lpthread"], check=True)
    programs = {name: [str(known), name, str(file)] for name in CLAIMS if " " not in name}
    programs["client"][2] = str(port)
    programs["python words"] = [sys.executable, str(here / "words.py"), str(text)]
    go, rust, javac, java = (shutil.which(name) for name in ("go", "rustc", "javac", "java"))
    if go:
        target = str(directory / "words-go")
        environment = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(directory / "go-cache")}
        subprocess.run([go, "build", "-o", target, here / "words.go"], check=True, env=environment)
        for how in ("simple", "optimised"):
            programs[f"go words, {how}"] = [target, how, str(text)]
    if rust:
        target = str(directory / "words-rust")
        options = ["--edition", "2024", "-C", "opt-level=3", "-g"]
        subprocess.run([rust, *options, "-o", target, here / "words.rs"], check=True)
        programs["rust words"] = [target, str(text)]
    if javac and java:
        subprocess.run([javac, "-d", directory, here / "Words.java"], check=True)
        programs["java words"] = [java, "-cp", str(directory), "Words", str(text)]
    return programs


def evict(path: Path) -> None:
    """Takes a file out of memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def found(explained: Explained, claim: Claim, said: Said) -> tuple[float, float, float]:
    """What the ledger says of a claim, as a share of wall time, with its interval where it gives one."""
    share, below, above = 0.0, 0.0, 0.0
    for name in claim.rows:
        if name.startswith("threads: "):
            waits = (wait for wait in explained.threads.waits if wait.name == name.removeprefix("threads: "))
            share += sum(wait.seconds for wait in waits) / explained.wall_s
        elif name.startswith("process "):
            number, _, reason = name.removeprefix("process ").partition(": ")
            pid = said["processes"][int(number)]["pid"]
            for process in explained.processes:
                if process.pid == pid:
                    share += (
                        sum(wait.seconds for wait in process.waits if wait.name == reason) / explained.wall_s
                    )
        elif row := explained.row(name):
            share += row.share
            below += (row.share - row.low) ** 2
            above += (row.high - row.share) ** 2
    # The program's own clock has its part of them.
    interrupts = 0.0 if claim.cpu is None else _interrupting(explained, claim.cpu)
    return share + interrupts, share + interrupts - below**0.5, share + interrupts + above**0.5


def _interrupting(explained: Explained, functions: tuple[str, ...]) -> float:
    """Share of wall time of interrupts for others on top of these."""
    stacks = [stack for stack in explained.stacks if stack.name == "interrupts-for-others"]
    whole = sum(stack.share for stack in stacks)
    on_top = 0.0
    for stack in stacks:
        frames = set(stack.frames)
        if frames & set(functions) or (_OWN in functions and not frames & set(_KERNEL)):
            on_top += stack.share
    return explained.share("interrupts-for-others") * on_top / whole if whole > 0 else 0.0


def compared(
    explained: Explained, name: str, level: int, said: Said
) -> list[tuple[Claim, float, tuple[float, float, float]]]:
    """Each claim with its truth and what the ledger says, as shares of wall time."""
    return [
        (claim, claim.truth(said) / explained.wall_s, found(explained, claim, said))
        for claim in CLAIMS[name]
        if level in claim.levels
    ]


def bounded(explained: Explained, said: Said) -> bool:
    """Where user code cannot be looked into: whether the allocator's part lies within what is said of it."""
    rows = {row.name: row for row in explained.categories}
    if "user-cpu" not in rows:
        return True
    truth = float(said["parts"]["allocate"]["cpu"]) / explained.wall_s
    (within,) = (within for within in rows["user-cpu"].within if within.name == "allocator")
    return within.low <= truth <= within.high + rows["page-faults"].high


def _printed(name: str, level: int, runs: Sequence[tuple[Explained, Said]]) -> bool:
    """A line a claim; whether all hold."""
    holds = True
    # A program that is too dear to record is seen no better than at level 3.
    seen = max(level, *(explained.level for explained, _ in runs))
    claims = [compared(explained, name, seen, said) for explained, said in runs]
    queue = statistics.median(100 * explained.share("run-queue-wait") for explained, _ in runs)
    closes = all(abs(explained.closure.sum - 1) <= _CLOSED for explained, _ in runs)
    if name == "list" and not all(bounded(*run) for run in runs):
        sys.stderr.write(f"| {name} | {level} | the allocator lies outside of its bounds | | | | | | !\n")
        holds = False
    for lines in zip(*claims, strict=True):
        claim = lines[0][0]
        # Waiting threads overlap: of so much time a thread's part is compared.
        scale = 4 if claim.rows[0].startswith("threads") else 1
        truths = [100 * line[1] / scale for line in lines]
        shares = [100 * line[2][0] / scale for line in lines]
        within = sum(low <= truth <= high for _, truth, (_, low, high) in lines)
        known = any(low < high for _, _, (_, low, high) in lines)
        points = [share - truth for share, truth in zip(shares, truths, strict=True)]
        middle = statistics.median(points)
        good = abs(middle) <= _ALLOWED[level] and closes
        holds &= good
        sys.stderr.write(
            f"| {name} | {level} | {claim.what} | {statistics.median(truths):.1f} |"
            f" {statistics.median(shares):.1f} | {middle:+.1f} ({min(points):+.1f} to {max(points):+.1f})"
            f" | {f'{within} of {len(lines)}' if known else '-'} | {queue:.1f} |{'' if good else ' !'}\n"
        )
    return holds


def main() -> int:
    """Compiles the programs, runs each at each level."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--level", default="1,2,3")
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--file-mb", type=int, default=400)
    parser.add_argument("--text-mb", type=int, default=100)
    parser.add_argument("--dir", default=None)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="latlab-truth-", dir=asked.dir) as folder,
        server() as port,
    ):
        directory = Path(folder)
        file, text = written(directory, asked.file_mb, asked.text_mb)
        programs = built(directory, file, text, port)
        absent = [name for name in CLAIMS if name not in programs]
        if absent:
            sys.stderr.write(f"not compared, as no compiler is here: {', '.join(absent)}\n")
        # What the programs print is their truth; what they inherit is this.
        os.dup2(os.open(directory / "said", os.O_RDWR | os.O_CREAT), 1)
        sys.stderr.write(
            "| program | level | what | truth | ledger | points | in the interval | run queue |\n"
        )
        sys.stderr.write("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
        holds = True
        for name in asked.only.split(";") if asked.only else programs:
            for level in (int(word) for word in asked.level.split(",")):
                runs = []
                for _ in range(asked.times):
                    os.ftruncate(1, 0)
                    os.lseek(1, 0, os.SEEK_SET)
                    if name.endswith(("words", "simple", "optimised")):
                        evict(text)
                    explained, _ = explain(programs[name], level=level, runs=1)
                    runs.append((explained, json.loads((directory / "said").read_bytes())))
                holds &= _printed(name, level, runs)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
