"""Heat on a square, in lists: a new grid each step, as published or of the right size, or two that swap."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Grid = list[list[float]]


def new_as_published(n: int) -> Grid:
    """The row that the comprehension has made is multiplied by n: n rows of n times n entries."""
    return [[0.0 for _ in range(n)] * n for _ in range(n)]


def new(n: int) -> Grid:
    """N rows of n entries."""
    return [[0.0 for _ in range(n)] for _ in range(n)]


def start(n: int) -> Grid:
    """Cold but for the middle."""
    grid = new(n)
    grid[n // 2][n // 2] = 1.0
    return grid


def update(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """One step from `grid` into `out`; what leaves at an edge comes in at the other."""
    for i in range(n):
        for j in range(n):
            along_x = grid[(i - 1) % n][j] - 2 * grid[i][j] + grid[(i + 1) % n][j]
            along_y = grid[i][(j - 1) % n] - 2 * grid[i][j] + grid[i][(j + 1) % n]
            out[i][j] = grid[i][j] + (along_x + along_y) * a_dt


def fresh(n: int, steps: int, make: Callable[[int], Grid]) -> tuple[list[float], list[float], Grid]:
    """A new grid in each step: seconds of each, of them in making and freeing grids, and the last grid."""
    clock, grid = time.perf_counter, start(n)
    whole, making = [], []
    for _ in range(steps):
        begin = clock()
        out = make(n)
        made = clock()
        update(grid, out, n, 0.1)
        updated = clock()
        grid = out  # the old one goes back here
        del out
        end = clock()
        whole.append(end - begin)
        making.append(made - begin + end - updated)
    return whole, making, grid


def swapped(n: int, steps: int) -> tuple[list[float], Grid]:
    """Two grids that change places: seconds of each step, and the last grid."""
    grid, out = start(n), new(n)
    whole = []
    for _ in range(steps):
        begin = time.perf_counter()
        update(grid, out, n, 0.1)
        grid, out = out, grid
        whole.append(time.perf_counter() - begin)
    return whole, grid


def check(grid: Grid, n: int, steps: int) -> None:
    """No heat is lost, and it is no further than a cell a step."""
    assert abs(sum(sum(row[:n]) for row in grid) - 1.0) < 1e-9
    if 2 * steps < n:
        assert grid[n // 2][n // 2 + steps] > 0.0
        assert grid[n // 2][(n // 2 + steps + 1) % n] == 0.0


if __name__ == "__main__":
    size, count = (32, 3) if "--small" in sys.argv else (512, 10)
    for name, make_grid in (("as published", new_as_published), ("a new grid of the right size", new)):
        seconds, allocating, last = fresh(size, count, make_grid)
        check(last, size, count)
        share = sum(allocating) / sum(seconds)
        print(f"{name:30} {sum(seconds):8.3f} s, {share:.1%} in making and freeing grids")
        del last
    seconds, last = swapped(size, count)
    check(last, size, count)
    print(f"{'two grids that swap':30} {sum(seconds):8.3f} s")
