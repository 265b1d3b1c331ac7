"""Writes files as a user's program does, and keeps when each step of each file ended."""

import os
from array import array
from pathlib import Path
from time import perf_counter, perf_counter_ns

FOLDER = ""
SOURCE = ""
RESULT = ""
FILES = 0
FILE_BYTES = 0
SYNC = False


def run(number: int) -> int:
    """Writes all files into the folder of this number; how many bytes, 0 when it failed."""
    try:
        data = Path(SOURCE).read_bytes()
        return write(f"{FOLDER}/{number}", data)
    except (OSError, MemoryError) as error:
        Path(RESULT).write_text(str(error.strerror if isinstance(error, OSError) else error))
        return 0


def write(folder: str, data: bytes) -> int:
    """The pass that is timed."""
    now = perf_counter_ns
    steps: list[int] = []
    size = FILE_BYTES
    written = 0
    begin = perf_counter()
    for i in range(FILES):
        t0 = now()
        file = open(f"{folder}/f{i}", "wb")  # noqa: PTH123, SIM115 - as the lesson writes it
        t1 = now()
        written += file.write(data[size * i : size * (i + 1)])
        t2 = now()
        if SYNC:
            file.flush()
            os.fsync(file.fileno())
        t3 = now()
        file.close()
        steps.extend((t0, t1, t2, t3, now()))
    wall = perf_counter() - begin
    with Path(RESULT).open("wb") as result:
        array("q", [round(wall * 1e9), *steps]).tofile(result)
    return written
