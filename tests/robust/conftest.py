"""The installed command in surroundings of its own: what it leaves there is what it leaves anywhere."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import calling
from tests.leftovers import contents, plant

PATIENCE_S = 60.0
"""Only what hangs waits so long: no test passes or fails by how fast something is."""

PAUSE_S = 0.03
"""Between two checks of what a command does: a check takes CPU time too."""

BRIEF = ("measure", "--only", "clock.read", "--budget", "0.1", "--no-report")
"""The shortest run, where what is measured does not matter."""

SOME_POINTS = Path(__file__).with_name("some_points.py")


class Place:
    """Empty folders for data, home, temporary files and the current folder, and the command run in them."""

    def __init__(self, root: Path, command: str) -> None:
        self.root = root
        self.started: list[subprocess.Popen[str]] = []
        self.connections: list[socket.socket] = []
        self.foreign: dict[str, bytes | None] = {}
        #: Fields of the points that are measured, those of one of these; none here are fields of all.
        self.wanted: list[dict[str, object]] = []
        self._command = command
        self._read: dict[Path, tuple[int, list[dict[str, Any]]]] = {}
        for name in ("data", "home", "tmp", "here"):
            (root / name).mkdir(parents=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LATLAB")},
            "XDG_DATA_HOME": str(root / "data"),
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "LATLAB_LOCK_NAME": secrets.token_hex(8),
            "LC_ALL": "C.UTF-8",
        }

    def start(
        self,
        *arguments: str,
        inside: tuple[str, ...] = (),
        **more: Any,  # noqa: ANN401 - Popen's own
    ) -> subprocess.Popen[str]:
        """Starts `latlab ARGUMENTS`, by default with its output in pipes, and with Ctrl-C as in a shell.

        `inside` is the command that starts it in other surroundings.
        """
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.environment,
            "cwd": self.root / "here",
            "text": True,
            "encoding": "utf-8",
            **more,
        }
        process = subprocess.Popen([*inside, *self.started_as(*arguments)], **settings)
        self.started.append(process)
        return process

    def started_as(self, *arguments: str) -> list[str]:
        """`latlab ARGUMENTS` as the system takes it."""
        if self.wanted:
            return [sys.executable, str(SOME_POINTS), json.dumps(self.wanted), *arguments]
        return [self._command, *arguments]

    def run(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 - as above
        """Runs `latlab ARGUMENTS` to its end."""
        return self.ended(self.start(*arguments, **more))

    def called(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`latlab ARGUMENTS` to its end, without a process of its own."""
        return calling.called(arguments, self.root / "here", self.environment)

    def ended(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Waits for the end of one that was started."""
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out or "", err or "")

    @property
    def run_files(self) -> list[Path]:
        """The run files in the store."""
        return sorted((self.root / "data").rglob("*.latlab.jsonl"))

    def forget_runs(self) -> None:
        """Empties the store of runs."""
        for file in self.run_files:
            file.unlink()
        self._read.clear()

    def plant(self) -> None:
        """Puts files of the user's where latlab works, under names that are nearly latlab's."""
        for directory in (self.root / name for name in ("here", "home/.cache", "tmp", "data/latlab/runs")):
            directory.mkdir(parents=True, exist_ok=True)
            plant(directory)
        self.foreign = contents(self.root)

    def left(self) -> list[str]:
        """Every file and folder that is there and is neither a run, its report nor the store itself.

        What was planted has to be as it was.
        """
        now = contents(self.root)
        assert {name: now.get(name, "gone") for name in self.foreign} == self.foreign
        expected = {"data", "home", "tmp", "here", "data/latlab", "data/latlab/runs", *self.foreign}
        # What explain measured of the machine.
        expected.add("data/latlab/runs/calibration.json")
        return sorted(
            name
            for path in self.root.rglob("*")
            if (name := str(path.relative_to(self.root))) not in expected
            and not (path.parent.name == "runs" and name.endswith((".latlab.jsonl", ".html")))
        )

    def until(self, process: subprocess.Popen[str], happened: Callable[[], object]) -> None:
        """Waits until that is so; fails when the command ends before."""
        end = time.monotonic() + PATIENCE_S
        while not happened():
            assert process.poll() is None, f"it ended before, with {process.returncode}"
            assert time.monotonic() < end, f"it did not happen in {PATIENCE_S} s"
            time.sleep(PAUSE_S)

    def until_lines(self, process: subprocess.Popen[str], count: int) -> None:
        """Waits until the run file has so many lines; fails when the command ends before."""
        self.until(process, lambda: any(path.read_bytes().count(b"\n") >= count for path in self.run_files))

    def run_until(
        self,
        enough: Callable[[list[dict[str, Any]]], object],
        *arguments: str,
        **more: Any,  # noqa: ANN401 - as above
    ) -> subprocess.CompletedProcess[str]:
        """Runs `latlab ARGUMENTS` until the lines of its file are enough, and interrupts it as Ctrl-C does.

        With a long budget a busy machine leaves nothing out, and no test waits for what it does not need.
        What is waited for may come with the last line of a run.
        """
        process = self.start(*arguments, **more)
        self.until(process, lambda: process.poll() is not None or (self.run_files and enough(self.lines())))
        process.send_signal(signal.SIGINT)
        result = self.ended(process)
        assert result.returncode in {0, 130}, result.stderr
        assert self.lines()[-1]["stopped_by"] == ("interrupted" if result.returncode else "completed")
        assert enough(self.lines()), result.stderr
        return result

    def shown(self) -> str:
        """The one run as `show` and `show -v` print it."""
        (file,) = self.run_files
        parts = []
        for arguments in (("show", str(file)), ("show", "-v", str(file))):
            result = self.called(*arguments)
            assert (result.returncode, result.stderr) in {
                (0, ""),
                (0, "latlab: the last line was cut short and is left out\n"),
            }
            parts.append(result.stdout)
        return "".join(parts)

    def lines(self, file: Path | None = None) -> list[dict[str, Any]]:
        """The whole lines of a run file, else of the only one in the store.

        What was read before is not read again: a file only grows.
        """
        if file is None:
            (file,) = self.run_files
        end, lines = self._read.get(file, (0, []))
        with file.open("rb") as stream:
            stream.seek(end)
            whole, _, _ = stream.read().rpartition(b"\n")
        if whole:
            lines = [*lines, *map(json.loads, whole.split(b"\n"))]
            self._read[file] = end + len(whole) + 1, lines
        return lines

    def figures(self) -> list[dict[str, Any]]:
        """What the rounds of the only run in the store say together, as its last line holds it."""
        figures: list[dict[str, Any]] = self.lines()[-1]["figures"]
        return figures

    def deaths(self) -> list[str]:
        """What the records say of the measuring process's death."""
        errors = [line.get("error") or {} for line in self.lines()]
        return [error["text"] for error in errors if error.get("kind") == "worker_died"]

    def workers(self, process: subprocess.Popen[str]) -> list[int]:
        """The measuring processes of a command, also when it is gone: they are told its number."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                except OSError:
                    continue
                # `... worker.py PARENT`, and what follows the last NUL.
                mine = words[-2:-1] == [str(process.pid).encode()]
                if mine and words[-3].endswith(b"worker.py") and state != "Z":
                    found.append(int(entry.name))
        return found

    def no_worker_is_left(self, process: subprocess.Popen[str]) -> bool:
        """Whether they all end; the kernel takes a moment to end one that holds much memory."""
        end = time.monotonic() + PATIENCE_S
        while self.workers(process):
            if time.monotonic() > end:
                return False
            time.sleep(PAUSE_S)
        return True


@pytest.fixture
def places(tmp_path: Path, latlab: str) -> Iterator[Callable[[], Place]]:
    """Makes places where the command runs; no process of it stays."""
    made: list[Place] = []

    def make() -> Place:
        made.append(Place(tmp_path / f"place-{len(made)}", latlab))
        return made[-1]

    yield make
    for connection in (connection for place in made for connection in place.connections):
        connection.close()
    for process in (process for place in made for process in place.started):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def place(places: Callable[[], Place]) -> Place:
    """Where the command runs."""
    return places()


@pytest.fixture(scope="session")
def small_run(root: Path) -> Path:
    """A run file with a little of everything."""
    return root / "tests/data/run-small.latlab.jsonl"


class Disk:
    """A file system that nobody else uses: what is in use there was left there by what a test has run."""

    def __init__(self, image: Path, path: Path) -> None:
        self.image = image
        self.path = path
        self.before = self.used()

    def used(self) -> tuple[int, int]:
        """Free blocks and free inodes: the same number again when nothing was left."""
        space = os.statvfs(self.path)
        return space.f_bfree, space.f_ffree

    def entries(self) -> list[str]:
        """What is in its topmost directory and was not made with it."""
        return sorted({path.name for path in self.path.iterdir()} - {"lost+found"})

    def nothing_is_left(self) -> bool:
        """Whether it is as it was; a killed process's files are given back a moment later."""
        end = time.monotonic() + PATIENCE_S
        while self.entries() or self.used() != self.before:
            if time.monotonic() > end:
                return False
            time.sleep(PAUSE_S)
        return True

    def device(self) -> Path:
        """Of its device, the folder in /sys."""
        number = self.path.stat().st_dev
        return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")

    def written_bytes(self) -> int:
        """What its device has been sent since it was made."""
        # Documentation/block/stat.rst: sectors of 512 bytes, whatever the device's are.
        return int((self.device() / "stat").read_text().split()[6]) * 512


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Callable[..., Disk]]:
    """Makes ext4 file systems in files of their own, mounted as `mount -o` takes it, and takes them away."""
    mounted: list[Path] = []

    def make(size: int = 3 << 30, options: str = "loop", made_with: tuple[str, ...] = ()) -> Disk:
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("a file system of the test's own needs Linux and root")
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("a file system of the test's own needs mkfs.ext4")
        number = len(list(tmp_path.glob("disk-*")))
        image, path = tmp_path / f"disk-{number}", tmp_path / f"mnt-{number}"
        path.mkdir()
        with image.open("wb") as file:
            file.truncate(size)
        # Nothing is left for the kernel to write later: what the device is sent then is the test's.
        eager = ("-E", "lazy_itable_init=0,lazy_journal_init=0", "-m", "0")
        subprocess.run(["mkfs.ext4", "-q", "-F", *eager, *made_with, str(image)], check=True)
        words = ["mount", "-o", options, str(image), str(path)]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            pytest.skip(f"no loop device can be mounted here: {result.stderr.strip()}")
        mounted.append(path)
        return Disk(image, path)

    yield make
    for path in mounted:
        # Whoever still has a file there is about to end; a lazy unmount takes it away in any case.
        if subprocess.run(["umount", str(path)], capture_output=True, check=False).returncode != 0:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
