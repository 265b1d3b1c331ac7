"""How fast a large file is written and read, a mebibyte at a time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

BLOCK = 1 << 20
#: Different blocks that take turns: a disk that packs or shares what it has seen must not look fast.
_TURNS = 64


def blocks(count: int) -> list[bytes]:
    """So many blocks that cannot be compressed, a few of them again and again."""
    kept = [os.urandom(BLOCK) for _ in range(min(count, _TURNS))]
    return [kept[number % len(kept)] for number in range(count)]


def write(path: Path, data: list[bytes], *, sync: bool) -> float:
    """Seconds to write a new file: until it is on the disk, or only until the program may go on."""
    path.unlink(missing_ok=True)
    start = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        file.writelines(data)
        if sync:
            os.fsync(file.fileno())
        return time.perf_counter() - start


def flush(path: Path) -> None:
    """Until the file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def read(path: Path, block: int = BLOCK) -> float:
    """Seconds to read it from front to back into the same memory again and again."""
    kept, total = bytearray(block), 0
    with open(path, "rb", buffering=0) as file:
        start = time.perf_counter()
        while count := file.readinto(kept):
            total += count
        seconds = time.perf_counter() - start
    assert total == path.stat().st_size
    return seconds


if __name__ == "__main__":
    made = blocks(8 if "--small" in sys.argv else 4096)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        target = Path(folder, "file")
        for name, took in (
            ("write, with sync", write(target, made, sync=True)),
            ("write, without", write(target, made, sync=False)),
            ("read, cached", read(target)),
        ):
            print(f"{name:20} {len(made) * BLOCK / took / 1e9:6.2f} GB/s")
