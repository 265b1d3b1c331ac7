"""What a list costs: to create in each of Python's ways, to reuse, and to give back."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

_kept: dict[int, list[object]] = {}


def _prepared(n: int) -> list[object]:
    return _kept.setdefault(n, [None] * n)


def _appended(n: int) -> list[object]:
    out: list[object] = []
    for _ in range(n):
        out.append(None)  # noqa: PERF401 - the loop is what is measured
    return out


#: Each makes a list of `n` elements; the last two make `n` objects besides.
WAYS: dict[str, Callable[[int], list[object]]] = {
    "repeat": lambda n: [None] * n,
    "copy": lambda n: _prepared(n)[:],
    "range": lambda n: list(range(n)),
    "comprehension": lambda n: [None for _ in range(n)],
    "append": _appended,
    "floats": lambda n: [float(i) for i in range(n)],
    "lists": lambda n: [[] for _ in range(n)],
}


def create(way: str, n: int, times: int) -> tuple[float, float]:
    """Seconds to create such a list, and seconds to give it back; the mean of `times`."""
    make = WAYS[way]
    make(n)
    making = freeing = 0.0
    clock = time.perf_counter
    for _ in range(times):
        start = clock()
        made = make(n)
        ready = clock()
        assert len(made) == n
        counted = clock()
        del made
        gone = clock()
        making, freeing = making + ready - start, freeing + gone - counted
    return making / times, freeing / times


def fill_new(n: int, times: int) -> float:
    """Seconds to make a list of zeros and to write every element."""
    start = time.perf_counter()
    for number in range(times):
        grid = [0.0] * n
        for i in range(n):
            grid[i] = number
        assert grid[-1] == number
    return (time.perf_counter() - start) / times


def fill_kept(n: int, times: int) -> float:
    """Seconds to write every element of a list that is there already."""
    grid = [0.0] * n
    start = time.perf_counter()
    for number in range(times):
        for i in range(n):
            grid[i] = number
        assert grid[-1] == number
    return (time.perf_counter() - start) / times


def collect(n: int) -> float:
    """Seconds of one full garbage collection while `n` lists are alive, beyond one without them."""
    gc.collect()
    start = time.perf_counter()
    gc.collect()
    without = time.perf_counter() - start
    alive: list[object] = [[] for _ in range(n)]
    start = time.perf_counter()
    gc.collect()
    seconds = time.perf_counter() - start
    assert len(alive) == n
    return max(seconds - without, 0.0)


def collector(n: int, *, on: bool) -> float:
    """Seconds to make `n` lists in a list with the garbage collector on or off."""
    was = gc.isenabled()
    gc.collect()
    (gc.enable if on else gc.disable)()
    try:
        start = time.perf_counter()
        made: list[object] = [[] for _ in range(n)]
        seconds = time.perf_counter() - start
        assert len(made) == n
        return seconds
    finally:
        (gc.enable if was else gc.disable)()


if __name__ == "__main__":
    size = 1_000 if "--small" in sys.argv else 100_000
    for name in WAYS:
        made_in, freed_in = create(name, size, 20)
        print(f"{name:14} {made_in * 1e6:10.1f} µs to create, {freed_in * 1e6:8.1f} µs to free")
    print(f"filled anew {fill_new(size, 20) * 1e6:.1f} µs, filled again {fill_kept(size, 20) * 1e6:.1f} µs")
