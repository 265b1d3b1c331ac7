"""What each line of the heat equation's step costs: by leaving lines out, and by a tracer."""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

Grid = list[list[float]]


def rows_only(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """The outer loop."""
    for i in range(n):
        pass


def loops(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """Both loops."""
    for i in range(n):
        for j in range(n):
            pass


def with_x(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """And the first line of the body."""
    for i in range(n):
        for j in range(n):
            along_x = grid[(i - 1) % n][j] - 2 * grid[i][j] + grid[(i + 1) % n][j]


def with_y(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """And the second."""
    for i in range(n):
        for j in range(n):
            along_x = grid[(i - 1) % n][j] - 2 * grid[i][j] + grid[(i + 1) % n][j]
            along_y = grid[i][(j - 1) % n] - 2 * grid[i][j] + grid[i][(j + 1) % n]


def whole(grid: Grid, out: Grid, n: int, a_dt: float) -> None:
    """All of it."""
    for i in range(n):
        for j in range(n):
            along_x = grid[(i - 1) % n][j] - 2 * grid[i][j] + grid[(i + 1) % n][j]
            along_y = grid[i][(j - 1) % n] - 2 * grid[i][j] + grid[i][(j + 1) % n]
            out[i][j] = grid[i][j] + (along_x + along_y) * a_dt


def seconds_of(variant: Any, grid: Grid, out: Grid, n: int) -> float:
    """Seconds of one step of a variant."""
    begin = time.perf_counter()
    variant(grid, out, n, 0.1)
    return time.perf_counter() - begin


def traced(grid: Grid, out: Grid, n: int) -> tuple[float, int]:
    """Seconds of one whole step while every line is timed, and how many lines were."""
    clock, last, spent, lines = time.perf_counter, 0.0, [0.0], [0]

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal last
        now = clock()
        spent[0] += now - last
        lines[0] += event == "line"
        last = now
        return line

    before = sys.gettrace()
    begin = last = clock()
    sys.settrace(line)
    try:
        whole(grid, out, n, 0.1)
    finally:
        sys.settrace(before)
    return clock() - begin, lines[0]
