"""Surveys of run files: who is named, by what, and what is said to people."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.calling import called
from tests.fleet.files import Change, run_of
from tests.pages import ROOT

from latlab.fleet import merge
from latlab.report import fleet_page

PAGE = ROOT / "docs/how-to/find-a-slow-host.md"
RAM = ("memory.load.dependent", "16 KiB, 4k pages, page-local")


@pytest.fixture
def printed(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """`printed("merge", folder)` is the exit code of the command, and what it says."""

    def run(*arguments: object) -> tuple[int, str]:
        done = called(["fleet", *map(str, arguments)], tmp_path, os.environ)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """`written("node1", seed=1, slow=2.0, change=...)` writes the run file of a host, and returns it."""

    def write(name: str, seed: int, slow: float = 1.0, change: Change = lambda header: None) -> Path:
        file = tmp_path / f"{seed}.latlab.jsonl"
        file.write_text(run_of(name, seed, slow, change))
        return file

    return write


def no_huge_pages(header: dict[str, Any]) -> None:
    header["machine"]["memory"]["thp"]["enabled"] = "never"


def other_cpu(header: dict[str, Any]) -> None:
    header["machine"]["cpu"]["model_name"] = "Another CPU"


def as_kept(header: dict[str, Any]) -> None:
    """Changes nothing."""


def test_the_slow_host_is_named_with_its_figure_and_what_distinguishes_it(
    written: Callable[..., Path], tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    for seed in range(11):
        written(f"node{seed}", seed)
    written("node11", 11, slow=2.0, change=no_huge_pages)
    code, said = printed("merge", tmp_path)
    assert code == 1
    assert said.startswith("node11 is slow: L1 32 KiB:")
    assert "transparent huge pages: never, peers madvise" in said
    found = json.loads(printed("merge", tmp_path, "--json")[1])
    assert found["named"] == ["node11"]
    assert found["false_naming"] == 0.001
    first, *others = found["hosts"]
    assert {own["verdict"] for own in others} == {"ok"}
    reason = next(own for own in first["because"] if (own["probe"], own["point"]) == RAM)
    assert reason["low"] < reason["ratio"] < reason["high"]
    assert reason["ratio"] == pytest.approx(2.0, rel=0.1)


def test_a_page_is_written_beside(
    written: Callable[..., Path], tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    for seed in range(6):
        written(f"node{seed}", seed, slow=3.0 if seed == 2 else 1.0)
    code, said = printed("merge", tmp_path, "--html", tmp_path / "fleet.html")
    assert code == 1
    assert said.startswith("node2 is slow: ")
    page = (tmp_path / "fleet.html").read_text()
    assert "Which host is slow?" in page
    assert page.index("node2") < page.index("node0")


BUSY = (0.02, 0.05, 0.01, 0.03, 1.02, 0.04)


def test_a_host_beside_busy_programs_is_named_by_figures_that_six_hosts_could_not_show_by_themselves(
    tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    def written(busy: tuple[float, ...]) -> None:
        for seed, own in enumerate(busy):
            text = run_of(f"node{seed}", seed, 1.5 if seed == 4 else 1.0, short=True, met={"other_cpus": own})
            (tmp_path / f"{seed}.latlab.jsonl").write_text(text)

    written((0.03,) * 6)
    assert printed("merge", tmp_path)[0] == 0
    written(BUSY)
    code, said = printed("merge", tmp_path, "-v")
    assert code == 1
    assert said.startswith("node4 is slow: ")
    assert re.search(r"RAM: \d+ ns, peers \d+ ns, 1\.[45]\d times slower", said)
    cause = "CPUs that other programs kept busy, and with them caches and memory: 51 %, peers 1.5 %: stop"
    assert cause in " ".join(said.split())
    assert said.count(": slow\n") == 1


@pytest.mark.parametrize(
    ("busy", "slow"),
    [
        ((0.1, 0.3, 0.2, 0.1, 0.38, 0.2), 1.5),
        ((1.4, 1.9, 1.2, 1.6, 1.9, 0.3), 1.5),
        (BUSY, 1.0),
        (BUSY, 1.15),
    ],
)
def test_nobody_is_named_where_peers_are_beside_busy_programs_too_or_no_figure_is_slower(
    tmp_path: Path, busy: tuple[float, ...], slow: float
) -> None:
    files = [tmp_path / f"{seed}.latlab.jsonl" for seed in range(len(busy))]
    for seed, (file, own) in enumerate(zip(files, busy, strict=True)):
        text = run_of(f"node{seed}", seed, slow if seed == 4 else 1.0, short=True, met={"other_cpus": own})
        file.write_text(text)
    assert merge(files).named == ()


def test_hosts_that_are_alike_are_not_named(written: Callable[..., Path]) -> None:
    survey = merge([written(f"node{seed}", seed) for seed in range(12)])
    assert survey.named == ()
    assert survey.visible is not None
    assert survey.visible >= 1.25
    assert [own.kind for own in survey.standings] == ["ok"] * 12


def test_two_kinds_of_hardware_are_two_classes_and_name_nobody(written: Callable[..., Path]) -> None:
    files = [written(f"old{seed}", seed, slow=3.0, change=other_cpu) for seed in range(6)]
    files += [written(f"new{seed}", 100 + seed) for seed in range(7)]
    survey = merge(files)
    assert survey.classes == (7, 6)
    assert survey.named == ()


def test_the_page_tells_classes_apart_and_counts_nodes_as_people_do(written: Callable[..., Path]) -> None:
    files = [written(f"node{seed}", seed, change=other_cpu if seed > 11 else as_kept) for seed in range(17)]
    section, drawn = fleet_page.document(merge(files)).sections
    assert [(own.name, len(own.table.rows)) for own in drawn.figures] == [("class_1", 12), ("class_2", 5)]
    hosts, classes = (listing.table for listing in section.listings)
    assert [row[0] for row in hosts.rows] == [f"node{seed}" for seed in range(17)]
    assert {row[2] for row in hosts.rows} == {"like its peers"}
    assert [head.title for head in classes.columns] == ["class", "hosts", "CPU"]
    assert classes.rows == ((1, 12, "AMD EPYC"), (2, 5, "Another CPU"))
    alone = fleet_page.document(merge(files[:4]))
    assert "nothing to compare: no class has 5 hosts" in alone.facts
    assert len(alone.sections[0].listings) == 1


def test_four_hosts_have_no_peers_and_nothing_is_said_of_them(
    written: Callable[..., Path], tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    for seed in range(4):
        written(f"node{seed}", seed, slow=1.0 + seed)
    code, said = printed("merge", tmp_path)
    assert code == 0
    assert said.startswith("Nothing to compare: no class has enough hosts.")
    assert "Without peers: node0, node1, node2 and node3" in said


def test_a_figure_that_one_host_lacks_is_noted(written: Callable[..., Path]) -> None:
    files = [written(f"node{seed}", seed) for seed in range(6)]
    header, *lines, footer = files[4].read_text().splitlines()
    figures = json.loads(footer)
    lost = next(own for own in figures["figures"] if own["probe"] == "kernel.syscall" and own.get("summary"))
    del lost["summary"]
    files[4].write_text("\n".join([header, *lines, json.dumps(figures)]) + "\n")
    (note,) = merge(files).notes
    assert note == "No figure for system call (getppid): node4; see the run file."


def test_several_runs_of_a_host_are_its_repeats(written: Callable[..., Path]) -> None:
    files = [written(f"node{seed % 6}", seed) for seed in range(18)]
    # One run of three is slow: the host's median is not.
    files.append(written("node0", 50, slow=2.0))
    survey = merge(files)
    assert [own.host.runs for own in survey.standings if own.host.name == "node0"] == [4]
    assert survey.named == ()


def test_hosts_without_a_name_are_distinguished_by_their_files(written: Callable[..., Path]) -> None:
    def anonymous(header: dict[str, Any]) -> None:
        header["machine"]["os"]["host_name"] = None

    survey = merge([written("", seed, change=anonymous) for seed in range(6)])
    assert sorted(own.host.name for own in survey.standings) == ["0", "1", "2", "3", "4", "5"]


def test_what_is_no_run_is_refused_with_its_name(
    tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    (tmp_path / "a.latlab.jsonl").write_text("{}\n")
    code, said = printed("merge", tmp_path)
    assert code == 2
    assert "a.latlab.jsonl" in said
    empty = tmp_path / "empty"
    empty.mkdir()
    code, said = printed("merge", empty)
    assert code == 2
    assert "no run file in" in said


def test_a_ratio_cannot_overflow(written: Callable[..., Path]) -> None:
    files = [written(f"node{seed}", seed) for seed in range(6)]
    files.append(written("node6", 6, slow=1e200))
    survey = merge(files)
    assert [own.host.name for own in survey.named] == ["node6"]
    assert all(math.isfinite(own.high) for own in survey.named[0].because)


STUB = """#!/bin/sh
# Stands for latlab on a host: the file of that host, under the name that is asked for.
[ "$1" = measure ] || exit 2
while [ "$1" != --out ]; do shift; done
cp "$FILES/$HOST.jsonl" "$2"
"""
SSH = """#!/bin/sh
HOST=$1 exec sh -c "$2"
"""


def test_the_how_to_finds_the_slow_host_with_its_commands_as_they_stand(
    written: Callable[..., Path], tmp_path: Path, printed: Callable[..., tuple[int, str]]
) -> None:
    blocks = re.findall(r"^   ```sh\n(.*?)^   ```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    gather, ask = map(textwrap.dedent, blocks)
    tools, work = tmp_path / "tools", tmp_path / "work"
    tools.mkdir()
    work.mkdir()
    for name, text in (("latlab", STUB), ("ssh", SSH)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    hosts = [f"node{seed}" for seed in range(6)]
    for seed, name in enumerate(hosts):
        written(name, seed, slow=4.0 if name == "node5" else 1.0).rename(tools / f"{name}.jsonl")
    (work / "hosts").write_text("\n".join(hosts) + "\n")
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "FILES": str(tools), "TMPDIR": str(tmp_path)}
    subprocess.run(["sh", "-ec", gather], cwd=work, env=environment, check=True, timeout=60)
    assert len(list((work / "runs").iterdir())) == 6
    command = shlex.split(ask)
    assert command[:2] == ["latlab", "fleet"]
    code, said = printed(*(str(work / word) if word == "runs/" else word for word in command[2:]))
    assert code == 1
    assert said.startswith("node5 is slow: ")
