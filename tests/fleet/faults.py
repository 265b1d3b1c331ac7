"""What makes one host of several network namespaces slow, for as long as a block of code takes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from latlab.lessons.distance import _core

if TYPE_CHECKING:
    from tests.fleet.test_namespaces import Network

_GROUPS: Final = Path("/sys/fs/cgroup")
_DISK_BYTES: Final = 3 << 30
#: 10 ms each way, and 50 Mbit/s.
_SLOW_LINK: Final = {"rtt_us": 20_000, "rate_bit_per_s": 50_000_000, "queue_bytes": None}
#: Reads and writes more memory than any cache holds; every page exists before.
_BURN: Final = """
a, b = b"x" * (1 << 27), bytearray(b"y" * (1 << 27))
view = memoryview(b)
while True:
    view[:] = a
"""


def workers_in(namespace: str) -> list[int]:
    """Dask's workers in a network namespace."""
    inode = Path(namespace).stat().st_ino
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_there = (entry / "ns/net").stat().st_ino == inode
            if is_there and b"dask_worker" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def limited(controller: str, limits: Mapping[str, str], processes: Sequence[int]) -> Iterator[Path]:
    """Puts processes, and what they start, into a control group of either version.

    Args:
        controller: As version 1 calls it.
        limits: What is written into which file; files of the other version are not there.
        processes: Who.
    """
    old = (_GROUPS / controller).exists()
    top = _GROUPS / controller if old else _GROUPS
    group = top / f"latlab-test-{os.getpid()}"
    group.mkdir()
    homes = {process: top / _group_of(process, controller if old else "") for process in processes}
    try:
        if not old:
            name = {"blkio": "io"}.get(controller, controller)
            (top / "cgroup.subtree_control").write_text(f"+{name}\n")
        for file, text in limits.items():
            if (group / file).exists():
                (group / file).write_text(f"{text}\n")
        for process in processes:
            (group / "cgroup.procs").write_text(f"{process}\n")
        yield group
    finally:
        for process, home in homes.items():
            with contextlib.suppress(OSError):
                (home / "cgroup.procs").write_text(f"{process}\n")
        _removed(group)


def _group_of(process: int, controller: str) -> str:
    for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.strip("/")
    return ""


def _removed(group: Path) -> None:
    """What still ends in it is waited for."""
    end = time.monotonic() + 30
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[tuple[Path, str]]:
    """A file system on a loop device: where it is mounted, and the device's `major:minor`."""
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, _DISK_BYTES)
    command = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    loop = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        options = "lazy_itable_init=0,lazy_journal_init=0"
        subprocess.run(["mkfs.ext4", "-q", "-E", options, loop], check=True)
        subprocess.run(["mount", loop, mount], check=True)
        try:
            yield mount, (Path("/sys/class/block") / Path(loop).name / "dev").read_text().strip()
        finally:
            subprocess.run(["umount", "--lazy", mount], check=True)
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)
        image.unlink()
        mount.rmdir()


@contextlib.contextmanager
def neighbour(workers: Sequence[int], cpu: int) -> Iterator[None]:
    """Fills the memory bus from a CPU, but only while these workers measure."""
    ended = threading.Event()

    def burn() -> None:
        burning: subprocess.Popen[bytes] | None = None
        while not ended.wait(0.05):
            measures = any(_children(worker) for worker in workers)
            if measures and burning is None:
                burning = subprocess.Popen(["taskset", "--cpu-list", str(cpu), sys.executable, "-c", _BURN])
            elif burning is not None and not measures:
                burning.kill()
                burning.wait()
                burning = None
        if burning is not None:
            burning.kill()
            burning.wait()

    thread = threading.Thread(target=burn)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def slow_link(stack: contextlib.ExitStack, network: Network, one: str, other: str) -> None:
    """Leads what two hosts send each other, and nothing else, through a delay line."""
    found = _core(stack, "network.path").ask({"spec": _SLOW_LINK, "cpus": []})
    for end, own, peer in (("client", one, other), ("server", other, one)):
        line = f"/proc/{found[end]['process']}/fd/{found[end]['network']}"
        home = network.hosts[own]
        network.run(line, f"ip link set path netns {Path(home).parts[2]}")
        network.run(home, "ip link set path up")
        network.run(home, f"ip route add {peer}/32 dev path src {own}")


def _children(process: int) -> bool:
    files = Path(f"/proc/{process}/task").glob("*/children")
    with contextlib.suppress(OSError):
        return any(file.read_text().split() for file in files)
    return False
