"""Counts the words on standard input, the most frequent first, and says how long each stage took."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

CHUNK = 1 << 16


class Stopwatch:
    """`with stage("reading"):` adds up the seconds of each stage."""

    seconds: dict[str, float] = {}  # noqa: RUF012 - one for the whole program

    def __init__(self, name: str) -> None:
        self.name, self.bytes = name, 0

    def __enter__(self) -> Stopwatch:
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        took = time.perf_counter() - self.begun
        Stopwatch.seconds[self.name] = Stopwatch.seconds.get(self.name, 0.0) + took


stage: Any = Stopwatch
if "LATLAB_STAGES" in os.environ:  # latlab listens: it hears the stages itself
    from latlab import stage


def simple() -> Counter[Any]:
    """All of the text at once."""
    with stage("reading") as reading:
        text = sys.stdin.read()
        reading.bytes = len(text)
    with stage("processing"):
        return Counter(text.lower().split())


def by_line() -> Counter[Any]:
    """Line by line: reading and processing take turns, too quickly for a mark at each."""
    counts: Counter[Any] = Counter()
    with stage("processing"):
        for line in sys.stdin:
            counts.update(line.lower().split())
    return counts


def only_read() -> Counter[Any]:
    """Line by line, and nothing done with them: what reading takes of `by_line`."""
    lines = 0
    with stage("reading"):
        for _ in sys.stdin:
            lines += 1
    return Counter({"lines": lines})


def optimised() -> Counter[Any]:
    """Bytes in chunks: nothing is decoded, and little memory is touched, again and again."""
    counts: Counter[Any] = Counter()
    rest = b""
    while True:
        with stage("reading") as reading:
            chunk = os.read(0, CHUNK)
            reading.bytes = len(chunk)
        with stage("processing"):
            text = rest + chunk
            end = max(text.rfind(b" "), text.rfind(b"\n")) + 1 if chunk else len(text)
            counts.update(text[:end].lower().split())
            rest = text[end:]
        if not chunk:
            return counts


def newlines() -> Counter[Any]:
    """The same bytes with next to no work on each: only the line ends are counted."""
    lines = 0
    while True:
        with stage("reading") as reading:
            chunk = os.read(0, CHUNK)
            reading.bytes = len(chunk)
        with stage("processing"):
            lines += chunk.count(b"\n")
        if not chunk:
            return Counter({"lines": lines})


WAYS: dict[str, Callable[[], Counter[Any]]] = {
    "simple": simple,
    "by-line": by_line,
    "only-read": only_read,
    "optimised": optimised,
    "newlines": newlines,
}


def main(way: str) -> None:
    """Counts, sorts and prints."""
    counts = WAYS[way]()
    with stage("sorting"):
        ordered = counts.most_common()
    with stage("outputting"):
        for word, count in ordered:
            print(word.decode() if isinstance(word, bytes) else word, count)
        sys.stdout.flush()
    if stage is Stopwatch:
        for name, seconds in Stopwatch.seconds.items():
            print(name, f"{seconds:.9f}", file=sys.stderr)


if __name__ == "__main__" and "--small" not in sys.argv:
    main(sys.argv[1] if len(sys.argv) > 1 else "simple")
elif __name__ == "__main__":
    import random
    import subprocess

    sample = " ".join(random.choices(["the", "The", "cat", "sat", "mat."], k=10_000)).encode()
    for each in WAYS:
        reported = subprocess.run(  # noqa: S603 - this file
            [sys.executable, __file__, each], input=sample, capture_output=True, check=True
        )
        print(each, *reported.stderr.decode().split())
