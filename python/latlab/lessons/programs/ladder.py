"""How long one access takes in memory of each size, and in a file: as far as Python can see it."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from array import array
from pathlib import Path


def cycle(elements: int) -> array[int]:
    """Each place says where to go next; all come once before the first comes again. A power of two."""
    mask = elements - 1
    return array("I", ((i * 1_664_525 + 1_013_904_223) & mask for i in range(elements)))


def chase(places: array[int], steps: int) -> float:
    """Seconds of a step when each needs the one before: Python's own steps and one access to memory."""
    place = 0
    start = time.perf_counter()
    for _ in range(steps):
        place = places[place]
    seconds = time.perf_counter() - start
    assert 0 <= place < len(places)
    return seconds / steps


def visits_all(places: array[int]) -> bool:
    """Whether the cycle has every place in it."""
    place = 0
    for steps in range(1, len(places) + 1):
        place = places[place]
        if place == 0:
            return steps == len(places)
    return False


def copy_rate(size: int, times: int) -> float:
    """Bytes a second when bytes are copied within memory; each is read and written, and counted once."""
    data = bytearray(size)
    target = bytearray(size)
    start = time.perf_counter()
    for _ in range(times):
        target[:] = data
    return size * times / (time.perf_counter() - start)


def write_file(path: Path, size: int) -> None:
    """A file of chance, on the disk when this returns."""
    with open(path, "wb") as file:
        file.writelines(os.urandom(2**20) for _ in range(size // 2**20))
        file.flush()
        os.fsync(file.fileno())


def poke_file(path: Path, reads: int, *, forget: bool) -> list[float]:
    """Seconds of each read of 4 KiB at a random place; the cache is asked to drop the file first."""
    seconds = []
    blocks = path.stat().st_size // 4096
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if forget:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for block in random.sample(range(blocks), min(reads, blocks)):
            start = time.perf_counter()
            data = os.pread(descriptor, 4096, block * 4096)
            seconds.append(time.perf_counter() - start)
            assert len(data) == 4096
    finally:
        os.close(descriptor)
    return seconds


def read_rate(path: Path, *, forget: bool) -> float:
    """Bytes a second from front to back in pieces of 1 MiB."""
    total = 0
    with open(path, "rb", buffering=0) as file:
        if forget:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        while part := file.read(2**20):
            total += len(part)
        seconds = time.perf_counter() - start
    assert total == path.stat().st_size
    return total / seconds


if __name__ == "__main__":
    largest = 18 if "--small" in sys.argv else 24
    for power in range(12, largest + 1, 3):
        print(f"{4 * 2**power // 1024:8} KiB {chase(cycle(2**power), 200_000) * 1e9:8.1f} ns")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file = Path(folder, "file")
        write_file(file, 2**24)
        pokes = sorted(poke_file(file, 200, forget=hasattr(os, "posix_fadvise")))
        print(f"file, 4 KiB  {pokes[len(pokes) // 2] * 1e6:8.1f} µs")
