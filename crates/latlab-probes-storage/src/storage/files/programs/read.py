"""Reads files as a user's program does, and keeps when each step of each file ended, and its last bytes."""

from array import array
from pathlib import Path
from time import perf_counter, perf_counter_ns

FOLDER = ""
RESULT = ""
FILES = 0
FILE_BYTES = 0
LAST_BYTES = 16


def run(number: int) -> int:
    """Reads all files of the folder of this number; how many bytes, 0 when it failed."""
    try:
        return read(f"{FOLDER}/{number}")
    except (OSError, MemoryError) as error:
        Path(RESULT).write_text(str(error.strerror if isinstance(error, OSError) else error))
        return 0


def read(folder: str) -> int:
    """The pass that is timed."""
    now = perf_counter_ns
    steps: list[int] = []
    ends: list[bytes] = []
    size = FILE_BYTES
    got = 0
    begin = perf_counter()
    for i in range(FILES):
        t0 = now()
        file = open(f"{folder}/f{i}", "rb")  # noqa: PTH123, SIM115 - as the lesson reads it
        t1 = now()
        data = file.read(size)
        t2 = now()
        file.close()
        steps.extend((t0, t1, t2, now()))
        got += len(data)
        ends.append(data[-LAST_BYTES:])
    wall = perf_counter() - begin
    with Path(RESULT).open("wb") as result:
        array("q", [round(wall * 1e9), *steps]).tofile(result)
        result.write(b"".join(ends))
    return got
