"""Programs that turn against their watcher: explain ends soon after them, with a report and their code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from tests.explain.one_process import Reported, explained

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

EXIT_CODE: Final = 7
#: Of the program until it is over, and of explain after that.
PROGRAM_S: Final = 60
REPORT_S: Final = 60
LIMIT_BYTES: Final = 1 << 30

WORKS = """
until = time.monotonic() + 0.1
while time.monotonic() < until:
    sum(range(10_000))
"""
#: As long, and explain looks as often.
SLEEPS = "time.sleep(0.1)\n"
RING = "file = os.open(os.environ['LATLAB_STAGES'], os.O_RDWR)\nsize = os.fstat(file).st_size\n"
LINES = "file = os.open(os.environ['LATLAB_STAGE_LINES'], os.O_RDWR)\n"
PROGRAMS: Final = {
    "truncates the ring": RING
    + """
for length in (1 << 40, 4096, 0):
    with contextlib.suppress(OSError):
        os.ftruncate(file, length)
"""
    + SLEEPS,
    "overwrites the ring": RING
    + """
until = time.monotonic() + 0.1
while time.monotonic() < until:
    at = random.randrange(0, size, 8)
    os.pwrite(file, random.randbytes(min(size - at, 1 << 16)), at)
    os.pwrite(file, random.choice((b"\\xff", b"\\0", b"\\x7f")) * 8, 16)
""",
    "goes through all names": RING
    + """
until = time.monotonic() + 0.1
number = 0
while time.monotonic() < until:
    number += 1
    os.pwrite(file, struct.pack("<II56s", 2, 40, b"%040d" % number), 64 + number % 256 * 64)
    slot = 64 + 256 * 64 + (number - 1) % (1 << 17) * 64
    mark = (number, time.monotonic_ns(), 0, 0, number, number, number, 0)
    os.pwrite(file, struct.pack("<4Q4I16x", *mark), slot)
    os.pwrite(file, number.to_bytes(8, "little"), 16)
""",
    "makes its lines terabytes": LINES + "os.ftruncate(file, 1 << 42)\n" + SLEEPS,
    "truncates its lines again and again": LINES
    + """
until = time.monotonic() + 0.1
while time.monotonic() < until:
    os.pwrite(file, b"begin %d\\nend %d\\n" % (random.randrange(9), random.randrange(9)), 0)
    os.ftruncate(file, random.randrange(20))
""",
    "writes lines faster than they are read": LINES
    + """
text = b"".join(b"begin n%d\\nend n%d at=%d\\n" % (n, n, n) for n in range(20_000))
for _ in range(100):
    os.write(file, text)
""",
    "has hundreds of deleted mappings": """
for number in range(300):
    path = f"{folder}/python3.{number}"
    with open(path, "wb") as file:
        file.write(bytes(4096))
    with open(path, "rb") as file:
        kept = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
        globals()[f"kept_{number}"] = kept
    os.unlink(path)
    os.mkfifo(path)
    os.mkfifo(f"{path} (deleted)")
"""
    + WORKS,
}
BEGIN = "import contextlib, mmap, os, random, struct, sys, time\nfolder = sys.argv[1]\nrandom.seed(1)\n"
END = f"\nopen(folder + '/over', 'w').close()\nos._exit({EXIT_CODE})\n"
STAYS: Final = "leaves a process with its output"
#: By the name of the program explain looks for an interpreter in it.
REPLACED: Final = {
    "puts a fifo in its place": 'mkfifo "$1/python3.11" "$1/python3.11 (deleted)"',
    "links a fifo in its place": 'ln -s other "$1/python3.11"; ln -s other "$1/python3.11 (deleted)"',
    "links a device there": 'ln -s /dev/zero "$1/python3.11"; ln -s /dev/zero "$1/python3.11 (deleted)"',
}
ALL: Final = (*PROGRAMS, *REPLACED, STAYS)


def command(name: str, folder: Path) -> list[str]:
    """A hostile program, which has that folder for itself."""
    over = f': > "$1/over"; exit {EXIT_CODE}'
    if name in PROGRAMS:
        return [sys.executable, "-I", "-c", BEGIN + PROGRAMS[name] + END, str(folder)]
    if name == STAYS:
        script = 'sleep 600 & echo $! > "$1/left"; sleep 0.1; ' + over
        return ["sh", "-c", script, "sh", str(folder)]
    program = folder / "python3.11"
    shutil.copy(shutil.which("sh") or "/bin/sh", program)
    os.mkfifo(folder / "other")
    script = f'rm "$1/python3.11"; {REPLACED[name]}; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done;'
    script += f" sleep 0.3; {over}"
    return [str(program), "-c", script, "sh", str(folder)]


@pytest.fixture(scope="module", params=[1, 3])
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """What became of each, and how long explain went on when the program was over."""
    whole = tmp_path_factory.mktemp(f"hostile-{request.param}")
    folders = {name: whole / str(number) for number, name in enumerate(ALL)}
    for folder in folders.values():
        folder.mkdir()
    programs = {name: command(name, folder) for name, folder in folders.items()}
    try:
        found = explained(
            whole, request.param, programs, memory_bytes=LIMIT_BYTES if request.param == 1 else None
        )
    finally:
        left = folders[STAYS] / "left"
        if left.exists():
            os.kill(int(left.read_text(encoding="ascii")), signal.SIGKILL)
    for name, each in found.items():
        each["after_s"] = each["ended"] - (folders[name] / "over").stat().st_mtime
    return found


@pytest.mark.parametrize("name", ALL)
def test_a_report_comes_of_a_program_that(name: str, reported: Reported) -> None:
    assert reported[name]["exit_code"] == EXIT_CODE, reported[name]["said"]
    assert reported[name]["after_s"] < REPORT_S
    assert reported[name]["changed"] == {}
    ledger = reported[name]["ledger"]
    assert ledger["program"]["exit_code"] == EXIT_CODE
    assert sum(row["share"] for row in ledger["categories"]) == pytest.approx(1.0, abs=1e-9)
    # 257 of the ring, as many of lines, and what is outside of all.
    assert len(ledger.get("stages", ())) <= 515


@pytest.mark.parametrize("name", ["makes its lines terabytes", "writes lines faster than they are read"])
def test_lines_that_came_too_fast_are_said_to_be_left_out(name: str, reported: Reported) -> None:
    notes = reported[name]["ledger"]["notes"]
    assert any("left out: they came faster" in note for note in notes), notes


def test_a_process_that_stays_behind_is_counted(reported: Reported) -> None:
    assert reported[STAYS]["ledger"]["program"]["left_running"] == 1


def started(folder: Path, script: str) -> subprocess.Popen[bytes]:
    """Explain of a shell's script."""
    command = [sys.executable, "-m", "latlab", "explain", "--no-limits"]
    command += ["--json", str(folder / "report.json"), "--", "sh", "-c", script, "sh", str(folder)]

    def defaults() -> None:
        # Who runs the tests may have them ignored, as `nohup` does.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=defaults,  # noqa: PLW1509 - the tests have one thread
    )


def await_file(path: Path, explain: subprocess.Popen[bytes]) -> None:
    """Until a program has written it, or explain is gone."""
    until = time.monotonic() + PROGRAM_S
    while not path.exists() and explain.poll() is None:
        assert time.monotonic() < until, f"{path.name} is not there after {PROGRAM_S} s"
        time.sleep(0.01)


def test_what_is_sent_to_explain_reaches_the_program_while_there_is_one(tmp_path: Path) -> None:
    script = f'trap \': > "$1/over"; exit {EXIT_CODE}\' TERM; : > "$1/ready"; while :; do sleep 0.05; done'
    explain = started(tmp_path, script)
    try:
        await_file(tmp_path / "ready", explain)
        explain.send_signal(signal.SIGTERM)
        await_file(tmp_path / "over", explain)
        assert explain.wait(timeout=REPORT_S) == EXIT_CODE
    finally:
        explain.kill()
        explain.wait()
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["program"]["exit_code"] == EXIT_CODE
    assert sum(row["share"] for row in report["categories"]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_sent_after_the_program_has_ended_ends_explain(
    number: signal.Signals, tmp_path: Path
) -> None:
    # Nobody reads this, so explain does not end before it is told to.
    os.mkfifo(tmp_path / "report.json")
    explain = started(tmp_path, 'echo $$ > "$1/pid"; sleep 0.2')
    try:
        await_file(tmp_path / "pid", explain)
        time.sleep(0.05)
        pid = int((tmp_path / "pid").read_text(encoding="ascii"))
        until = time.monotonic() + PROGRAM_S
        # Until explain has waited for it.
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until
            time.sleep(0.001)
        explain.send_signal(number)
        assert explain.wait(timeout=REPORT_S) == -number
    finally:
        explain.kill()
        explain.wait()
