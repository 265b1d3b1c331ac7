"""Whether what `explain` predicts comes true: how long a program takes when its evicted input is in memory.

    python benches/explain/proof.py [--mb 400] [--rounds 6] [--level 1] [--program words ...]
        [--calibrate] [--dir /data]

Makes a text and runs programs over it: `words` and `spaces` (plain Python, of which reading is little and
much), `wc`, `grep`, `dd` in blocks of 4 KiB (nothing but reading), and `mapped` (reads through a mapping). A
round is A B B A. A: the text is read into the cache and the program timed by itself. B: the text is put out
of the page cache (and that is checked), the program is explained, and from that one ledger alone follows
how long it would take with its input in memory, from and to. Prints each round; for each program the median
of predicted (the middle) over measured with its interval, in how many predictions what was measured lies
within what was predicted, how wide that is, and the second A over the first, which is what chance gives.
Times are without waits for a CPU, which other programs cause.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from latlab import stats
from latlab.errors import UserError
from latlab.explain import inputs, judge, limits
from latlab.explain.kept import Kept
from latlab.explain.run import explain
from latlab.run.store import Store

WORDS = """
import sys
counts = {}
with open(sys.argv[1], encoding="ascii") as text:
    for line in text:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
sys.exit(not counts)
"""
SPACES = """
import sys
spaces = 0
with open(sys.argv[1], "rb", buffering=0) as text:
    while block := text.read(65536):
        spaces += block.count(b" ")
sys.exit(not spaces)
"""
MAPPED = """
import mmap, sys
with open(sys.argv[1], "rb") as text, mmap.mmap(text.fileno(), 0, prot=mmap.PROT_READ) as mapped:
    sys.exit(mapped.find(b"\\0") != -1)
"""
PROGRAMS = {
    "words": ["python", WORDS],
    "spaces": ["python", SPACES],
    "wc": ["wc"],
    "grep": ["grep", "-c", "the"],
    "dd": ["dd", "of=/dev/null", "bs=4k", "status=none"],
    "mapped": ["python", MAPPED],
}
_WORDS = 20_000
_LINE = 12
_SEED = 7


def make_text(path: Path, size: int) -> None:
    """Words of three to nine letters, the frequent ones as frequent as in a language."""
    chance = random.Random(_SEED)  # noqa: S311 - the same text each time
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(_WORDS)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, _WORDS + 1)))
    block = "".join(
        " ".join(chance.choices(words, cum_weights=weights, k=_LINE)) + "\n" for _ in range(100_000)
    )
    with path.open("w", encoding="ascii") as out:
        written = 0
        while written < size:
            out.write(block[: size - written])
            written += len(block)
        os.fsync(out.fileno())


def command(name: str, text: Path, python: str) -> list[str]:
    """A program with its input."""
    first, *rest = PROGRAMS[name]
    if first == "python":
        return [python, "-I", "-S", "-c", *rest, str(text)]
    return [first, *rest, f"if={text}" if first == "dd" else str(text)]


def alone(arguments: Sequence[str]) -> float:
    """Wall time of the program by itself, less what it waited for a CPU, seconds."""
    with tempfile.TemporaryFile() as nowhere:
        begin = time.perf_counter()
        program = subprocess.Popen(arguments, stdout=nowhere)
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        took = time.perf_counter() - begin
        # Its last word: it has ended and is still there.
        waited = int(Path(f"/proc/{program.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    if program.wait() != 0:
        sys.exit("the program failed")
    return took - waited


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """What is written to standard output meanwhile goes into a file without a name; grep knows /dev/null."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with tempfile.TemporaryFile() as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def median(values: Sequence[float]) -> str:
    """The median with its 95 % interval, or with the range of too few."""
    try:
        low, high = stats.order_statistic_interval(values, 0.5)
        kind = "95 %"
    except UserError:
        low, high, kind = min(values), max(values), "range"
    return f"{statistics.median(values):.3f} ({kind} {low:.3f} to {high:.3f})"


def warm(arguments: Sequence[str], text: Path) -> float:
    """A: its time with the text in memory."""
    inputs.warm([text])
    return alone(arguments)


def predicted(
    arguments: Sequence[str], text: Path, level: int, known: limits.Limits
) -> tuple[float, float, float]:
    """B: from and to, of a run with the text not in memory, and that run's time; without waits for a CPU."""
    inputs.evict([text])
    left = inputs.resident([text])
    if left is None or left > 0.01:  # noqa: PLR2004 - a hundredth
        sys.exit(f"the text stays in memory ({left}): --dir on a disk")
    with silent():
        explained, _ = explain(arguments, level=level, runs=1)
    bound = judge.judge(explained, known).limit("read-memory")
    if bound is None:
        sys.exit("its ledger has no reading")
    queue_s = explained.share("run-queue-wait") * explained.wall_s
    return bound.low_s - queue_s, bound.high_s - queue_s, explained.wall_s - queue_s


def main() -> None:
    """Makes the text, runs the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument(
        "--calibrate", action="store_true", help="measure the limits now, by no run's figures"
    )
    parser.add_argument("--dir", default=None)
    parser.add_argument("--program", choices=PROGRAMS, nargs="+", default=list(PROGRAMS))
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="latlab-proof-", dir=asked.dir) as folder:
        text = Path(folder, "text")
        make_text(text, asked.mb * 1_000_000)
        names = ["read-memory", "read-disk"]
        if asked.calibrate:
            known = limits.measured(names, Kept(Store(text.parent)), [text])
        else:
            known = limits.find(names, inputs=[text])
        if "read-memory" not in known.curves:
            sys.exit(f"no limit of reading from memory: {'; '.join(known.notes)}")
        print(f"limits: {known.source('read-memory')}")
        print("program   evicted s  predicted s (from to)        measured s  ratio")
        for name in asked.program:
            arguments = command(name, text, asked.python)
            ratios, chances, widths, inside = [], [], [], []
            for _ in range(asked.rounds):
                before = warm(arguments, text)
                both = [predicted(arguments, text, asked.level, known) for _ in range(2)]
                after = warm(arguments, text)
                # One before and one after the evicted runs: a drift of the machine is in both alike.
                measured = (before + after) / 2
                for low, high, took in both:
                    ratios.append((low + high) / 2 / measured)
                    widths.append((high - low) / 2 / measured)
                    inside.append(low <= max(before, after) and high >= min(before, after))
                    print(
                        f"{name:8} {took:10.3f}  {(low + high) / 2:10.3f} ({low:.3f} {high:.3f})"
                        f"  {measured:12.3f}  {ratios[-1]:.3f}",
                        flush=True,
                    )
                chances.append(after / before)
            print(
                f"{name}: predicted / measured {median(ratios)}; itself / itself {median(chances)};"
                f" within what was predicted {sum(inside)} of {len(inside)}, that is"
                f" ± {100 * statistics.median(widths):.1f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
