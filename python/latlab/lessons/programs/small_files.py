"""The same bytes in one file and in many: written and read as a Python program would do it."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path


def write_one(folder: Path, data: bytes) -> float:
    """Seconds to write all of it as one file."""
    start = time.perf_counter()
    with open(folder / "large.bin", "wb") as file:
        file.write(data)
    return time.perf_counter() - start


def write_many(folder: Path, data: bytes, count: int) -> float:
    """Seconds to write it as `count` files."""
    each = len(data) // count
    start = time.perf_counter()
    for i in range(count):
        with open(folder / f"small_{i}.bin", "wb") as file:
            file.write(data[each * i : each * (i + 1)])
    return time.perf_counter() - start


def read_one(folder: Path, data: bytes) -> float:
    """Seconds to read the one file back."""
    start = time.perf_counter()
    with open(folder / "large.bin", "rb") as file:
        back = file.read()
    seconds = time.perf_counter() - start
    assert back == data
    return seconds


def read_many(folder: Path, data: bytes, count: int, order: list[int]) -> float:
    """Seconds to read the many files back, in the given order."""
    total = 0
    start = time.perf_counter()
    for i in order:
        with open(folder / f"small_{i}.bin", "rb") as file:
            total += len(file.read())
    seconds = time.perf_counter() - start
    assert total == len(data) // count * count
    return seconds


if __name__ == "__main__":
    size, files = (1_000_000, 100) if "--small" in sys.argv else (10_000_000, 1000)
    content, ordered = os.urandom(size), list(range(files))
    scattered = random.sample(ordered, files)
    with tempfile.TemporaryDirectory(dir=".") as name:
        place = Path(name)
        wrote = write_one(place, content), write_many(place, content, files)
        read = read_one(place, content), read_many(place, content, files, ordered)
        print(
            f"write: one {wrote[0]:.5f} s, {files} {wrote[1]:.5f} s: {wrote[1] / wrote[0]:.1f} times as long"
        )
        print(f"read:  one {read[0]:.5f} s, {files} {read[1]:.5f} s: {read[1] / read[0]:.1f} times as long")
        print(f"read in another order: {read_many(place, content, files, scattered):.5f} s")
