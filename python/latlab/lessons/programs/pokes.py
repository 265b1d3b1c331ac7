"""Random pokes: a byte at a place by chance is read and written back, in memory or in a file, each timed."""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path

Clock = Callable[[], float]


def create_file(path: Path, size: int, block: int) -> tuple[float, float]:
    """Seconds to get a block of memory, and to write it until the file has its size; nothing is flushed."""
    start = time.perf_counter()
    data = bytearray(block)
    made = time.perf_counter()
    with open(path, "wb") as file:
        file.writelines(data for _ in range(size // block))
    return made - start, time.perf_counter() - made


def poke_memory(size: int, pokes: int, clock: Clock = time.perf_counter) -> list[float]:
    """Seconds of each poke in memory; with size 0 there is nothing between the two time stamps."""
    memory, seconds, draw = bytearray(size), [], random.random
    for _ in range(pokes):
        if size == 0:
            start = clock()
            end = clock()
        else:
            place = int(draw() * size)
            start = clock()
            memory[place] = memory[place]
            end = clock()
        seconds.append(end - start)
    return seconds


def poke_file(path: Path, size: int, pokes: int, clock: Clock = time.perf_counter) -> list[float]:
    """Seconds of each poke in a file: seek, read a byte, seek back, write it; four system calls."""
    seconds, draw = [], random.random
    with open(path, "r+b", buffering=0) as file:
        for _ in range(pokes):
            if size == 0:
                start = clock()
                end = clock()
            else:
                place = int(draw() * size)
                start = clock()
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(byte)
                end = clock()
                assert len(byte) == 1
            seconds.append(end - start)
    return seconds


def poke_batches(size: int, batches: int, each: int) -> list[float]:
    """Seconds of a poke as the mean of a batch: short ones show so, their tail does not."""
    memory, seconds = bytearray(max(size, 1)), []
    for _ in range(batches):
        places = [random.randrange(max(size, 1)) for _ in range(each)]
        start = time.perf_counter()
        for place in places:
            memory[place] = memory[place]
        seconds.append((time.perf_counter() - start) / each)
    return seconds


def repeated(elements: int) -> float:
    """Seconds to write so many integers of eight bytes, one after the other."""
    pattern = array("q", range(min(1000, elements)))
    start = time.perf_counter()
    made = pattern * (elements // len(pattern))
    seconds = time.perf_counter() - start
    assert len(made) == elements
    return seconds


def steps_of(clock: Clock, count: int) -> list[float]:
    """The differences of a clock that is asked again and again until it moves."""
    found = []
    for _ in range(count):
        start = clock()
        while (now := clock()) == start:
            pass
        found.append(now - start)
    return found


if __name__ == "__main__":
    largest, count = (10**5, 1000) if "--small" in sys.argv else (10**9, 100_000)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for size in (0, 10**3, 10**6, 10**9):
            if size > largest:
                break
            target = Path(folder, str(size))
            create_file(target, size, min(max(size, 1), 10**6) if size >= 10**6 else 1)
            taken = {"memory": poke_memory(size, count), "file": poke_file(target, size, count)}
            for name, own in taken.items():
                mean, std = statistics.fmean(own), statistics.pstdev(own)
                print(f"{size:11} {name:6} mean {mean:.3g} s, std {std:.3g} s")
            os.remove(target)
