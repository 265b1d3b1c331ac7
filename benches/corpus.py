"""Tries `explain` on programs that people know, and compares what it says with what the kernel's events say.

    .venv/bin/python benches/corpus.py develop --dir /data/corpus [--only NAME] [--level 1,2,3]
        [--latlab PATH] [--user-latlab PATH] [--out told.json]
    .venv/bin/python benches/corpus.py --table told.json

The programs are those of `explain/programs.py`: `develop` is the part to work with, `report` the part whose
first run after the code is frozen is reported. As root: packages and inputs that are missing are made first.
`--user-latlab` is a latlab that an ordinary user may run, for the same at that user's levels.

The truth (`explain/events.py`) is of the same run: perf records the whole machine while `explain` watches, so
that nothing differs but what is said. A share holds if it is within 5 points of the truth, or if the truth is
within the share's printed interval and that is no wider than ±10 points. Rows of which both have less than
1 % are left out. What is left whole (`user-cpu`, `kernel-cpu`) is compared with all that may be in it.
Prints a row for each share, and the totals. Nothing here is a pass mark: tests must not depend on timing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from explain import events, programs
from explain.made import USER
from explain.programs import Program
from explain.running import Place
from latlab.explain.answer import GROUPS, Share, together
from latlab.explain.model import USER_CODE

_LATLAB: Final = Path(sys.executable).with_name("latlab")
_TOLERANCE: Final = 0.05
_WIDEST: Final = 0.10
_SMALL: Final = 0.01
_QUEUE: Final = "run-queue-wait"
_NONE: Final = (0.0, 0.0)
_OF_FILES: Final = "file-io-cpu"
"""A ledger without this row leaves the kernel's work whole."""
_CLOCKS: Final = 0.02
"""Counters of the kernel are read a little earlier or later than each other."""
_COUNTED: Final = 0.15
"""A truth may have so much less or more CPU time than the kernel counted: recording is some of it."""
_START_S: Final = 0.02
"""CPU time before a program is loaded, and of its end."""
_WRITING_NS: Final = 150_000_000
"""After it has looked at a server, explain writes down what it saw."""
_RUNNING: Final = (
    *USER_CODE,
    "user-cpu",
    "page-faults",
    "file-io-cpu",
    "kernel-cpu",
)
"""Rows of CPU time that have no waits in them."""

Range = tuple[float, float]
Record = dict[str, Any]
"""What a run of a program said or was: as it stands in the file of results."""


@dataclass(frozen=True)
class Line:
    """One share: what is said of it, and what it was."""

    category: str
    truth: tuple[float, float]
    share: float
    low: float
    high: float

    @property
    def answer(self) -> str:
        """`held` or `MISSED`."""
        least, most = self.truth
        if least - _TOLERANCE <= self.share <= most + _TOLERANCE:
            return "held"
        meets = self.low <= most and self.high >= least
        return "held" if meets and self.high - self.low <= 2 * _WIDEST else "MISSED"


def reported(program: Program, place: Place, latlab: Sequence[str], level: int) -> Record:
    """One run under `explain`: its JSON, without what is not compared, and the truth of that run."""
    with place.ready(program) as server:
        # Where every user may write.
        said = place.out / "said.json"
        what = ["--pid", str(server), "--for", f"{program.seconds}s"] if server else []
        command = [*latlab, "explain", "--json", str(said), "--level", str(level), "--no-limits", *what]
        command += [] if server else ["--", *place.command(program)]
        environment = {**os.environ, "HOME": str(place.out)}
        threads = {int(task.name) for task in Path(f"/proc/{server}/task").iterdir()} if server else None
        recorder = events.Recorder(place.directory)
        with recorder, place.printed.open("w") as printed:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env=environment,
            )
            end = time.monotonic_ns() - _WRITING_NS
    if done.returncode or not said.exists():
        return {"failed": (done.stderr.strip() or f"exit {done.returncode}").splitlines()[0][:200]}
    whole: Record = json.loads(said.read_bytes())
    truth = events.swept(
        recorder.data,
        place.build_ids,
        whole["program"]["pid"],
        polls=program.polls,
        collector=program.collector,
        threads=threads,
        between=(end - int(1e9 * program.seconds), end) if server else None,
    )
    cpu_s = whole["counters"]["user_s"] + whole["counters"]["system_s"]
    if abs(truth.thread_running_s - cpu_s) > _COUNTED * cpu_s + _START_S:
        return {"failed": f"the events have {truth.thread_running_s:.3f} s of {cpu_s:.3f} s of CPU time"}
    kept = ("wall_s", "level", "categories", "closure", "observer", "threads", "counters", "verdict", "notes")
    return {name: whole[name] for name in kept} | {"truth": asdict(truth)}


def tried(
    program: Program, place: Place, users: Mapping[str, Sequence[str]], levels: Sequence[int]
) -> Record:
    """Explained runs of a program, in turn, and how long it takes alone."""
    alone = place.alone(program)
    explained = [
        {"user": who, "asked": level, **reported(program, place, latlab, level)}
        for who, latlab in users.items()
        for level in levels
    ]
    return {"name": program.name, "alone": asdict(alone), "told": explained}


def shares(said: Record) -> dict[str, Range]:
    """The truth of a run by row, from and to: of the rows that its ledger has."""
    truth: Record = said["truth"]
    found: dict[str, float] = truth["shares"]
    rows = {row["name"]: row for row in said["categories"]}
    true = {name: (share, share) for name, share in found.items() if name != "other"}
    true["unexplained"] = (found.get("other", 0.0),) * 2
    if _OF_FILES not in rows:
        kernel = truth["kernel"]
        parts = {each["name"]: kernel.get(each["name"], 0.0) for each in rows["kernel-cpu"]["within"]}
        true |= {name: (found[name] - part,) * 2 for name, part in parts.items() if name in found}
        true["kernel-cpu"] = (kernel.get("kernel-cpu", 0.0) + sum(parts.values()),) * 2
    user = rows.get("user-cpu")
    unnamed: float = truth["unnamed"]
    if user and user["share"] >= _SMALL:
        of_user = sum(true.pop(name, _NONE)[0] for name in USER_CODE)
        true["user-cpu"] = (of_user + unnamed, of_user + unnamed)
    else:
        # What has no name may be any of them.
        of = {name: true.get(name, _NONE) for name in USER_CODE}
        true |= {name: (low, high + unnamed) for name, (low, high) in of.items()}
    return true


def lines(said: Record) -> Iterator[Line]:
    """Each row that is more than small by either."""
    reported = {
        row["name"]: Share(row["name"], row["share"], row["low"], row["high"]) for row in said["categories"]
    }
    true = shares(said)
    if "user-cpu" in true:
        of_user = [reported.pop(name) for name in USER_CODE if name in reported]
        reported["user-cpu"] = together("user-cpu", [reported["user-cpu"], *of_user])
    for name in dict.fromkeys([*reported, *true]):
        row = reported.get(name, Share(name, 0.0, 0.0, 0.0))
        least, most = true.get(name, _NONE)
        if max(most, row.share) >= _SMALL:
            yield Line(name, (least, most), row.share, row.low, row.high)


def headline(said: Record) -> str:
    """Whether what is said to take most does: `right`, `WRONG`, or that nothing is said."""
    leading = said["verdict"]["leading"][0]["name"] if said["verdict"]["known"] else "unexplained"
    if leading == "unexplained":
        return "about as much" if "about as much" in said["verdict"]["says"][0] else "cannot be told"
    rows = shares(said)
    sums = {group: sum(rows.get(name, _NONE)[1] for name in names) for group, names in GROUPS.items()}
    return "right" if sums[leading] >= max(sums.values()) - _TOLERANCE else "WRONG"


def broken(said: Record, cpus: int) -> list[str]:
    """What cannot be, whatever the truth is."""
    wall, counters = said["wall_s"], said["counters"]
    cpu = counters["user_s"] + counters["system_s"]
    rows = {row["name"]: row["share"] * wall for row in said["categories"]}
    slack = _CLOCKS * wall
    running = sum(rows.get(name, 0.0) for name in _RUNNING)
    parallelism = said["threads"]["parallelism"]
    queue = counters["run_queue_s"]
    found = []
    if running > cpu + slack:
        found.append(f"{running:.3f} s of rows that run, {cpu:.3f} s of CPU time")
    if parallelism > cpus * (1 + _CLOCKS):
        found.append(f"{parallelism:.2f} threads at once on {cpus} CPUs")
    if cpu > slack and parallelism < 1 - _CLOCKS:
        found.append(f"{parallelism:.2f} threads at once while any ran")
    if queue is not None and rows.get(_QUEUE, 0.0) > queue + slack:
        found.append(f"{rows[_QUEUE]:.3f} s of waiting for a CPU, {queue:.3f} s counted")
    if not said["closure"]["holds"]:
        found.append("the categories do not sum to 100 %")
    return found


def table(results: Record) -> Iterator[str]:
    """The rows, and the totals."""
    yield "| program | user | level | category | truth, % | told, % | interval, % | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    answers: dict[tuple[str, int], Counter[str]] = {}
    headlines: dict[tuple[str, int], Counter[str]] = {}
    said_first, impossible = [], []
    for entry in results["programs"]:
        for said in entry["told"]:
            where = (said["user"], said["asked"])
            place = f"{entry['name'].replace('|', chr(92) + '|')} | {said['user']} | {said['asked']}"
            if "failed" in said:
                yield f"| {place} | {said['failed']} | | | | failed |"
                headlines.setdefault(where, Counter())["failed"] += 1
                continue
            for line in lines(said):
                least, most = line.truth
                answers.setdefault(where, Counter())[line.answer] += 1
                between, told_between = _points(least, most), _points(line.low, line.high)
                yield (
                    f"| {place} | {line.category} | {between} | {100 * line.share:.1f} | {told_between}"
                    f" | {line.answer} |"
                )
            answer = headline(said)
            headlines.setdefault(where, Counter())[answer] += 1
            sentence = said["verdict"]["says"][0]
            said_first.append(
                f"- {entry['name']}, {said['user']}, level {said['asked']}: **{answer}**. {sentence}"
            )
            impossible += [
                f"- {entry['name']}, {said['user']}, level {said['asked']}: {what}"
                for what in broken(said, results["cpus"])
            ]
    yield "\n| user | level | held | missed | held of both | first sentences |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for (user, level), counts in answers.items():
        known = counts["held"] + counts["MISSED"]
        said = ", ".join(f"{count} {answer}" for answer, count in sorted(headlines[user, level].items()))
        yield (
            f"| {user} | {level} | {counts['held']} | {counts['MISSED']}"
            f" | {100 * counts['held'] / max(known, 1):.0f} % | {said} |"
        )
    yield "\nWhat both cost (wall time of the explained runs, the median, and alone):\n"
    for entry in results["programs"]:
        walls = sorted(said["wall_s"] for said in entry["told"] if "failed" not in said)
        alone = entry["alone"]["wall_s"]
        if walls:
            yield f"- {entry['name']}: {walls[len(walls) // 2]:.2f} s, alone {alone:.2f} s"
    yield "\nFirst sentences:\n"
    yield from said_first
    yield "\nWhat cannot be:\n"
    yield from impossible or ["- nothing"]


def _points(low: float, high: float) -> str:
    return f"{100 * low:.1f}–{100 * high:.1f}"


def main() -> None:
    """Runs a part, or prints the table of what was run."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("part", nargs="?", choices=[programs.DEVELOP, programs.REPORT])
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of these results")
    parser.add_argument(
        "--dir", type=Path, help="for inputs and packages; every user must be able to read it"
    )
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument(
        "--level", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 3]
    )
    parser.add_argument("--latlab", default=str(_LATLAB))
    parser.add_argument("--user-latlab", help="one that an ordinary user may run")
    parser.add_argument("--out", type=Path, default=Path("told.json"))
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table(json.loads(asked.table.read_bytes()))))
        return
    if not asked.part or not asked.dir or os.geteuid() != 0:
        parser.error("name a part and --dir, and be root")
    chosen = [program for program in programs.part(asked.part) if asked.only in program.name]
    users = {"root": [asked.latlab]}
    if asked.user_latlab:
        users["user"] = [*USER, asked.user_latlab]
    place = Place(asked.dir.absolute())
    place.install(chosen)
    results: Record = {"part": asked.part, "cpus": len(os.sched_getaffinity(0)), "programs": []}
    for program in chosen:
        begin = time.monotonic()
        try:
            results["programs"].append(tried(program, place, users, asked.level))
        except (RuntimeError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"{program.name}: {error}\n")
        # After each: what is done is kept.
        asked.out.write_text(json.dumps(results), encoding="utf-8")
        sys.stderr.write(f"{program.name}: {time.monotonic() - begin:.0f} s\n")
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
