"""Counts the words of a file, and says where its time went: `words.py FILE`; output as that of known.c."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import Counter


class Part:
    """CPU time, waiting and waiting for a CPU of a part of this thread's work, seconds."""

    def __init__(self) -> None:
        self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._begun = (0.0, 0.0, 0.0)
        self.sums = [0.0, 0.0, 0.0]

    def _queue(self) -> int:
        return int(os.pread(self._schedstat, 128, 0).split()[1])

    def _now(self) -> tuple[float, float, float]:
        while True:
            queue = self._queue()
            cpu, wall = time.thread_time_ns(), time.monotonic_ns()
            # Taken off its CPU meanwhile: the three would not belong to one moment.
            if self._queue() == queue:
                return queue / 1e9, cpu / 1e9, wall / 1e9

    def begin(self) -> None:
        """From now on."""
        self._begun = self._now()

    def end(self) -> None:
        """Until now."""
        self.sums = [
            sum_ + now - begun for sum_, now, begun in zip(self.sums, self._now(), self._begun, strict=True)
        ]

    def reported(self) -> dict[str, float]:
        """As known.c tells it."""
        queue, cpu, wall = self.sums
        return {"cpu": cpu, "wait": wall - cpu - queue, "queue": queue}


def main() -> None:
    """Counts."""
    begun = time.monotonic()
    read, collect = Part(), Part()
    gc.callbacks.append(lambda phase, _: collect.begin() if phase == "start" else collect.end())
    counts: Counter[bytes] = Counter()
    kept: list[list[bytes]] = []
    block = bytearray(1 << 16)
    rest = b""
    with open(sys.argv[1], "rb", buffering=0) as file:  # noqa: PTH123 - what is compared is this one call
        while True:
            read.begin()
            got = file.readinto(block)
            read.end()
            if not got:
                break
            words = (rest + bytes(memoryview(block)[:got])).split(b" ")
            rest = words.pop()
            counts.update(words)
            # Containers that live on: something for the collector to go through.
            kept.extend([word] for word in words[::16])
    counts[rest] += 1
    parts = {"read": read.reported(), "collect": collect.reported()}
    total = time.monotonic() - begun
    sys.stdout.write(json.dumps({"total": total, "parts": parts, "words": counts.total()}) + "\n")


if __name__ == "__main__":
    main()
