"""How fast a disk is written and read by the size of files and of blocks; and one column of a table on it."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import time
from array import array
from pathlib import Path


def write_file(path: Path, data: bytes, *, flush: bool) -> float:
    """Seconds to write a new file, until it is on the disk or only until the program may go on."""
    start = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        file.write(data)
        if flush:
            os.fsync(file.fileno())
    return time.perf_counter() - start


def write_blocks(path: Path, data: bytes, block: int, *, flush: bool) -> float:
    """Seconds to write it in blocks over a file that is there; flushed once at the end, or not."""
    with open(path, "r+b", buffering=0) as file:
        start = time.perf_counter()
        file.writelines(data[at : at + block] for at in range(0, len(data), block))
        if flush:
            os.fsync(file.fileno())
        return time.perf_counter() - start


def read_blocks(path: Path, block: int) -> float:
    """Seconds to read a file from front to back in blocks."""
    kept, total = bytearray(block), 0
    with open(path, "rb", buffering=0) as file:
        start = time.perf_counter()
        while count := file.readinto(kept):
            total += count
        seconds = time.perf_counter() - start
    assert total == path.stat().st_size
    return seconds


def forget(path: Path) -> None:
    """Asks the cache to drop a file that is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def cached_share(path: Path) -> float:
    """How much of a file is in the page cache, by asking the kernel page by page (mincore)."""
    size = path.stat().st_size
    pages = -(-size // mmap.PAGESIZE)
    answer = (ctypes.c_ubyte * pages)()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as mapped:
        # Nothing may hold the buffer when a signal ends the call: it could not be unmapped.
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), answer)
    if failed:
        raise OSError("mincore refused")
    return sum(page & 1 for page in answer) / pages


def write_table(rows_first: Path, columns_first: Path, rows: int, columns: int) -> int:
    """The same table row by row and column by column, eight bytes a cell; returns the sum of column 0."""
    with open(rows_first, "wb") as file:
        file.writelines(array("q", range(row, row + columns)).tobytes() for row in range(rows))
    with open(columns_first, "wb") as file:
        file.writelines(array("q", range(column, column + rows)).tobytes() for column in range(columns))
    for path in (rows_first, columns_first):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return rows * (rows - 1) // 2


def scan_rows(path: Path, columns: int) -> tuple[float, int]:
    """Seconds to add up column 0 where rows lie together: all of the file is read."""
    total, piece = 0, 8 * columns * 1024
    with open(path, "rb", buffering=0) as file:
        start = time.perf_counter()
        while part := file.read(piece):
            total += sum(array("q", part)[::columns])
        return time.perf_counter() - start, total


def scan_column(path: Path, rows: int) -> tuple[float, int]:
    """Seconds to add up column 0 where columns lie together: only that column is read."""
    with open(path, "rb", buffering=0) as file:
        start = time.perf_counter()
        total = sum(array("q", file.read(8 * rows)))
        return time.perf_counter() - start, total


if __name__ == "__main__":
    sizes = (
        (10_000, 1_000_000)
        if "--small" in sys.argv
        else (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for size in sizes:
            target = Path(folder, str(size))
            wrote = write_file(target, os.urandom(size), flush=True)
            read = read_blocks(target, 1 << 20)
            print(
                f"{size:10} bytes: written {size / wrote / 1e6:8.1f} MB/s, read {size / read / 1e6:8.1f} MB/s"
            )
