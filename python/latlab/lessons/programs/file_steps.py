"""Where the time of a small file goes: name to address, create, write, close; open, read, close."""

from __future__ import annotations

import os
import time
from pathlib import Path

Steps = dict[str, float]


def write_steps(folder: Path, data: bytes, count: int) -> Steps:
    """Seconds of each step of writing `count` files, all files together."""
    create = write = close = 0.0
    each = len(data) // count
    clock = time.perf_counter
    for i in range(count):
        piece = data[each * i : each * (i + 1)]
        start = clock()
        file = open(folder / f"small_{i}.bin", "wb", buffering=0)
        opened = clock()
        file.write(piece)
        written = clock()
        file.close()
        closed = clock()
        create, write, close = create + opened - start, write + written - opened, close + closed - written
    return {"create": create, "write": write, "close": close}


def read_steps(folder: Path, count: int) -> Steps:
    """Seconds of each step of reading them: first the name alone (stat), then open, read, close."""
    lookup = opening = read = close = 0.0
    clock = time.perf_counter
    for i in range(count):
        path = folder / f"small_{i}.bin"
        start = clock()
        os.stat(path)
        looked = clock()
        file = open(path, "rb", buffering=0)
        opened = clock()
        file.readall()
        done = clock()
        file.close()
        closed = clock()
        lookup, opening = lookup + looked - start, opening + opened - looked
        read, close = read + done - opened, close + closed - done
    return {"lookup": lookup, "open": opening, "read": read, "close": close}


def open_nothing(folder: Path, count: int) -> float:
    """Seconds to look `count` times for a file that does not exist."""
    start = time.perf_counter()
    for i in range(count):
        try:
            open(folder / f"missing_{i}.bin", "rb").close()
        except FileNotFoundError:
            continue
        raise AssertionError("it was there")
    return time.perf_counter() - start


def small_reads(path: Path, piece: int, buffering: int) -> float:
    """Seconds to read a file in pieces, through Python's buffer (-1) or without it (0)."""
    total = 0
    with open(path, "rb", buffering=buffering) as file:
        start = time.perf_counter()
        while part := file.read(piece):
            total += len(part)
        seconds = time.perf_counter() - start
    assert total == path.stat().st_size
    return seconds


def again_and_again(path: Path, times: int) -> float:
    """Seconds to open and read one file `times` times."""
    start = time.perf_counter()
    for _ in range(times):
        with open(path, "rb") as file:
            file.read()
    return time.perf_counter() - start


def read_once_and_keep(path: Path, times: int) -> float:
    """Seconds to read it once and to copy it `times` times from memory."""
    start = time.perf_counter()
    with open(path, "rb") as file:
        kept = bytearray(file.read())
    for _ in range(times):
        bytes(kept)
    return time.perf_counter() - start
