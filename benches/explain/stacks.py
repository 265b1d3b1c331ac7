"""Compares the stacks of `latlab explain` with those of `perf record --call-graph dwarf`.

    python benches/explain/stacks.py [--level 1] [--only "sort;gzip"] [--latlab PROGRAM] --dir /data

Needs perf, sort, gzip, sqlite3 and g++: programs as Debian has them, without frame pointers. Writes a text
of 20 MB and some smaller files into the directory. Says of each program which share of its samples has a
whole stack, one whose outermost functions are where a program or a thread begins, and prints the shares of
the five functions that most samples of perf were in or below, of those whose names latlab knows, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_BEGINNINGS = frozenset(("_start", "main", "__libc_start_main", "clone", "clone3", "start_thread"))
_OUTERMOST = 2
"""A program without symbols has no name for its `_start`; who that calls has one."""
_SHOWN = 5
_QUERIES = """
CREATE TABLE t(a, b);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000)
INSERT INTO t SELECT x * 7919 % 300007, hex(x) FROM c;
CREATE INDEX i ON t(b);
SELECT a, count(*) FROM t GROUP BY a % 100 ORDER BY 2 LIMIT 3;
SELECT count(*), sum(length(b)), max(hex(a)) FROM t;
"""
_SOURCE = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int main(int count, char **words) {
    std::map<std::string, std::vector<int>> places;
    for (int at = 0; at < count; at++) places[words[at]].push_back(at);
    std::sort(words, words + count);
    std::cout << std::regex_match(words[0], std::regex("a(b|c)*d")) << places.size();
}
"""


@dataclass(frozen=True)
class Stacks:
    """Functions from the outermost to the running one, and the share of the samples that had this stack."""

    of: tuple[tuple[tuple[str, ...], float], ...]

    def whole(self) -> float:
        """Share that begins where a program or a thread does."""
        return sum(share for names, share in self.of if not _BEGINNINGS.isdisjoint(names[:_OUTERMOST]))

    def within(self, name: str) -> float:
        """Share in this function or in what it has called."""
        return sum(share for names, share in self.of if name in names)

    def largest(self, known: Stacks) -> list[str]:
        """Functions by their share: those that the other stacks have, too, and no beginning of a program."""
        shares: dict[str, float] = defaultdict(float)
        for frames, share in self.of:
            for name in {*frames} - _BEGINNINGS:
                shares[name] += share
        return [name for name in sorted(shares, key=lambda name: -shares[name]) if known.within(name)][
            :_SHOWN
        ]


def _plain(name: str) -> str:
    """As both write it: without versions of symbols, arguments and what the C library calls its insides."""
    name = re.sub(r"@@.*|\(.*|\.(isra|part|constprop|cold).*|^void |^bool ", "", name)
    return re.sub(r"<.*>", "", name).removesuffix("_impl")


def _equal(stacks: Sequence[tuple[tuple[str, ...], float]]) -> Stacks:
    total = sum(share for _, share in stacks) or 1.0
    return Stacks(tuple((names, share / total) for names, share in stacks))


def _of_latlab(latlab: str, level: int, command: Sequence[str], folder: Path) -> Stacks:
    """Of user code and the kernel together; `unlimited`: as all of perf's run is sampled."""
    result = folder / "latlab.json"
    options = ["--no-limits", "--overhead", "unlimited", "--level", str(level), "--json", str(result)]
    _run([latlab, "explain", *options, "--", *command])
    reported = json.loads(result.read_text(encoding="utf-8"))
    return _equal([(tuple(map(_plain, each["frames"])), each["share"]) for each in reported["stacks"]])


def _of_perf(command: Sequence[str], folder: Path) -> Stacks:
    recorded = folder / "perf.data"
    options = ["-q", "-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,8192", "-o", str(recorded)]
    _run(["perf", "record", *options, "--", *command])
    fields = ["--no-inline", "-F", "ip,sym", "-i", str(recorded)]
    text = subprocess.run(["perf", "script", *fields], capture_output=True, check=True).stdout
    return _equal([(tuple(frames), 1.0) for frames in _samples(text.decode(errors="replace"))])


def _samples(text: str) -> Iterator[list[str]]:
    for sample in text.split("\n\n"):
        lines = [line.split(maxsplit=1) for line in sample.splitlines() if line.strip()]
        if lines:
            yield [_plain(line[1]) if len(line) > 1 else "[unknown]" for line in reversed(lines)]


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )


def _programs(folder: Path) -> dict[str, list[str]]:
    text, queries, source = folder / "words.txt", folder / "queries.sql", folder / "source.cpp"
    choose = random.Random(1)  # noqa: S311 - the same text each time
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(choose.choices(letters, k=choose.randint(3, 12))) for _ in range(200_000)]
    lines = (" ".join(choose.choices(words, k=3)) for _ in range(800_000))
    text.write_text("\n".join(lines) + "\n", encoding="ascii")
    queries.write_text(_QUERIES, encoding="ascii")
    source.write_text(_SOURCE, encoding="ascii")
    return {
        "sort": ["sort", "--parallel=1", "-o", f"{folder}/sorted", str(text)],
        "sqlite3": ["sqlite3", ":memory:", f".read {queries}"],
        "gzip": ["gzip", "-kf", str(text)],
        "g++ -O2": ["g++", "-O2", "-o", f"{folder}/program", str(source)],
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Compares stacks with those of perf.")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--latlab", default="latlab")
    parser.add_argument("--only")
    chosen = parser.parse_args()
    wanted = chosen.only.split(";") if chosen.only else None
    print("| program | function | latlab | perf |", "| --- | --- | --- | --- |", sep="\n")
    for name, command in _programs(chosen.dir).items():
        if wanted is not None and name not in wanted:
            continue
        ours = _of_latlab(chosen.latlab, chosen.level, command, chosen.dir)
        theirs = _of_perf(command, chosen.dir)
        print(f"| {name} | whole stacks | {ours.whole():.1%} | {theirs.whole():.1%} |")
        for function in theirs.largest(ours):
            print(f"| | `{function}` | {ours.within(function):.1%} | {theirs.within(function):.1%} |")


if __name__ == "__main__":
    main()
