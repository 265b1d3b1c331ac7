"""Runs the programs of the corpus: their packages, their inputs, their servers."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from explain.made import USER, make, postgres
from explain.programs import Program, placed

_PATIENCE_S = 20.0
_C_LIBRARY = "/lib/x86_64-linux-gnu/libc.so.6"
_WARM_UP_S = 0.5
"""A server under load is looked at from then on."""


@dataclass(frozen=True)
class Alone:
    """A run that nobody watched."""

    wall_s: float
    cpu_s: float


class Place:
    """The directory of all this, readable by every user."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.inputs = directory / "in"
        self.out = directory / "out"
        self.printed = directory / "printed"
        self.build_ids = directory / "build-ids"
        sources = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=False).stdout
        self.places = {
            "in": str(self.inputs),
            "out": str(self.out),
            "wheels": str(directory / "wheels"),
            "npm": str(directory / "npm/node_modules"),
            "go": f"{sources.strip()}/src",
            "postgres": postgres(),
        }

    def install(self, programs: Sequence[Program]) -> None:
        """Packages and inputs of these programs, as far as they are not there."""
        debian = {name for program in programs for name in program.debian}
        absent = sorted(name for name in debian if not _has(name))
        if absent:
            # The servers would start with the machine.
            policy = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
            command = ["apt-get", "install", "--yes", "--no-install-recommends", "-qq", *absent]
            subprocess.run(command, env=policy, check=True)
        wheels = {name for program in programs for name in program.wheels}
        present = {each.name for each in metadata.distributions(path=[self.places["wheels"]])}
        missing = sorted(wheels - present)
        if missing:
            target = ["--target", self.places["wheels"]]
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", *target, *missing], check=True)
        packages = sorted({name for program in programs for name in program.npm})
        if not all(Path(self.places["npm"], name.partition("@")[0]).exists() for name in packages):
            prefix = str(self.directory / "npm")
            subprocess.run(["npm", "install", "--silent", "--prefix", prefix, *packages], check=True)
        self._name_the_c_library()
        make(list(dict.fromkeys(name for program in programs for name in program.inputs)), self.inputs)

    def _name_the_c_library(self) -> None:
        """Gives perf the names of the C library's functions; latlab does not find them here, as elsewhere."""
        if self.build_ids.exists():
            return
        names = self.directory / "libc6-dbg"
        names.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", "libc6-dbg"], cwd=names, check=True)
        package = next(names.glob("*.deb"))
        subprocess.run(["dpkg", "-x", package, names], check=True)
        shown = subprocess.run(["file", "-L", _C_LIBRARY], capture_output=True, text=True, check=True).stdout
        found = re.search(r"BuildID\[sha1\]=(..)([0-9a-f]+)", shown)
        if not found:
            raise RuntimeError(f"{_C_LIBRARY} has no build id")
        file = names / f"usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug"
        command = ["perf", "--buildid-dir", str(self.build_ids), "buildid-cache", "-a", str(file)]
        subprocess.run(command, check=True)

    def command(self, program: Program) -> list[str]:
        """What is explained."""
        return placed(program.command, self.places)

    @contextlib.contextmanager
    def ready(self, program: Program) -> Iterator[int]:
        """Everything as the program needs it; the pid of its server under load, or 0."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        self.out.chmod(0o777)
        with contextlib.ExitStack() as meanwhile:
            server = None
            if program.server:
                # Some servers refuse to be root's.
                server = meanwhile.enter_context(_meanwhile([*USER, *placed(program.server, self.places)]))
                _answers(server, program.port)
            if program.before:
                _quietly(placed(program.before, self.places))
            for name in program.cold:
                evict(self.inputs / name)
            if program.load:
                meanwhile.enter_context(_meanwhile(placed(program.load, self.places)))
                time.sleep(_WARM_UP_S)
            yield server.pid if server is not None and program.load else 0

    def alone(self, program: Program) -> Alone:
        """Runs it and looks at nothing but the time; a server as long as it is looked at."""
        with self.ready(program) as server:
            begin = time.perf_counter()
            if server:
                before = _cpu_s(server)
                time.sleep(program.seconds)
                return Alone(time.perf_counter() - begin, _cpu_s(server) - before)
            pid = started(self.command(program), self.printed)
            _, status, usage = os.wait4(pid, 0)
            took = time.perf_counter() - begin
        if status:
            raise RuntimeError(f"{program.name} failed alone: {os.waitstatus_to_exitcode(status)}")
        return Alone(took, usage.ru_utime + usage.ru_stime)


def started(command: Sequence[str], printed: Path) -> int:
    """Starts a program that prints into a file, as some do less work when nobody reads it; its pid."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(printed), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    return os.posix_spawnp(command[0], list(command), os.environ, file_actions=files)


def evict(path: Path) -> None:
    """Puts files out of the page cache one by one."""
    for file in [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file()):
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _has(package: str) -> bool:
    """Whether a Debian package is installed, or its program is there by another way."""
    ways = {"golang-go": "go", "nodejs": "node"}
    if shutil.which(ways.get(package, "")):
        return True
    command = ["dpkg-query", "-W", "-f", "${Status}", package]
    return "ok installed" in subprocess.run(command, capture_output=True, text=True, check=False).stdout


@contextlib.contextmanager
def _meanwhile(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program until what is done meanwhile is done."""
    program = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def _answers(server: subprocess.Popen[bytes], port: int) -> None:
    """Waits until it listens there."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and server.poll() is None:
        time.sleep(0.1)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            # One that another program listens at is refused to it.
            time.sleep(0.1)
            if server.poll() is None:
                return
    raise RuntimeError(f"the server does not listen at port {port}")


def _quietly(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _cpu_s(pid: int) -> float:
    """CPU time of a process so far, by the scheduler's clock."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9
