"""Jobs of everyday tools, predicted before they run: how far off answers are, and how often ranges hold.

    latlab --profile standard; latlab predict --calibrate
    python benches/predict_jobs.py --dir DIR [--run RUN] [--times 3] [--only WORD] [--list] [--save]

Each job is a command of a tool that others made, and what is asked of `latlab predict` for it. First all are
listed with their answers; then each is run `--times` times, in rounds of all of them, so that no job has a
minute of its own. Files are put out of the page cache, or read once, before each; what was written before is
on the disk, and the memory that a job takes was in use just before: no host has to find it. None of them is
a job of `latlab predict --calibrate`, whose jobs are loops of its own. Beside the answers stand those of the
best bandwidth of the same run, and of the table of sirupsen/napkin-math (at 02ac5c9). A kind of job is one
row: its time is the median of its repeats.

Of a job whose programs compute for more than 30 % of its time (user CPU time), input and output are not most:
the sums are of all jobs, and of all others.

DIR is on the disk that the run measured. Downloads need namespaces (root). Compute-bound tools, as gzip and
sort, are no such jobs: `latlab predict -- COMMAND` is for those.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - after the path

from latlab.lessons.distance import path  # noqa: E402 - as above
from latlab.predict import figures, newest  # noqa: E402 - as above
from latlab.predict.calibrate import in_use  # noqa: E402 - as above
from latlab.predict.figures import READ, WRITE  # noqa: E402 - as above

MIB, MB = 1 << 20, 10**6
_BIG, _ONE, _PART = 2000 * MB, 1000 * MB, 150 * MB
_FILES, _FILE = 4000, 12_000
_TREE = _FILES * _FILE
_RTT_S, _MBIT = 0.02, 200
_ROWS = 300_000
_COMPUTING, _LARGE = 0.3, 10.0

#: What the table says: bytes a second, and seconds of one.
_NAPKIN = {
    "memory": 10 << 30,
    "read": 4 << 30,
    "write": 1 << 30,
    "seek": 100e-6,
    "flush": 5e-3,
    "call": 500e-9,
}


@dataclass(frozen=True)
class Job:
    """One row.

    Attributes:
        name: What it is.
        command: As a shell takes it, in the folder.
        asked: The words of `latlab predict`; several lines are a plan.
        cold: What is put out of the page cache before.
        warm: What is read once before.
        made: What it makes; of an earlier time it is put aside before.
        read: Bytes from the disk.
        write: Bytes to the disk, or into the page cache.
        napkin: Seconds by the table.
        at_once: The lines of the plan run at once.
        far: It runs at the client's end of the emulated path.
        holds: Bytes of memory that its programs take.
    """

    name: str
    command: str
    asked: tuple[str, ...]
    cold: tuple[str, ...] = ()
    warm: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    read: float = 0.0
    write: float = 0.0
    napkin: float = 0.0
    at_once: bool = False
    far: bool = False
    holds: float = 0.0
    took: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)
    off: dict[str, float | None] = field(default_factory=dict)
    held: list[bool] = field(default_factory=list)
    half: list[float] = field(default_factory=list)

    @property
    def computing(self) -> float:
        """Share of its time that its programs computed."""
        return sum(self.computed) / sum(self.took)


def jobs(python: str, url: str) -> Iterator[Job]:
    """All rows."""
    seq, out = _NAPKIN["read"], _NAPKIN["write"]
    memory, seek, flush = _NAPKIN["memory"], _NAPKIN["seek"], _NAPKIN["flush"]

    def reading(name: str, command: str, asked: str, size: float, file: str = "big") -> Job:
        return Job(name, command, (asked,), cold=(file,), read=size, napkin=size / seq)

    yield reading("cat, cold", "cat big > /dev/null", "read 2GB --cold", _BIG)
    yield Job(
        "cat, cached", "cat one > /dev/null", ("read 1GB --cached",), warm=("one",), napkin=_ONE / memory
    )
    yield reading(
        "dd, 4 MiB, cold",
        "dd if=big of=/dev/null bs=4M count=300",
        "read 1200MiB --cold --block 4MiB",
        1200 * MIB,
    )
    yield reading(
        "dd, 1 MiB, direct",
        "dd if=big of=/dev/null bs=1M count=1000 iflag=direct",
        "read 1000MiB --direct --block 1MiB",
        1000 * MIB,
    )
    yield reading(
        "dd, 64 KiB, direct",
        "dd if=big of=/dev/null bs=64K count=8000 iflag=direct",
        "read 500MiB --direct --block 64KiB",
        500 * MIB,
    )
    yield reading(
        "dd, 4 KiB, direct",
        "dd if=big of=/dev/null bs=4K count=20480 iflag=direct",
        "read 80MiB --direct --block 4KiB",
        80 * MIB,
    )
    yield Job(
        "dd, 1 MiB, to a new file",
        "dd if=one of=out bs=1M count=700",
        ("copy 700MiB --cached",),
        warm=("one",),
        made=("out",),
        write=700 * MIB,
        napkin=700 * MIB / out,
    )
    yield Job(
        "dd, flushed at the end",
        "dd if=one of=out bs=1M count=700 conv=fsync",
        ("copy 700MiB --cached --fsync end",),
        warm=("one",),
        made=("out",),
        write=700 * MIB,
        napkin=700 * MIB / out,
    )
    yield Job(
        "dd, 256 KiB, direct, written",
        "dd if=one of=out bs=256K count=2000 oflag=direct",
        ("write 500MiB --direct --block 256KiB",),
        warm=("one",),
        made=("out",),
        write=500 * MIB,
        napkin=500 * MIB / out,
    )
    yield Job(
        "dd, 16 KiB, each durable",
        "dd if=one of=out bs=16K count=1500 oflag=dsync",
        (f"write {1500 * 16384} --block 16KiB --fsync each",),
        warm=("one",),
        made=("out",),
        write=1500 * 16384,
        napkin=1500 * flush,
    )
    yield Job(
        "cp, cold",
        "cp one out",
        ("copy 1GB --cold",),
        cold=("one",),
        made=("out",),
        read=_ONE,
        write=_ONE,
        napkin=_ONE / seq + _ONE / out,
    )
    yield Job(
        "cp -r, small files, cached",
        "cp -r tree out",
        ("copy tree --cached",),
        warm=("tree",),
        made=("out",),
        write=_TREE,
        napkin=_TREE / memory + _TREE / out,
    )
    yield Job(
        "find and cat, small files, cold",
        "find tree -type f -exec cat {} + > /dev/null",
        ("read tree --cold",),
        cold=("tree",),
        read=_TREE,
        napkin=_FILES * seek,
    )
    yield Job(
        "grep -r, small files, cold",
        "grep -rFc no-such-word tree > /dev/null || true",
        ("read tree --cold",),
        cold=("tree",),
        read=_TREE,
        napkin=_FILES * seek,
    )
    yield Job(
        "tar, small files, cold",
        "tar cf out tree",
        ("read tree --cold", f"write {_TREE}"),
        cold=("tree",),
        made=("out",),
        read=_TREE,
        write=_TREE,
        napkin=_FILES * seek + _TREE / out,
    )
    yield Job(
        "tar, unpacked",
        "mkdir out && tar xf tree.tar -C out",
        (f"read {_TREE} --cached", f"files {_FILES} {_FILE}"),
        warm=("tree.tar",),
        made=("out",),
        write=_TREE,
        napkin=_TREE / out,
    )
    yield Job(
        "git clone, from the disk",
        "git clone -q --no-hardlinks repo out",
        ("copy repo/.git --cached", "read repo/.git --cached", f"files {_FILES} {_FILE}"),
        warm=("repo",),
        made=("out",),
        write=2 * _TREE,
        napkin=2 * _TREE / memory + 2 * _TREE / out,
    )
    yield Job(
        "sqlite3, 1,500 commits, write-ahead log",
        "sqlite3 out < wal.sql > /dev/null",
        (f"write {1500 * 4096} --block 4KiB --fsync each",),
        made=("out", "out-wal", "out-shm"),
        write=1500 * 4096,
        napkin=1500 * flush,
    )
    yield Job(
        "sqlite3, 300 commits, rollback journal",
        "sqlite3 out < journal.sql > /dev/null",
        ("files 300 4KiB --fsync each", f"write {600 * 4096} --block 4KiB --fsync each"),
        made=("out", "out-journal"),
        write=900 * 4096,
        napkin=900 * flush,
    )
    yield Job(
        "a log, each line flushed",
        f"{python} append.py out",
        ("write 300000 --block 200 --fsync each",),
        made=("out",),
        write=300_000,
        napkin=1500 * flush,
    )
    yield Job(
        "sqlite3, 3,000 rows looked up, cold",
        "sqlite3 rows < rows.sql > /dev/null",
        ("random 3000 4KiB --read --cold",),
        cold=("rows",),
        read=3000 * 4096,
        napkin=3000 * seek,
    )
    yield Job(
        "pyarrow, a Parquet scan, cold",
        f"{python} scan.py",
        ("read 600MB --cold",),
        cold=("table.parquet",),
        read=600 * MB,
        napkin=600 * MB / seq,
        holds=1500 * MB,
    )
    yield Job(
        "cmp, two files, cold",
        "cmp one two",
        ("read 2GB --cold",),
        cold=("one", "two"),
        read=2 * _ONE,
        napkin=2 * _ONE / seq,
    )
    yield Job(
        "split, cold",
        "mkdir out && split -b 100MB one out/",
        ("copy 1GB --cold",),
        cold=("one",),
        made=("out",),
        read=_ONE,
        write=_ONE,
        napkin=_ONE / seq + _ONE / out,
    )
    yield Job(
        "zip, stored, small files, cached",
        "zip -q -0 -r out.zip tree",
        ("read tree --cached", f"write {_TREE}"),
        warm=("tree",),
        made=("out.zip",),
        write=_TREE,
        napkin=_TREE / memory + _TREE / out,
    )
    yield Job(
        "eight cats at once, cold",
        "ls parts/* | xargs -P 8 -n 1 cat > /dev/null",
        ("read 150MB --cold",) * 8,
        cold=("parts",),
        read=8 * _PART,
        napkin=8 * _PART / seq,
        at_once=True,
    )
    trip, rate = _RTT_S, _MBIT * 1e6 / 8
    near = f"--rtt {trip * 1e3:g}ms --rate {_MBIT}"
    yield Job(
        "curl, 40 files, one connection",
        f"curl -sf -o /dev/null '{url}/bytes/1000000?[1-40]'",
        (f"transfers 40 1MB {near} --connections kept",),
        napkin=40 * (trip + MB / rate),
        read=40 * MB,
        far=True,
    )
    yield Job(
        "curl, 60 files, six at once",
        f"curl -sf --http1.1 --parallel --parallel-max 6 -o /dev/null '{url}/bytes/200000?[1-60]'",
        (f"transfers 60 200KB {near} --at-once 6 --connections kept",),
        napkin=max(10 * trip, 60 * 200_000 / rate),
        read=60 * 200_000,
        far=True,
    )
    yield Job(
        "urllib, 100 requests, each a connection",
        f"{python} fetch.py {url}/bytes/1",
        (f"requests 100 --rtt {trip * 1e3:g}ms --connections new",),
        napkin=100 * trip,
        read=100,
        far=True,
    )


# -------------------------------------------------------------------------------------------- what they need

_APPEND = """import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for n in range(1500):
    os.write(f, (b"%06d " % n).ljust(199, b"x") + b"\\n")
    os.fsync(f)
"""
_SCAN = """import pyarrow.parquet as p
print(p.read_table("table.parquet", memory_map=False).num_rows)
"""
_FETCH = """import sys, urllib.request
for n in range(100):
    with urllib.request.urlopen(sys.argv[1]) as r:
        r.read()
"""
_TABLE = """import numpy, pyarrow as a, pyarrow.parquet as p
g = numpy.random.default_rng(1)
t = a.table({str(n): g.random(7_500_000) for n in range(10)})
p.write_table(t, "table.parquet", compression="none", use_dictionary=False)
"""


def lay_out(folder: Path, python: str) -> None:
    """The files of all jobs: bytes that cannot be compressed, flushed."""
    for name, size in (("big", _BIG), ("one", _ONE)):
        _fill(folder / name, size)
    shutil.copyfile(folder / "one", folder / "two")
    (folder / "parts").mkdir()
    for number in range(8):
        _fill(folder / "parts" / str(number), _PART)
    for number in range(_FILES):
        inner = folder / "tree" / f"{number % 40}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{number}.bin").write_bytes(os.urandom(_FILE))
    for name, text in (("append.py", _APPEND), ("scan.py", _SCAN), ("fetch.py", _FETCH)):
        (folder / name).write_text(text)
    insert = "INSERT INTO t VALUES (hex(randomblob(50)));\n"
    table = "CREATE TABLE t(a);\n"
    (folder / "wal.sql").write_text(
        f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {table}" + 1500 * insert
    )
    (folder / "journal.sql").write_text(f"PRAGMA synchronous=FULL; {table}" + 300 * insert)
    with contextlib.closing(sqlite3.connect(folder / "rows")) as base:
        base.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a BLOB)")
        base.executemany("INSERT INTO t(a) VALUES (?)", ((os.urandom(1000),) for _ in range(_ROWS)))
        base.commit()
    step = 7919
    (folder / "rows.sql").write_text(
        "".join(
            f"SELECT length(a) FROM t WHERE id={1 + n * step % _ROWS};\n"  # noqa: S608 - numbers of our own
            for n in range(3000)
        )
    )
    for command in (
        "tar cf tree.tar tree",
        "git init -q repo && cp -r tree repo && cd repo && git add -A"
        " && git -c user.name=a -c user.email=a@b commit -qm a",
        f"{python} -c {shlex.quote(_TABLE)}",
    ):
        subprocess.run(command, shell=True, cwd=folder, check=True)  # noqa: S602 - our own words
    os.sync()


def _fill(file: Path, size: int) -> None:
    with file.open("wb") as opened:
        for start in range(0, size, 16 * MIB):
            opened.write(os.urandom(min(16 * MIB, size - start)))


def _all(path: Path) -> Iterator[Path]:
    yield from (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)


def prepare(job: Job, folder: Path) -> None:
    """Files as the job wants to find them.

    What an earlier time made goes aside: where many files were just removed, ext4 is slow at making others.
    """
    for name in job.made:
        if (folder / name).exists():
            (folder / name).rename(tempfile.mktemp(prefix="made-", dir=folder))  # noqa: S306 - our own folder
    os.sync()
    for name in job.cold:
        for file in _all(folder / name):
            opened = os.open(file, os.O_RDONLY)
            os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(opened)
    for name in job.warm:
        for file in _all(folder / name):
            with file.open("rb", buffering=0) as opened_:
                while opened_.read(MIB):
                    pass
    if "--direct" not in job.asked[0]:
        in_use(int(job.read + job.write + job.holds))


# ----------------------------------------------------------------------------------------------- the answers


def answer(job: Job, folder: Path, run: str | None) -> dict[str, Any]:
    """What `latlab predict` says, as a user would ask it."""
    words = ["--json", "--dir", str(folder), *(["--run", run] if run else [])]
    if len(job.asked) == 1:
        asked = shlex.split(job.asked[0])
    else:
        plan = folder / "plan.toml"
        plan.write_text(f"[[step]]\nat_once = {str(job.at_once).lower()}\njobs = {json.dumps(job.asked)}\n")
        asked = ["--plan", str(plan)]
    done = subprocess.run(
        [sys.executable, "-m", "latlab", "predict", *asked, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 3}:
        raise SystemExit(f"{job.name}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_once(job: Job, folder: Path, end: Mapping[str, int | None] | None) -> float:
    """Seconds of the command."""
    prepare(job, folder)
    command = ["sh", "-ec", job.command]
    if job.far and end is not None:
        kinds = [("user", "--user"), ("network", "--net")]
        names = [
            f"{flag}=/proc/{end['process']}/fd/{end[kind]}" for kind, flag in kinds if end[kind] is not None
        ]
        command = ["nsenter", "--preserve-credentials", *names, *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.perf_counter() - begun
    job.computed.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    job.took.append(took)
    return took


def factor(predicted: float, took: float) -> float:
    """How many times too long or too short."""
    return math.exp(abs(math.log(predicted / took)))


def _times(error: float | None) -> str:
    return "–" if error is None else f"{error:.2f}×" if error < _LARGE else f"{error:.0f}×"


def summary(name: str, what: str, own: Sequence[Job]) -> dict[str, object]:
    """One way of predicting, over some kinds."""
    errors = sorted(error for job in own if (error := job.off.get(name)) is not None)
    ours, every = name == "latlab predict", [held for job in own for held in job.held[1:]]
    answered = [job for job in own if job.held]
    return {
        "jobs": what,
        "predicted by": name,
        "kinds": len(errors),
        "geometric mean": _times(math.exp(statistics.fmean(map(math.log, errors)))),
        "9 of 10 below": _times(errors[min(math.ceil(0.9 * len(errors)), len(errors)) - 1]),
        "worst": _times(errors[-1]),
        "kinds within": f"{sum(job.held[0] for job in answered)} of {len(answered)}" if ours else "–",
        "runs within": f"{sum(every)} of {len(every)}" if ours else "–",
        "median half range": f"{statistics.median(job.half[0] for job in answered):.0%}" if ours else "–",
    }


def main() -> None:
    """Predicts, runs, compares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dir", required=True)
    parser.add_argument("--run")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    python = shlex.quote(sys.executable)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="predict-", dir=given.dir)))
        way = stack.enter_context(path(_RTT_S, 0.0, _MBIT * 10**6))
        own = [job for job in jobs(python, way.files) if given.only in job.name]
        subprocess.run(["chattr", "+T", str(folder)], check=False, capture_output=True)
        lay_out(folder, python)
        answers = {job.name: answer(job, folder, given.run) for job in own}
        for job in own:
            print(f"{job.name}\n    $ {job.command}\n    latlab predict {' ; '.join(job.asked)}")
            print(
                f"    {json.dumps(answers[job.name]['answer'] or answers[job.name]['refused'])}", flush=True
            )
        if given.list:
            return
        for time_ in range(given.times):
            for job in own:
                run_once(job, folder, way.end)
            print(f"round {time_ + 1}: load {os.getloadavg()[0]:.1f}", flush=True)
    report(own, answers, given)


def report(own: Sequence[Job], answers: Mapping[str, dict[str, Any]], given: argparse.Namespace) -> None:
    """The tables, and the files where they are asked for."""
    run = newest([READ, WRITE], given.run)
    peak = {
        probe: max(
            figures.best_block(rates).rate for way in ways if (rates := figures.rates(run, probe, way))
        )
        for probe, ways in ((READ, ("direct", "buffered-cold")), (WRITE, ("direct", "buffered-fsync-end")))
    }
    rows: list[dict[str, object]] = []
    for job in own:
        found, took = answers[job.name]["answer"], statistics.median(job.took)
        best = job.read / (_MBIT * 1e6 / 8 if job.far else peak[READ]) + job.write / peak[WRITE]
        job.off["peak bandwidth"] = factor(best, took) if best else None
        job.off["napkin-math"] = factor(job.napkin, took)
        job.off["latlab predict"] = factor(found["seconds"], took) if found else None
        inside = [found["low"] <= each <= found["high"] for each in (took, *job.took)] if found else []
        job.held[:] = inside
        job.half[:] = [math.sqrt(found["high"] / found["low"]) - 1] if found else []
        refused = "" if found else answers[job.name]["refused"]["why"]
        rows.append(
            {
                "job": job.name,
                "asked": "; ".join(job.asked if len(set(job.asked)) > 1 else job.asked[:1]),
                "predicted": f"{found['seconds']:.3g} s" if found else "–",
                "range": f"{found['low']:.3g}–{found['high']:.3g} s" if found else refused,
                "took": f"{took:.3g} s ({min(job.took):.3g}–{max(job.took):.3g})",
                "held": "yes" if inside[:1] == [True] else "no" if found else "refused",
                "off": _times(job.off["latlab predict"]),
                "peak bandwidth off": _times(job.off["peak bandwidth"]),
                "napkin-math off": _times(job.off["napkin-math"]),
                "computing": f"{job.computing:.0%}",
            }
        )
        print(" | ".join(str(each) for each in rows[-1].values()))
    sums = [
        summary(name, what, kinds)
        for what, kinds in (
            ("all", list(own)),
            ("computing at most 30 %", [job for job in own if job.computing <= _COMPUTING]),
        )
        for name in ("latlab predict", "peak bandwidth", "napkin-math")
    ]
    for row in sums:
        print(row)
    if given.save:
        origin = evidence.origin("benches/predict_jobs.py --dir DIR --save")
        evidence.write("predict_jobs.csv", [{**row, **origin} for row in rows])
        evidence.write("predict-summary.csv", [{**row, **origin} for row in sums])


if __name__ == "__main__":
    main()
