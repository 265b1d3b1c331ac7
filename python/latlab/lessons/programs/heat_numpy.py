"""The same step in NumPy: new arrays for every result, or two that swap and one to work in."""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]


def start(n: int) -> Field:
    """Cold but for the middle."""
    grid = np.zeros((n, n))
    grid[n // 2, n // 2] = 1.0
    return grid


def fresh(n: int, steps: int) -> tuple[float, Field]:
    """Seconds a step, and the last grid: each sum makes a new array."""
    grid = start(n)
    begin = time.perf_counter()
    for _ in range(steps):
        along_x = np.roll(grid, 1, 0) - 2 * grid + np.roll(grid, -1, 0)
        along_y = np.roll(grid, 1, 1) - 2 * grid + np.roll(grid, -1, 1)
        grid = grid + (along_x + along_y) * 0.1
    return (time.perf_counter() - begin) / steps, grid


def swapped(n: int, steps: int) -> tuple[float, Field]:
    """Seconds a step, and the last grid: nothing new is made."""
    grid, out, work = np.pad(start(n), 1, mode="wrap"), np.zeros((n + 2, n + 2)), np.zeros((n, n))
    begin = time.perf_counter()
    for _ in range(steps):
        middle, new = grid[1:-1, 1:-1], out[1:-1, 1:-1]
        np.add(grid[:-2, 1:-1], grid[2:, 1:-1], out=work)
        np.add(work, grid[1:-1, :-2], out=work)
        np.add(work, grid[1:-1, 2:], out=work)
        np.multiply(work, 0.1, out=work)
        np.multiply(middle, 0.6, out=new)
        np.add(new, work, out=new)
        out[0, 1:-1], out[-1, 1:-1] = out[-2, 1:-1], out[1, 1:-1]
        out[1:-1, 0], out[1:-1, -1] = out[1:-1, -2], out[1:-1, 1]
        grid, out = out, grid
    return (time.perf_counter() - begin) / steps, grid[1:-1, 1:-1]


def check(one: Field, other: Field) -> None:
    """Both come to the same, and no heat is lost."""
    assert np.allclose(one, other)
    assert abs(float(one.sum()) - 1.0) < 1e-9


if __name__ == "__main__":
    size, count = (32, 3) if "--small" in sys.argv else (512, 100)
    (slow, made), (fast, kept) = fresh(size, count), swapped(size, count)
    check(made, kept)
    print(f"new arrays {slow * 1e3:.3f} ms a step, swapped {fast * 1e3:.3f} ms a step")
