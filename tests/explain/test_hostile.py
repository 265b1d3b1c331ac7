"""Programs that turn against their watcher: explain ends soon after them, with a report and their code."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")

EXIT_CODE: Final = 7
#: Of the program until it is over, and of explain after that.
PROGRAM_S: Final = 60
REPORT_S: Final = 10
LIMIT_BYTES: Final = 1 << 30

WORKS = """
until = time.monotonic() + 0.4
while time.monotonic() < until:
    sum(range(10_000))
"""
RING = "file = os.open(os.environ['LATLAB_STAGES'], os.O_RDWR)\nsize = os.fstat(file).st_size\n"
LINES = "file = os.open(os.environ['LATLAB_STAGE_LINES'], os.O_RDWR)\n"
PROGRAMS: Final = {
    "truncates the ring": RING
    + """
for length in (1 << 40, 4096, 0):
    with contextlib.suppress(OSError):
        os.ftruncate(file, length)
"""
    + WORKS,
    "overwrites the ring": RING
    + """
until = time.monotonic() + 0.4
while time.monotonic() < until:
    at = random.randrange(0, size, 8)
    os.pwrite(file, random.randbytes(min(size - at, 1 << 16)), at)
    os.pwrite(file, random.choice((b"\\xff", b"\\0", b"\\x7f")) * 8, 16)
""",
    "goes through all names": RING
    + """
until = time.monotonic() + 0.4
number = 0
while time.monotonic() < until:
    number += 1
    os.pwrite(file, struct.pack("<II56s", 2, 40, b"%040d" % number), 64 + number % 256 * 64)
    slot = 64 + 256 * 64 + (number - 1) % (1 << 17) * 64
    mark = (number, time.monotonic_ns(), 0, 0, number, number, number, 0)
    os.pwrite(file, struct.pack("<4Q4I16x", *mark), slot)
    os.pwrite(file, number.to_bytes(8, "little"), 16)
""",
    "makes its lines terabytes": LINES + "os.ftruncate(file, 1 << 42)\n" + WORKS,
    "truncates its lines again and again": LINES
    + """
until = time.monotonic() + 0.4
while time.monotonic() < until:
    os.pwrite(file, b"begin %d\\nend %d\\n" % (random.randrange(9), random.randrange(9)), 0)
    os.ftruncate(file, random.randrange(20))
""",
    "writes lines faster than they are read": LINES
    + """
text = b"".join(b"begin n%d\\nend n%d at=%d\\n" % (n, n, n) for n in range(20_000))
for _ in range(200):
    os.write(file, text)
""",
    "has a thousand deleted mappings": """
for number in range(1000):
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


def started(folder: Path, *program: str, level: str = "1", bytes_of_memory: int | None = None) -> Any:  # noqa: ANN401 - a Popen
    """Explain, with what it writes in a file: a process that outlives it may hold a pipe."""
    command = [sys.executable, "-m", "latlab", "explain", "--no-limits", "--level", level]
    command += ["--json", str(folder / "report.json"), "--", *program]

    def limited() -> None:
        # Who runs the tests may have them ignored, as `nohup` does.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if bytes_of_memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (bytes_of_memory, bytes_of_memory))

    with (folder / "told").open("wb") as told:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            preexec_fn=limited,  # noqa: PLW1509 - the tests have one thread
        )


def await_file(path: Path, explain: subprocess.Popen[bytes]) -> None:
    """Until a program has written it, or explain is gone."""
    until = time.monotonic() + PROGRAM_S
    while not path.exists() and explain.poll() is None:
        assert time.monotonic() < until, f"{path.name} is not there after {PROGRAM_S} s"
        time.sleep(0.01)


def report(folder: Path, explain: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What explain has found out, which it must have within some seconds of the program's end."""
    try:
        await_file(folder / "over", explain)
        code = explain.wait(timeout=REPORT_S)
    finally:
        explain.kill()
        explain.wait()
    told = (folder / "told").read_text(encoding="utf-8", errors="replace")
    assert code == EXIT_CODE, told
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert found["program"]["exit_code"] == EXIT_CODE
    assert sum(row["share"] for row in found["categories"]) == pytest.approx(1.0, abs=1e-9)
    return found


@pytest.mark.parametrize("level", ["1", "3"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_report_comes_of_a_program_that(name: str, level: str, tmp_path: Path) -> None:
    program = BEGIN + PROGRAMS[name] + END
    limit = LIMIT_BYTES if level == "1" else None
    explain = started(
        tmp_path, sys.executable, "-I", "-c", program, str(tmp_path), level=level, bytes_of_memory=limit
    )
    found = report(tmp_path, explain)
    # 257 of the ring, as many of lines, and what is outside of all.
    assert len(found.get("stages", ())) <= 515
    if name in ("makes its lines terabytes", "writes lines faster than they are read"):
        assert any("left out: they came faster" in note for note in found["notes"]), found["notes"]


@pytest.mark.parametrize("level", ["1", "3"])
@pytest.mark.parametrize("what", ["a fifo", "a link to one", "a link to a device"])
def test_what_lies_in_place_of_the_program_is_not_opened(what: str, level: str, tmp_path: Path) -> None:
    # By its name explain looks for an interpreter in it.
    program = tmp_path / "python3.11"
    shutil.copy(shutil.which("sh") or "/bin/sh", program)
    other = tmp_path / "other"
    os.mkfifo(other)
    put = {
        "a fifo": 'mkfifo "$1/python3.11" "$1/python3.11 (deleted)"',
        "a link to one": 'ln -s "$1/other" "$1/python3.11"; ln -s "$1/other" "$1/python3.11 (deleted)"',
        "a link to a device": 'ln -s /dev/zero "$1/python3.11"; ln -s /dev/zero "$1/python3.11 (deleted)"',
    }
    script = f'rm "$1/python3.11"; {put[what]}; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
    script += f'; sleep 0.3; : > "$1/over"; exit {EXIT_CODE}'
    explain = started(tmp_path, str(program), "-c", script, "sh", str(tmp_path), level=level)
    report(tmp_path, explain)


def test_a_process_that_stays_behind_does_not_keep_explain(tmp_path: Path) -> None:
    script = f'sleep 600 & echo $! > "$1/left"; sleep 0.1; : > "$1/over"; exit {EXIT_CODE}'
    explain = started(tmp_path, "sh", "-c", script, "sh", str(tmp_path))
    try:
        found = report(tmp_path, explain)
    finally:
        os.kill(int((tmp_path / "left").read_text(encoding="ascii")), signal.SIGKILL)
    assert found["program"]["left_running"] == 1


def test_what_is_sent_to_explain_reaches_the_program_while_there_is_one(tmp_path: Path) -> None:
    script = f'trap \': > "$1/over"; exit {EXIT_CODE}\' TERM; : > "$1/ready"; while :; do sleep 0.05; done'
    explain = started(tmp_path, "sh", "-c", script, "sh", str(tmp_path))
    await_file(tmp_path / "ready", explain)
    explain.send_signal(signal.SIGTERM)
    report(tmp_path, explain)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_sent_after_the_program_has_ended_ends_explain(
    number: signal.Signals, tmp_path: Path
) -> None:
    # Nobody reads this, so explain does not end before it is told to.
    os.mkfifo(tmp_path / "report.json")
    explain = started(tmp_path, "sh", "-c", 'echo $$ > "$1/pid"; sleep 0.2', "sh", str(tmp_path))
    try:
        await_file(tmp_path / "pid", explain)
        time.sleep(0.05)
        pid = int((tmp_path / "pid").read_text(encoding="ascii"))
        until = time.monotonic() + PROGRAM_S
        # Until explain has waited for it.
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until
        explain.send_signal(number)
        assert explain.wait(timeout=REPORT_S) == -number
    finally:
        explain.kill()
        explain.wait()
