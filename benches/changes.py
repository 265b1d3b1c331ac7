"""Whether `latlab compare` finds changes that were really made to this machine, and names nothing else.

    sudo .venv/bin/python benches/changes.py [--runs 5] [--only WORD] [--save WORDS]

Runs alternate, A B A B. What is changed for B:

* nothing;
* the delay of the path to the server, by 10 and by 30 % (the delay line of `--delay`; the run file is made to
  say the delay of A, as of a path that became slower);
* the rate of a disk, by 10 and by 30 % (ext4 on a loop device, which a cgroup limits so far that each block
  of 4 KiB waits longer than the limit's slice of 0.1 s: shorter waits come in bursts);
* a neighbour, who keeps all CPUs and the memory busy during one run of B.

Prints a row for each: how many figures were compared, which of them the change concerns, how many of those
would have shown it (`smallest_visible` is at most the change), were found, and what else was called changed.
Needs root, for the loop device and the cgroup; both are gone afterwards, also when it is interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from latlab.compare import Comparison, Figure, compare
from latlab.compare.sides import Side
from latlab.run.run import Run, load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence

_DELAY_MS: Final = 10.0
# A change of 10 % is to be seen: half of it does not matter.
_SAME: Final = 0.05
_RATE: Final = 24 * 2**10
_DISK: Final = 3 * 2**30
_TABLE: Final = "compare-changes.csv"
_BUSY: Final = "x = bytearray(1 << 26)\nwhile True: x[:] = x[::-1]"


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is made for the runs of B.

    Attributes:
        name: What is changed.
        factor: How many times as long what it concerns takes.
        probes: What is measured.
        concerns: What is in the names of points whose figures it changes by that factor; none: no figure.
    """

    name: str
    factor: float
    probes: str
    concerns: tuple[str, ...] = ()


_PATH: Final = ("tcp, emulated", "tls, emulated")
_READS: Final = ("block 4 KiB, depth",)


class Disk:
    """A file system on a loop device, and a cgroup that limits its rate."""

    def __init__(self, folder: Path) -> None:
        """Makes the file, its file system and the cgroup.

        Raises:
            subprocess.CalledProcessError: One of the tools is missing, or this is not root.
        """
        self.file, self.mount = folder / "disk", folder / "mount"
        self.mount.mkdir()
        with self.file.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _DISK)
        self.loop = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", self.file],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        subprocess.run(["mkfs.ext4", "-q", self.loop], check=True)
        subprocess.run(["mount", self.loop, self.mount], check=True)
        old = Path("/sys/fs/cgroup/blkio")
        self.group = (old if old.exists() else Path("/sys/fs/cgroup")) / f"latlab-changes-{os.getpid()}"
        self.group.mkdir()
        self.old = old.exists()

    def limit(self, rate: float) -> None:
        """Lets what is in the cgroup read this many bytes a second."""
        number = (Path("/sys/class/block") / Path(self.loop).name / "dev").read_text().strip()
        if self.old:
            (self.group / "blkio.throttle.read_bps_device").write_text(f"{number} {rate:.0f}\n")
        else:
            (self.group / "io.max").write_text(f"{number} rbps={rate:.0f}\n")

    def enter(self) -> None:
        """Puts the process that calls it into the cgroup."""
        (self.group / "cgroup.procs").write_text("0\n")

    def close(self) -> None:
        """Takes everything away, also while a measurement that was ended still goes."""
        subprocess.run(["umount", "--lazy", self.mount], check=True)
        subprocess.run(["losetup", "--detach", self.loop], check=True)
        deadline = time.monotonic() + 30
        while (self.group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.group.rmdir()


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Keeps every CPU busy with memory until it is left."""
    own = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in own:
            process.kill()
            process.wait()


def measure(file: Path, change: Change, changed: bool, disk: Disk | None, seed: int) -> Run:
    """One run, with the change or without."""
    factor = change.factor if changed else 1.0
    command = [sys.executable, "-m", "latlab", "measure", "--profile", "quick", "--only", change.probes]
    command += ["--no-report", "--quiet", "--beside", "--seed", str(seed), "--out", str(file)]
    if change.concerns is _PATH:
        command += ["--delay", str(_DELAY_MS * factor)]
    if disk is not None:
        disk.limit(_RATE / factor)
        command += ["--dir", str(disk.mount)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=disk.enter if disk else None)
    lines = file.read_text(encoding="utf-8").splitlines()
    header = json.loads(lines[0])
    if header["settings"]["delay_ms"] is not None:
        header["settings"]["delay_ms"] = _DELAY_MS
        file.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n", encoding="utf-8")
    return load(file)


def is_of(figure: Figure, words: tuple[str, ...]) -> bool:
    """Whether the name of a figure's point has one of these in it."""
    return any(each in figure.point for each in words)


def row(change: Change, found: Comparison) -> dict[str, object]:
    """What was found, in one row."""
    own = [each for each in found.figures if is_of(each, change.concerns)]
    visible = [
        each
        for each in own
        if each.verdict is not None and each.verdict.smallest_visible <= change.factor - 1 + 1e-9
    ]
    others = [each for each in found.figures if each.kind == "changed" and not is_of(each, change.concerns)]
    return {
        "change": change.name,
        "runs": f"{len(found.a.runs)} and {len(found.b.runs)}",
        "figures": sum(each.kind != "not-comparable" for each in found.figures),
        "concerned": len(own),
        "would_show": len(visible),
        "found": sum(each.kind == "changed" for each in visible),
        "others_called_changed": "; ".join(f"{each.probe} {each.point}" for each in others) or "none",
    }


def changes() -> list[Change]:
    """All of them."""
    path, disk_probe = "network.connect,network.http", "storage.read.random"
    memory = "memory.load.dependent,memory.bandwidth,kernel.syscall"
    found = [Change("nothing", 1.0, memory)]
    for more in (10, 30):
        factor = 1 + more / 100
        found.append(Change(f"delay of the path +{more} %", factor, path, _PATH))
        found.append(Change(f"time of the disk +{more} %", factor, disk_probe, _READS))
    return [*found, Change("a neighbour in one run", 1.0, memory)]


def results(
    wanted: Sequence[Change], folder: Path, count: int
) -> Iterator[tuple[dict[str, object], Comparison]]:
    """A row for each change, and what it is of."""
    for number, change in enumerate(wanted):
        with contextlib.ExitStack() as after:
            disk = None
            if change.concerns is _READS:
                own = Path(after.enter_context(tempfile.TemporaryDirectory(dir=folder)))
                disk = Disk(own)
                after.callback(disk.close)
            sides: tuple[list[Run], list[Run]] = ([], [])
            for turn in range(count):
                for side in (0, 1):
                    file = folder / f"{number}-{'ab'[side]}{turn}.latlab.jsonl"
                    busy = "neighbour" in change.name and (side, turn) == (1, 0)
                    with neighbour() if busy else contextlib.nullcontext():
                        sides[side].append(measure(file, change, bool(side), disk, turn))
            for most in sorted({1, count}):
                found = compare(
                    Side("A", tuple(sides[0][:most])), Side("B", tuple(sides[1][:most])), same=_SAME
                )
                yield row(change, found), found


def main() -> None:
    """Makes the changes, prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="runs of each side")
    parser.add_argument("--only", metavar="WORD", default="", help="changes with this word in their name")
    parser.add_argument("--save", metavar="WORDS", help="what the machine was like: 'under changing load'")
    asked = parser.parse_args()
    # What was made is taken away, also when somebody ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wanted = [each for each in changes() if asked.only in each.name]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="latlab-changes-") as folder:
        for found, comparison in results(wanted, Path(folder), asked.runs):
            print("  ".join(f"{key}: {value}" for key, value in found.items()), flush=True)
            for each in comparison.figures:
                print(
                    f"    {each.kind:15} {each.probe} {each.point} {each.quantile} {each.ratio}", flush=True
                )
            rows.append(found)
    if asked.save:
        made = evidence.origin(f"benches/changes.py --runs {asked.runs}")
        made["machine"] += f", {asked.save}"
        others = [row for row in evidence.read(_TABLE) if asked.only not in row["change"]]
        evidence.write(_TABLE, [*others, *({**found, **made} for found in rows)])


if __name__ == "__main__":
    main()
