"""Programs predicted for another machine, and what they took there: settings of this one stand for it.

    python benches/predict_programs.py --dir DIR [--setting one --setting slow-disk ...] [--times 3] [--save]

A setting is a quick run under it, and programs under it: `one-cpu` (one of the CPUs), `slow-disk` (a cgroup
that reads at most 150 MiB and 1,500 times a second), `little-memory` (a cgroup of 256 MiB). Each program runs
`--times` under explain without the setting, then as often under it; of both the fastest counts, as other
programs may run. Files that a program reads are out of the page cache, or read once before, under the
setting; `DIR` is on the disk. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - as above

from latlab.elsewhere.program import Elsewhere, elsewhere  # noqa: E402 - as above
from latlab.elsewhere.ratios import COMPUTING  # noqa: E402 - as above
from latlab.explain.model import Explained  # noqa: E402 - after the path
from latlab.explain.run import explain  # noqa: E402 - after the path
from latlab.predict.answer import span  # noqa: E402 - as above
from latlab.run.run import Run, load  # noqa: E402 - as above
from latlab.run.store import Store  # noqa: E402 - as above

_CGROUPS = Path("/sys/fs/cgroup")
_LITTLE_COMPUTING = 30
_STREAM, _LINES, _FILES = 400 << 20, 80 << 20, 4000
_RANDOM = """import os, random
random.seed(1); f = os.open({big!r}, os.O_RDONLY)
for _ in range(4000): os.pread(f, 4096, random.randrange({pages}) * 4096)"""
_READ_TREE = """import pathlib
print(sum(len(p.read_bytes()) for p in pathlib.Path({tree!r}).rglob('*') if p.is_file()))"""
_COMMITS = "DROP TABLE IF EXISTS t; CREATE TABLE t(a); " + "INSERT INTO t VALUES (1); " * 500


@dataclasses.dataclass(frozen=True)
class Program:
    """A command, and whether what it reads is cached."""

    name: str
    words: list[str]
    reads: list[Path]
    cached: bool = False


def programs(folder: Path) -> list[Program]:
    """They are listed before any is run."""
    big, text, tree = folder / "big", folder / "lines", folder / "tree"
    every = sorted(path for path in tree.rglob("*") if path.is_file())

    def shell(line: str) -> list[str]:
        return ["sh", "-c", f"exec {line}"]

    def ten(line: str) -> list[str]:
        return ["sh", "-c", f"for time in 0 1 2 3 4 5 6 7 8 9; do {line}; done"]

    def python(line: str) -> list[str]:
        program = line.format(big=str(big), tree=str(tree), pages=_STREAM >> 12)
        return [sys.executable, "-I", "-c", program]

    return [
        Program("cat, cold", shell(f"cat {big} >/dev/null"), [big]),
        Program("wc -l, cold", ["wc", "-l", str(big)], [big]),
        Program("dd bs=1M, cold", ["dd", f"if={big}", "of=/dev/null", "bs=1M"], [big]),
        Program("grep -c, cold", ["grep", "-c", "-a", "97", str(text)], [text]),
        Program("cp, cold", ["cp", str(big), str(folder / "copy")], [big]),
        Program("md5sum, cold", ["md5sum", str(big)], [big]),
        Program("tar of 4,000 files, cold", ["tar", "cf", str(folder / "out.tar"), str(tree)], every),
        Program("python, 4,000 files, cold", python(_READ_TREE), every),
        Program("python, 4,000 random reads, cold", python(_RANDOM), [big]),
        Program("sqlite3, 500 commits", ["sqlite3", str(folder / "db"), _COMMITS], []),
        Program("cat 10 times, cached", ten(f"cat {big} >/dev/null"), [big], cached=True),
        Program("python, 4,000 files, cached", python(_READ_TREE), every, cached=True),
        Program("find 10 times, cached", ten(f"find {tree} -size +5k"), every, cached=True),
        Program(
            "tar | gzip, cached", ["sh", "-c", f"tar cf - {tree} | gzip -1 >/dev/null"], every, cached=True
        ),
        Program("sort, cached", shell(f"sort {text} >/dev/null"), [text], cached=True),
        Program("gzip -1, cached", shell(f"gzip -1 -c {text} >/dev/null"), [text], cached=True),
    ]


def lay_out(folder: Path) -> None:
    """Files of random bytes, of lines, and a tree of small ones."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), (folder / "big").open("xb") as file:
        for _ in range(_STREAM >> 20):
            file.write(os.urandom(1 << 20))
    with contextlib.suppress(FileExistsError), (folder / "lines").open("x") as file:
        size = 0
        while size < _LINES:
            size += file.write(f"{os.urandom(24).hex()} {size} {size % 977}\n")
    for number in range(_FILES):
        path = folder / "tree" / f"{number % 40}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(os.urandom(10_000))
    os.sync()


def evict(paths: Sequence[Path]) -> None:
    """Their pages leave the page cache."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


@contextlib.contextmanager
def _group(controller: str, limits: dict[str, str]) -> Iterator[Callable[[], None]]:
    """A cgroup with these limits; what it yields moves the calling process into it."""
    own = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    below = next(line.split(":", 2)[2] for line in own if controller in line.split(":")[1].split(","))
    group = _CGROUPS / controller / below.strip("/") / f"latlab-predict-{os.getpid()}"
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(value, encoding="ascii")

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        yield enter
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def _slow_disk(folder: Path) -> contextlib.AbstractContextManager[Callable[[], None]]:
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    limits = {"read_bps_device": f"{number} {150 << 20}", "read_iops_device": f"{number} 1500"}
    return _group("blkio", {f"blkio.throttle.{name}": value for name, value in limits.items()})


def _one_cpu(_folder: Path) -> contextlib.AbstractContextManager[Callable[[], None]]:
    last = max(os.sched_getaffinity(0))
    return contextlib.nullcontext(lambda: os.sched_setaffinity(0, {last}))


SETTINGS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Callable[[], None]]]] = {
    "one-cpu": _one_cpu,
    "slow-disk": _slow_disk,
    "little-memory": lambda _: _group("memory", {"memory.limit_in_bytes": str(256 << 20)}),
}


def measured(folder: Path, enter: Callable[[], None] | None) -> Run:
    """A quick run, under a setting."""
    words = [
        sys.executable,
        "-m",
        "latlab",
        "measure",
        "--profile",
        "quick",
        "--no-report",
        "--dir",
        str(folder),
    ]
    subprocess.run(words, check=True, capture_output=True, preexec_fn=enter)
    return load(Store().entries()[-1].path)


def took(program: Program, times: int, enter: Callable[[], None]) -> list[float]:
    """Seconds of each time under the setting."""
    seconds = []
    for _ in range(times):
        if program.cached:
            evict(program.reads)
            _run(program.words, enter)
        else:
            evict(program.reads)
        seconds.append(_run(program.words, enter))
    return seconds


def _run(words: list[str], enter: Callable[[], None]) -> float:
    begin = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, preexec_fn=enter)
    return time.perf_counter() - begin


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """What a program writes goes to a file that is removed: for /dev/null `grep` stops at the first match."""
    sys.stdout.flush()
    own = os.dup(1)
    with tempfile.TemporaryFile() as file:
        try:
            os.dup2(file.fileno(), 1)
            yield
        finally:
            os.dup2(own, 1)
            os.close(own)


def here(program: Program, times: int) -> Explained:
    """Its ledger without the setting: that of the fastest run."""
    found = []
    for _ in range(times):
        evict(program.reads)
        if program.cached:
            _run(program.words, lambda: None)
        with _silenced():
            found.append(explain(program.words)[0])
    return min(found, key=lambda each: each.wall_s)


def row(
    setting: str, program: Program, explained: Explained, found: Elsewhere, seconds: Sequence[float]
) -> dict[str, object]:
    """A line of the table."""
    actual = min(seconds)
    own = found.answer
    computing = explained.share(*COMPUTING)
    middle = None if own is None else own.seconds or math.sqrt(own.low * own.high)
    factor = "" if middle is None else f"{max(middle / actual, actual / middle):.2f}"
    return {
        "setting": setting,
        "program": program.name,
        "here": f"{found.wall_s:.3f}",
        "computing": f"{100 * computing:.0f} %",
        "predicted": span(own.low, own.high)
        if own
        else f"refused: {found.refused.why if found.refused else ''}",
        "most_likely": f"{middle:.3f}" if middle is not None else "",
        "actual": f"{actual:.3f}",
        "from_to": span(min(seconds), max(seconds)),
        "factor": factor,
        "within": "" if own is None else "yes" if own.low <= actual <= own.high else "no",
    }


def summary(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """Of all programs, and of those that compute little."""
    for name, own in (
        ("all", list(rows)),
        (
            "computing below 30 %",
            [each for each in rows if float(str(each["computing"]).split()[0]) < _LITTLE_COMPUTING],
        ),
    ):
        factors = [float(str(each["factor"])) for each in own if each["factor"]]
        if factors:
            mean = math.exp(statistics.fmean(map(math.log, factors)))
            held = sum(each["within"] == "yes" for each in own)
            yield f"{name}: {mean:.2f}x (geometric mean of {len(factors)}), {held} within the range"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--setting", action="append", choices=list(SETTINGS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    folder = asked.dir.resolve()
    lay_out(folder)
    every = programs(folder)
    base = measured(folder, None)
    rows = []
    for setting in asked.setting or SETTINGS:
        with SETTINGS[setting](folder) as enter:
            there = measured(folder, enter)
            for program in every:
                explained = here(program, asked.times)
                found = elsewhere(explained, base, there)
                rows.append(row(setting, program, explained, found, took(program, asked.times, enter)))
                print("; ".join(str(value) for value in rows[-1].values()), flush=True)
    print("\n".join(summary(rows)))
    if asked.save:
        command = "benches/predict_programs.py --dir DIR --save"
        evidence.write("predict_programs.csv", [each | evidence.origin(command) for each in rows])


if __name__ == "__main__":
    main()
