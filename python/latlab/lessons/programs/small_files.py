"""The same bytes in one file and in many: written and read as a Python program would do it."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
import zlib
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


def read_one(folder: Path, check: int) -> float:
    """Seconds to read the one file back, whose bytes have this sum (CRC-32)."""
    start = time.perf_counter()
    with open(folder / "large.bin", "rb") as file:
        back = file.read()
    seconds = time.perf_counter() - start
    assert zlib.crc32(back) == check
    return seconds


def read_many(folder: Path, each: int, order: list[int]) -> float:
    """Seconds to read the many files back, of so many bytes each, in the given order."""
    total = 0
    start = time.perf_counter()
    for i in order:
        with open(folder / f"small_{i}.bin", "rb") as file:
            total += len(file.read())
    seconds = time.perf_counter() - start
    assert total == each * len(order)
    return seconds


def read_kept(folder: Path) -> float:
    """Seconds to read the one file into memory that holds it already."""
    with open(folder / "large.bin", "rb", buffering=0) as file:
        kept = bytearray(file.read())
        file.seek(0)
        start = time.perf_counter()
        assert file.readinto(kept) == len(kept)
        return time.perf_counter() - start


if __name__ == "__main__" and sys.argv[1:2] == ["read"]:
    # Each in a program of its own: one that reads for the first time has no memory for what it reads.
    way, place, check, each, count = sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:])
    ordered = list(range(count))
    if way == "scattered":
        random.shuffle(ordered)
    if way == "one":
        print("seconds", read_one(place, check))
    elif way == "kept":
        print("seconds", read_kept(place))
    else:
        print("seconds", read_many(place, each, ordered))
elif __name__ == "__main__":
    size, files = (1_000_000, 100) if "--small" in sys.argv else (10_000_000, 1000)
    content, ordered = os.urandom(size), list(range(files))
    scattered = random.sample(ordered, files)
    with tempfile.TemporaryDirectory(dir=".") as name:
        place = Path(name)
        wrote = write_one(place, content), write_many(place, content, files)
        read = read_one(place, zlib.crc32(content)), read_many(place, size // files, ordered)
        print(
            f"write: one {wrote[0]:.5f} s, {files} {wrote[1]:.5f} s: {wrote[1] / wrote[0]:.1f} times as long"
        )
        print(f"read:  one {read[0]:.5f} s, {files} {read[1]:.5f} s: {read[1] / read[0]:.1f} times as long")
        print(f"read in another order: {read_many(place, size // files, scattered):.5f} s")
