"""Surveys by ssh: the commands that are printed, and what becomes of hosts when they are run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.calling import called
from tests.fleet.files import run_of

HOSTS = [f"node{number}" for number in range(6)]
#: Stands for latlab on a host: the file of that host, under the name that is asked for.
LATLAB = """#!/bin/sh
[ "$1" = measure ] || exit 2
echo "$@" >> "$FILES/$HOST.asked"
while [ "$1" != --out ]; do shift; done
cp "$FILES/$HOST.jsonl" "$2"
"""
SSH = """#!/bin/sh
[ "$1" = -o ] && shift 2
case $1 in
    refuses) echo 'Host key verification failed.' >&2; exit 255;;
    hangs) exec sleep 600;;
esac
HOST=$1 exec sh -c "$2"
"""


class Site:
    """Hosts that are reached by an ssh of this test's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name, text in (("latlab", LATLAB), ("ssh", SSH)):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        for number, name in enumerate(HOSTS):
            run = run_of(name, number, 8.0 if name == "node5" else 1.0)
            (self.tools / f"{name}.jsonl").write_text(run)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.environment = os.environ | {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "FILES": str(self.tools),
            "TMPDIR": str(self.temporary),
        }

    def survey(self, hosts: list[str], *options: str) -> CompletedProcess[str]:
        file = self.folder / "hosts"
        file.write_text("# a comment\n" + "\n".join(hosts) + "\n")
        return called(["fleet", "survey", "--hosts", str(file), *options], self.folder, self.environment)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr("tempfile.tempdir", None)
    return Site(tmp_path)


def test_printed_commands_make_the_files_and_find_the_slow_host(site: Site) -> None:
    done = site.survey(HOSTS, "--dir", "/a folder")
    assert done.returncode == 0
    assert not (site.folder / "runs").exists()
    *commands, last = done.stdout.splitlines()
    subprocess.run(
        ["sh", "-c", "\n".join(commands)], cwd=site.folder, env=site.environment, check=True, timeout=60
    )
    assert len(list((site.folder / "runs").iterdir())) == len(HOSTS)
    merged = called([*last.split()[1:], "--json"], site.folder, site.environment)
    assert json.loads(merged.stdout)["hosts"][0]["verdict"] == "slow"
    asked = (site.tools / "node0.asked").read_text()
    assert "--profile quick " in asked
    assert "--dir /a folder " in asked


def test_run_here_they_name_the_slow_host_and_say_which_did_not_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latlab.fleet.ssh.EXTRA_S", 2.0)
    (site.tools / "node0.jsonl").write_text("nonsense\n")
    (site.tools / "node1.jsonl").unlink()
    (site.tools / "node6.jsonl").write_text(run_of("node6", 6))
    hosts = [*HOSTS, "node6", "refuses", "hangs"]
    done = site.survey(hosts, "--run", "--json", "--budget", "1")
    assert done.returncode == 1
    found: dict[str, Any] = {own["name"]: own for own in json.loads(done.stdout)["hosts"]}
    assert found["node5"]["verdict"] == "slow"
    assert [found[name]["verdict"] for name in ("node2", "node3", "node4", "node6")] == ["ok"] * 4
    reasons = {name: own["reason"] for name, own in found.items() if own["verdict"] == "failed"}
    assert reasons["refuses"] == "Host key verification failed."
    assert reasons["hangs"] == "no answer within 3 s"
    assert reasons["node0"].startswith("what it sent is no run file: ")
    assert "node1.jsonl" in reasons["node1"]
    assert not list(site.temporary.iterdir())


def test_two_hosts_of_one_name_stay_two_in_their_files(site: Site) -> None:
    (site.tools / "node1.jsonl").write_text(run_of("node0", 1))
    (site.folder / "kept").mkdir()
    site.survey(HOSTS, "--run", "--out", str(site.folder / "kept"))
    merged = called(["fleet", "merge", str(site.folder / "kept"), "--json"], site.folder, site.environment)
    assert {own["name"]: own["runs"] for own in json.loads(merged.stdout)["hosts"]} == dict.fromkeys(HOSTS, 1)


def test_run_files_are_kept_where_they_are_wanted_and_none_is_overwritten(site: Site) -> None:
    (site.folder / "kept").mkdir()
    (site.folder / "kept/node0.latlab.jsonl").write_text("mine")
    done = site.survey(HOSTS, "--run", "--json", "--out", str(site.folder / "kept"))
    assert "exists already" in json.loads(done.stdout)["hosts"][-1]["reason"]
    assert (site.folder / "kept/node0.latlab.jsonl").read_text() == "mine"
    assert len(list((site.folder / "kept").iterdir())) == len(HOSTS)


@pytest.mark.parametrize(
    ("hosts", "options", "reason"),
    [
        (["-oProxyCommand=evil"], (), "line 2: '-oProxyCommand=evil' is not a host"),
        (["a b"], (), "is not a host"),
        (["node; reboot"], (), "is not a host"),
        ([], (), "names no host"),
        (["node1"], ("--scheduler", "127.0.0.1:1"), "by --scheduler ADDRESS or by --hosts FILE"),
        (["node1"], ("--budget", "soon"), "--budget: "),
        (["node1"], ("--run", "--out", "gone"), "there is no directory 'gone'"),
    ],
)
def test_a_mistake_is_a_line(site: Site, hosts: list[str], options: tuple[str, ...], reason: str) -> None:
    done = site.survey(hosts, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
