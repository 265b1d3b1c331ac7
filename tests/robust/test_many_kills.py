"""kill -9 at any moment of measure, explain, explain --prove and serve: what was there stays, nothing else.

`make test` kills one of each program, `make kills` 300, and prints what was killed when. A moment is an
event, and a random delay after it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import pytest
from tests.robust.conftest import BRIEF, PAUSE_S
from tests.schema import misfits

import latlab
from latlab.run import model
from latlab.run.core import core
from latlab.run.fold import without_shape

if TYPE_CHECKING:
    from tests.conftest import Calibrated
    from tests.robust.conftest import Place

#: How many die, by default one of each program; the seed of all that is random.
KILLS = int(os.environ.get("LATLAB_KILLS", "0"))
SEED = os.environ.get("LATLAB_KILLS_SEED", "a")
PATIENCE_S = 60.0
LONGEST_DELAY_S = 0.4
#: A thread's flag in the kernel (include/linux/sched.h).
_PF_EXITING = 0x4
NEXT_START = (*BRIEF, "--out", "next.latlab.jsonl")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    pytest.mark.timeout(20 * max(KILLS, 20)),
]

Whom = Literal["all of it", "the command", "the measuring process"]

#: Of most runs that are killed, s: each day half of what they have where many are.
BUDGET_S = 8 if KILLS else 4
#: Runs that are killed at any moment, and for how long there is one, s: the last is the whole profile.
RUNS = (
    *(
        (("--only", probes, "--budget", str(BUDGET_S)), BUDGET_S * 7 / 8)
        for probes in (
            "clock.*,memory.load.dependent,memory.bandwidth",
            "kernel.*",
            "storage.*",
            "network.*",
            "vm.*,alloc.*,python.*",
            "memory.stride,storage.files,kernel.syscall",
        )
    ),
    ((), 27.0),
)

#: Faults new memory in at first, a byte a page, whose limit is wanted then, with a child of its own.
PROGRAM = """
import mmap, os, sys, time
open(sys.argv[1] + ".runs", "a").write("x\\n")
open(sys.argv[1]).read()
child = os.fork()
begun, seconds = time.monotonic(), float(sys.argv[2])
while time.monotonic() < begun + min(seconds, 0.3):
    with mmap.mmap(-1, 1 << 22) as new:
        new[::mmap.PAGESIZE] = bytes(1 << 22 >> mmap.PAGESIZE.bit_length() - 1)
time.sleep(max(0, begun + seconds - time.monotonic()))
if child:
    os.wait()
"""


@dataclass(frozen=True)
class Moment:
    """What is started, and when who is killed."""

    program: str
    when: str
    words: tuple[str, ...]
    happened: Callable[[Place, subprocess.Popen[str]], object]
    whom: tuple[Whom, ...] = ("all of it", "the command")
    is_delayed: bool = True


def entries(folder: str) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from Path(folder).iterdir()


def processes(place: Place) -> list[int]:
    """The living processes that a place's commands started: its token is in their environment."""
    token = f"LATLAB_LOCK_NAME={place.environment['LATLAB_LOCK_NAME']}".encode()
    found = []
    for entry in entries("/proc"):
        with contextlib.suppress(OSError):
            # A zombie's environment is empty.
            if entry.name.isdigit() and token in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def exiting() -> list[int]:
    """Processes of this user that end and have not yet closed their files, of any place.

    Their environment is gone before their files are: the lock of a scratch folder may be held until then. A
    process that is a zombie may have threads which are not.
    """
    found = []
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # Of proc_pid_stat(5): state, parent, group, session, terminal, its group, flags.
            state, *others = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(others[5]) & _PF_EXITING and state not in "ZX" and stat.stat().st_uid == os.getuid():
                found.append(int(stat.parts[2]))
    return found


def is_over(place: Place) -> bool:
    """Whether nothing runs of what a place's commands started, and nothing is about to end."""
    return not processes(place) and not exiting()


def links(pattern: str) -> set[str]:
    """Where the links of this pattern lead that can be read."""
    found = set()
    for path in Path("/").glob(pattern.removeprefix("/")):
        with contextlib.suppress(OSError):
            found.add(str(path.readlink()))
    return found


def namespaces(which: str) -> set[str]:
    """Network namespaces of threads."""
    return links(f"/proc/{which}/task/*/ns/net")


def has_own_namespace(place: Place) -> bool:
    own = str(Path("/proc/self/ns/net").readlink())
    return any(namespaces(str(process)) - {own} for process in processes(place))


def in_use(place: Place) -> tuple[set[str], set[str]]:
    """Sockets (their inodes) and other network namespaces of a place's processes."""
    # One that has just begun has no environment yet.
    assert soon(lambda: processes(place))
    found = processes(place)
    descriptors = {link for process in found for link in links(f"/proc/{process}/fd/*")}
    sockets = {link[8:-1] for link in descriptors if link.startswith("socket:[")}
    others = {each for process in found for each in namespaces(str(process))} - namespaces("self")
    return sockets, others


def open_sockets() -> set[str]:
    """Inodes of all sockets of this network namespace."""
    names = ("tcp", "tcp6", "udp", "udp6", "unix", "packet")
    words = (Path(f"/proc/net/{name}").read_text().split() for name in names)
    return set(itertools.chain.from_iterable(words))


def in_shared_memory() -> set[str]:
    return {path.name for path in entries("/dev/shm") if "latlab" in path.name}


def soon(is_so: Callable[[], object]) -> bool:
    """Whether it becomes so: the kernel takes a moment to end what was killed."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_S)
    return True


def moments(place: Place, input_file: Path) -> list[Moment]:
    """All of them; that of a network namespace where one can be had."""
    measure = ("measure", "--profile", "quick", "--no-report", "--dir", str(place.root / "here"), "--only")
    program = (sys.executable, str(input_file.with_suffix(".py")), str(input_file))

    def has_folder() -> bool:
        locks = (place.root / "here").glob(".latlab-*-*/lock")
        return any(str(lock.relative_to(place.root)) not in place.foreign for lock in locks)

    def runs() -> int:
        return input_file.with_name("input.runs").read_text().count("x")

    def answers(process: subprocess.Popen[str]) -> bool:
        assert process.stdout is not None
        host, _, port = json.loads(process.stdout.readline())["address"].rpartition(":")
        connection = socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S)
        # Not closed before the test ends: the server is killed while it sends.
        place.connections.append(connection)
        connection.sendall(b"GET /bytes/1000000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(1000).startswith(b"HTTP/1.1 200")

    found = [
        Moment("measure", "it has begun", (*measure, "clock.read,memory.*"), lambda *_: True),
        Moment(
            "measure", "a measuring process is there", (*measure, "memory.*"), lambda at, it: at.workers(it)
        ),
        Moment("measure", "a record is written", (*measure, "clock.read,memory.*"), record_is_written),
        Moment(
            "measure",
            "a record is written",
            (*measure, "clock.read,kernel.syscall"),
            record_is_written,
            ("the measuring process",),
            is_delayed=False,
        ),
        Moment("measure", "a scratch folder is there", (*measure, "storage.*"), lambda *_: has_folder()),
        Moment(
            "explain",
            "the program runs",
            ("explain", "--no-limits", "--", *program, "1"),
            lambda *_: runs() > 0,
        ),
        Moment(
            "explain",
            "limits are measured",
            ("explain", "--", *program, "0.3"),
            lambda at, it: at.workers(it),
        ),
        Moment(
            "explain --prove",
            "the program runs again",
            ("explain", "--no-limits", "--prove", "--yes", "--", *program, "0.2"),
            lambda *_: runs() > 2,
        ),
        Moment("serve", "it sends", ("serve", "--json"), lambda _, it: answers(it)),
    ]
    if (
        subprocess.run(["unshare", "--user", "--net", "true"], capture_output=True, check=False).returncode
        == 0
    ):
        words = (*measure, "network.connect,network.transfer", "--delay", "5")
        found.append(
            Moment("measure", "a network namespace is there", words, lambda at, _: has_own_namespace(at))
        )
    return found


def record_is_written(place: Place, _process: subprocess.Popen[str]) -> bool:
    return any(path.read_bytes().count(b"\n") > 2 for path in place.run_files)


def is_killed(place: Place, process: subprocess.Popen[str], whom: Whom) -> bool:
    """Kills whom; nobody where the command ends before."""
    while process.poll() is None:
        if whom == "all of it":
            os.killpg(process.pid, signal.SIGKILL)
            return True
        if whom == "the command":
            process.kill()
            return True
        # Between two rounds there is none. What it has forked to measure has its name.
        if workers := place.workers(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(min(workers), signal.SIGKILL)
                return True
        time.sleep(0.001)
    return False


def kill_at(place: Place, moment: Moment, whom: Whom, delay_s: float) -> None:
    """Starts it, kills it then, and looks whether all is as it was."""
    shared_memory = in_shared_memory()
    process = place.start(*moment.words, start_new_session=True)
    place.until(process, lambda: moment.happened(place, process))
    sockets, others = in_use(place)
    assert sockets or moment.program != "serve"
    assert others or "namespace" not in moment.when
    time.sleep(delay_s)
    assert process.poll() is None, "it ended before it was killed"
    more_sockets, more_others = in_use(place)
    sockets |= more_sockets
    others |= more_others
    assert is_killed(place, process, whom)
    reported = place.ended(process)
    assert reported.returncode == (0 if whom == "the measuring process" else -signal.SIGKILL), reported.stderr
    # The program that is explained is the user's: it goes on to its end.
    assert soon(lambda: is_over(place)), (processes(place), exiting())
    assert soon(lambda: not sockets & open_sockets())
    assert soon(lambda: not others & namespaces("[0-9]*"))
    assert "nsfs" not in Path("/proc/self/mountinfo").read_text()
    assert in_shared_memory() <= shared_memory
    if moment.when == "a scratch folder is there":
        assert place.called(*NEXT_START, "--dir", ".").returncode == 0
        (place.root / "here/next.latlab.jsonl").unlink()
    assert place.left() == []
    for file in place.run_files:
        assert place.called("show", str(file)).returncode == 0
    place.forget_runs()


def test_kill_9_at_any_moment_leaves_what_was_there_and_nothing_else(
    place: Place, tmp_path: Path, calibrated: Calibrated, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    if not KILLS:
        # Where many are killed, some are while this is measured.
        calibrated(place.root / "data")
    place.plant()
    input_file = tmp_path / "input"
    input_file.write_text("word " * 10_000)
    input_file.with_suffix(".py").write_text(PROGRAM)
    all_moments = moments(place, input_file)
    each = [(moment, whom) for moment in all_moments for whom in moment.whom]
    killed: Counter[tuple[str, str, str]] = Counter()
    dice.shuffle(each)
    if not KILLS:
        each = list({moment.program: (moment, whom) for moment, whom in each}.values())
    kills = KILLS or len(each)
    for number, (moment, whom) in zip(range(kills), itertools.cycle(each), strict=False):
        input_file.with_name("input.runs").write_text("")
        delay_s = dice.uniform(0.0, LONGEST_DELAY_S) if moment.is_delayed else 0.0
        # Shown by a failure: LATLAB_KILLS_SEED is the first word.
        print(f"{SEED} {number}: {moment.program}, {moment.when}, {whom}, {delay_s:.3f} s later")
        kill_at(place, moment, whom, delay_s)
        killed[moment.program, moment.when, whom] += 1
    assert killed.total() == kills
    with capsys.disabled():
        print()
        for (program, when, who), count in sorted(killed.items()):
            print(f"{count:4} killed: {program:16} {when:32} {who}")
        print(f"{killed.total():4} in all: files, processes, sockets, namespaces, /dev/shm left: none")


def is_good(line: model.Record) -> bool:
    return line.value is not None and line.kind != "derived"


def is_the_fold_of_its_lines(file: Path) -> latlab.Run:
    """A run file whose figures are what its whole lines say, and whose last line may be half of one."""
    run = latlab.load(file)
    header, *records = (line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
    if run.footer is not None:
        records.pop()
    decoded = [json.loads(record) for record in records]
    assert [record["line"] for record in decoded] == ["record"] * len(records)
    assert misfits(decoded) == []
    folded = msgspec.json.decode(core().fold(header, records), type=list[model.Record])
    assert folded == list(run.records)
    assert len(json.loads(run.to_json())["records"]) == len(folded)
    if run.footer is not None:
        assert run.footer.figures == tuple(map(without_shape, run.records))
    good = [line for line in run.lines if is_good(line)]
    assert set(run.rounds) == {line.round for line in good}
    for figure in filter(is_good, run.records):
        own = [line for line in good if (line.probe, line.point) == (figure.probe, figure.point)]
        assert {each.round: each.cpu for each in figure.rounds} == {line.round: line.cpu for line in own}
        assert len(figure.rounds) == len(own)
        medians = [line.value for line in own if line.value is not None]
        assert min(medians) * 0.9999 <= (figure.value or 0.0) <= max(medians) * 1.0001
    return run


def test_a_run_that_is_killed_at_any_moment_folds_into_what_its_rounds_had(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    place.plant()
    report = tmp_path / "report.html"
    killed: Counter[tuple[Whom, str]] = Counter()
    kills = KILLS // 3 or 3
    whoms: tuple[Whom, ...] = ("all of it", "the command", "the measuring process")
    for number, whom in zip(range(kills), itertools.cycle(whoms), strict=False):
        words, longest_s = RUNS[-1] if number % 7 == 3 else dice.choice(RUNS[:-1])
        delay_s = dice.uniform(0.0, longest_s)
        # As above.
        print(f"{SEED} {number}: {' '.join(words)}, {whom}, after {delay_s:.3f} s")
        process = place.start(
            *("measure", "--profile", "quick", "--no-report", "--dir", str(place.root / "here"), *words),
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay_s)
        was_killed = is_killed(place, process, whom)
        reported = place.ended(process)
        code = -signal.SIGKILL if was_killed and whom != "the measuring process" else 0
        assert reported.returncode == code, reported.stderr
        assert "Traceback" not in reported.stderr
        assert soon(lambda: is_over(place)), (processes(place), exiting())
        if code and not place.called(*NEXT_START, "--dir", ".").returncode:
            (place.root / "here/next.latlab.jsonl").unlink()
        assert place.left() == []
        of_rounds = "no header"
        for file in place.run_files:
            run = is_the_fold_of_its_lines(file)
            of_rounds = f"{len(run.rounds)} of {run.header.rounds} rounds"
            # A kill while the result is shown meets a file that is whole.
            assert code or run.footer is not None
            assert run.footer is None or run.stopped_by == "completed"
            of_rounds += ", the footer" if run.footer is not None else ""
            if whom == "the measuring process":
                died = [line for line in run.lines if line.error and line.error.kind == "worker_died"]
                assert len(died) <= 1
            shown = place.called("show", "-v", str(file))
            assert (shown.returncode, shown.stderr) in {
                (0, ""),
                (0, "latlab: the last line was cut short and is left out\n"),
            }
            text = " ".join(shown.stdout.split())
            assert run.made_of in text
            assert ("cut short" in text) == run.partial
        if number % 3 == 0 and place.run_files:
            assert place.called("report", str(place.run_files[0]), "-o", str(report)).returncode == 0
            assert report.stat().st_size > 100_000
        killed[whom, of_rounds] += 1
        place.forget_runs()
    assert killed.total() == kills
    with capsys.disabled():
        print()
        for (who, had), count in sorted(killed.items()):
            print(f"{count:4} killed: {who:24} {had}")
