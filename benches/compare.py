"""Compares latlab's figures with the established tools', interleaved: tables of docs/method/comparison.md.

    .venv/bin/python benches/compare.py latency --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py bandwidth --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py switch --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py python --pairs 9 --cpu 1
    .venv/bin/python benches/compare.py cores --pairs 9 --cpu 2
    .venv/bin/python benches/compare.py loaded --pairs 9
    .venv/bin/python benches/compare.py blocks --pairs 9 --cpu 3 --dir /data
    .venv/bin/python benches/compare.py random --pairs 9 --cpu 3 --dir /data [--awake]
    .venv/bin/python benches/compare.py sync --pairs 9 --cpu 3 --dir /data
    .venv/bin/python benches/compare.py observing --pairs 9 --dir /data [--line memory.poke]
    .venv/bin/python benches/compare.py roundtrip --pairs 9 --cpu 2
    .venv/bin/python benches/compare.py http --pairs 3
    .venv/bin/python benches/compare.py throughput --pairs 9 --budget 4

`--save compare-multichase --host "idle EPYC"` adds the rows to benches/results/compare-multichase.csv, from
which `make generate` makes a table.

A pair is: the peer, latlab, the peer again, which is also the first of the next pair. The peer against itself
(A/A) is the noise. A line holds when the
median of the ratios is within the tolerance; where it is not, but within the A/A range, it is inconclusive.
The peers must be on the PATH. Nothing here is a pass mark: tests must not depend on timing.

For the disk take the CPU that the device interrupts (/proc/interrupts): others wait for it. latlab reads the
very file that fio reads, and nobody writes into that; what is written, latlab writes into a file of its own,
fio into one of the same size in the same directory, written whole with random bytes in the same way.
Where all CPUs are taken (`observing`, `throughput`, `http`), taskset before the command leaves others some.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from peers import machine, network, observing, storage
from peers.lines import SCALES, Kind, Line, Pair, Record, find, placed, verdict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence, tables

LATLAB = Path(sys.executable).with_name("latlab")
KINDS: dict[str, Kind] = machine.KINDS | storage.KINDS | network.KINDS
STOPPED = 124
"""timeout's answer when it ended a program, as it was told to."""


def output(command: list[str]) -> str:
    """Runs a command and returns what it prints; its failure ends the comparison with its own words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not (command[0] == "timeout" and done.returncode == STOPPED):
        sys.exit(f"{shlex.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@contextlib.contextmanager
def laid_out(parent: Path | None) -> Iterator[tuple[str, str]]:
    """A file of random bytes, every one of them written and flushed, and its directory; neither is left."""
    with tempfile.TemporaryDirectory(prefix="latlab-compare-", dir=parent) as directory:
        file = Path(directory, "file")
        lay_out(file)
        yield str(file), directory


def lay_out(file: Path) -> None:
    """Makes the file anew as latlab makes its own: reserved whole, written past the page cache, flushed."""
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_DIRECT, 0o600)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot reserve
            os.posix_fallocate(descriptor, 0, storage.FILE_BYTES)
        with mmap.mmap(-1, 4 * storage.MIB) as aligned:
            for at in range(0, storage.FILE_BYTES, len(aligned)):
                aligned[:] = os.urandom(len(aligned))
                os.pwrite(descriptor, aligned, at)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def peers_figures(lines: list[Line], file: str, directory: str) -> list[float]:
    """Each line's figure; a command of several lines is run once.

    What is overwritten is as new as latlab's file is in each of its runs: on the disk of a virtual machine
    what was laid out through the page cache, or overwritten by the gigabyte, took up to twice as long.
    It is laid out right before, as latlab's is.
    """
    new = False
    printed: dict[tuple[str, ...], str] = {}
    for line in lines:
        if tuple(line.peer) in printed:
            continue
        if storage.writes(line.peer) and not new:
            lay_out(Path(*placed([storage.WRITTEN], file, directory)))
            new = True
        printed[tuple(line.peer)] = output(placed(line.peer, file, directory))
    return [line.read(printed[tuple(line.peer)]) for line in lines]


def own_records(kind: Kind, cpus: str | None, more: list[str], file: str, directory: str) -> list[Record]:
    """Latlab on the same CPUs: one run, or those that the kind names."""
    records: list[Record] = []
    for options in kind.runs or (("--only", kind.probe),):
        command = [str(LATLAB), "measure", *placed(options, file, directory), *more]
        command += ["--json", "--no-report", "--quiet"]
        command += ["--cpu", cpus] if cpus else []
        records += json.loads(output(kind.around(command)))["records"]
    return records


def measured(
    kind: Kind, lines: list[Line], arguments: argparse.Namespace, file: str, directory: str
) -> dict[str, list[Pair]]:
    """The pairs of each line."""
    pairs: dict[str, list[Pair]] = {line.name: [] for line in lines}
    more = ["--profile", arguments.profile]
    more += ["--budget", arguments.budget]
    before = peers_figures(lines, file, directory)
    for number in range(1, arguments.pairs + 1):
        records = own_records(kind, kind.cpus(arguments.cpu), more, file, directory)
        after = peers_figures(lines, file, directory)
        for line, first, second in zip(lines, before, after, strict=True):
            record = find(records, line)
            if record is None:
                print(f"pair {number}: latlab has no {line.name}", file=sys.stderr)
                continue
            try:
                pair = Pair(first, line.own(record), second)
            except ValueError as error:
                print(f"pair {number}: {line.name}: {error}", file=sys.stderr)
                continue
            pairs[line.name].append(pair)
            if arguments.verbose:
                print(f"{line.name}: {pair}", file=sys.stderr)
        # What stands after this pair stands before the next.
        before = after
        print(f"pair {number} of {arguments.pairs}", file=sys.stderr)
    return pairs


def observed(arguments: argparse.Namespace) -> dict[tuple[str, str], list[observing.Three]]:
    """Latlab without, with and again without looking for causes; `--line` chooses probes."""
    probes = [probe for probe in observing.TIMED_ALONE if arguments.line in probe]
    command = [str(LATLAB), "measure", "--only", ",".join(probes), "--profile", arguments.profile]
    command += ["--dir", str(arguments.dir)]
    command += ["--budget", arguments.budget]
    command += ["--json", "--no-report", "--quiet"]

    def run(*, evidence: bool) -> observing.Figures:
        around = os.environ | ({} if evidence else {observing.WITHOUT: "1"})
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=around)
        if done.returncode:
            sys.exit(f"{shlex.join(command)}: {done.stderr.strip() or done.returncode}")
        return observing.figures(json.loads(done.stdout)["records"])

    pairs: dict[tuple[str, str], list[observing.Three]] = {}
    before = run(evidence=False)
    for number in range(1, arguments.pairs + 1):
        own = run(evidence=True)
        after = run(evidence=False)
        for figure, points in own.items():
            three = (before.get(figure, {}), points, after.get(figure, {}))
            pairs.setdefault(figure, []).append(three)
        before = after
        print(f"pair {number} of {arguments.pairs}", file=sys.stderr)
    return pairs


@contextlib.contextmanager
def awake(cpu: int) -> Iterator[None]:
    """Keeps a CPU from idling, with a loop that gives way to everybody (SCHED_IDLE).

    On a machine with nothing else to do a CPU that mostly waits becomes slower to wake, and latlab, which
    does other work between its blocks, meets it less often than a program that does one thing all the time.
    """
    loop = subprocess.Popen(
        ["taskset", "-c", str(cpu), "chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]
    )
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def rows(host: str, kind: Kind, lines: list[Line], pairs: dict[str, list[Pair]]) -> list[dict[str, str]]:
    """What the pairs of each line come to, as the table shows it."""
    found = []
    for line in lines:
        if not pairs[line.name]:
            continue
        unit = line.unit or kind.unit
        came = verdict(pairs[line.name], line.tolerance, more_is_better=line.more_is_better)
        peer, own = (f"{float(f'{value / SCALES[unit]:.4g}'):g} {unit}" for value in (came.peer, came.own))
        found.append(
            {
                "host": host,
                "figure": line.name,
                "peer": peer,
                "latlab": own,
                "latlab_over_peer": f"{came.ratio:.3f} ({came.ratios[0]:.3f}-{came.ratios[1]:.3f})",
                "peer_over_itself": f"{came.same:.3f} ({came.sames[0]:.3f}-{came.sames[1]:.3f})",
                "tolerance": f"{line.tolerance:.0%}",
                "holds": came.answer,
            }
        )
    return found


def main() -> None:
    """Runs the pairs and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*KINDS, "observing"])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--budget", default="20", help="seconds of each run of latlab (default: 20)")
    parser.add_argument("--line", default="", help="only the lines whose name contains this")
    parser.add_argument("--dir", type=Path, default=Path.home() / ".cache", help="where the disk is measured")
    parser.add_argument(
        "--awake", action="store_true", help="keep --cpu from idling, for the peer and latlab alike"
    )
    parser.add_argument("--host", default="", help="the machine and what else it does, for the table")
    parser.add_argument("--save", metavar="NAME", help="add the rows to benches/results/NAME.csv")
    parser.add_argument("--verbose", action="store_true", help="print every pair")
    arguments = parser.parse_args()
    if arguments.kind == "observing":
        print("\n".join(observing.table(observed(arguments))))
        return
    kind = KINDS[arguments.kind]
    for program in kind.needs or (kind.peer,):
        if program != "timeit" and not shutil.which(program):
            sys.exit(f"{program} is not on the PATH: nothing to compare with")
    lines = [line for line in kind.lines(arguments.cpu) if arguments.line in line.name]
    # Only what is compared on a disk needs a file.
    scratch = laid_out(arguments.dir) if kind.runs else contextlib.nullcontext(("", ""))
    waking = awake(arguments.cpu) if arguments.awake else contextlib.nullcontext()
    with waking, scratch as (file, directory):
        pairs = measured(kind, lines, arguments, file, directory)
    found = rows(arguments.host, kind, lines, pairs)
    print(tables.markdown(found))
    print("\nCommands:")
    for line in lines:
        print(f"- {line.name}: `{shlex.join(line.peer)}`")
    if arguments.save and found:
        # Without --dir, which names a place of this machine.
        command = f"benches/compare.py {arguments.kind} --pairs {arguments.pairs} --cpu {arguments.cpu}"
        command += f" --profile {arguments.profile} --budget {arguments.budget}"
        command += f' --line "{arguments.line}"' if arguments.line else ""
        origin = evidence.origin(command + " --awake" * arguments.awake)
        name = f"{arguments.save}.csv"
        evidence.write(name, [*evidence.read(name), *({**row, **origin} for row in found)])


if __name__ == "__main__":
    main()
