"""`latlab runs`: what is listed, and that a label or a removal touches nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import click
import pytest
from tests.some import some

from latlab.run import store as stores
from latlab.run.labels import labels

Command = Callable[..., CompletedProcess[str]]


@pytest.fixture
def kept(own_home: Path, rounds: str) -> Path:
    """The folder of three kept runs: two of one machine, the newest of another one, and small."""
    folder = own_home / "data/latlab/runs"
    folder.mkdir(parents=True)
    first, rest = Path(rounds).read_text(encoding="utf-8").split("\n", 1)
    for number in range(3):
        header = json.loads(first)
        header |= {"id": f"run-{number}", "started": f"2026-11-{20 + number}T10:00:00+00:00"}
        if number == 2:
            header["machine"]["cpu"]["model_name"] = "Other One"
            header["settings"]["only"] = ["memory.*"]
        (folder / f"run-{number}.latlab.jsonl").write_text(f"{json.dumps(header)}\n{rest}", encoding="utf-8")
    return folder


def ids(reported: CompletedProcess[str]) -> list[str]:
    assert reported.returncode == 0, reported.stderr
    return [row["id"] for row in json.loads(reported.stdout)]


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_runs_are_listed_with_the_newest_last(called: Command, kept: Path) -> None:
    reported = called("runs")
    assert reported.returncode == 0
    head, *lines = reported.stdout.splitlines()
    assert head.split() == ["run", "date", "profile", "probes", "size", "label", "machine"]
    assert [line.split()[0] for line in some(lines)] == ["run-0", "run-1", "run-2"]
    assert "2026-11-22 10:00" in lines[2]
    assert "memory.*" in lines[2]
    assert "Other One" in lines[2]
    assert " all " in lines[0]
    assert len(files(kept)) == 3


def test_filters_keep_runs_of_a_machine_a_label_and_a_time(called: Command, kept: Path) -> None:
    called("runs", "label", "run-1", "before the update")
    assert ids(called("runs", "--json")) == ["run-0", "run-1", "run-2"]
    assert ids(called("runs", "--json", "--machine", "other one")) == ["run-2"]
    assert ids(called("runs", "--json", "--label", "BEFORE")) == ["run-1"]
    assert ids(called("runs", "--json", "--since", "2026-11-21")) == ["run-1", "run-2"]
    assert ids(called("runs", "--json", "--since", "2027-01-01")) == []
    reported = called("runs", "--since", "yesterday")
    assert (reported.returncode, reported.stderr) == (
        2,
        "latlab: --since: 'yesterday' is not a date such as 2026-11-01\n",
    )


def test_labels_that_are_given_at_once_are_all_kept(kept: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from latlab.run.store import Store\n"
        "from latlab.run.labels import keep_labels\n"
        "store, name = Store(Path(sys.argv[1])), sys.argv[2]; print(flush=True); sys.stdin.readline()\n"
        "for number in range(50): keep_labels(store, {f'{name}-{number}': 'x'})"
    )
    words = [sys.executable, "-c", program, str(kept)]
    both = [
        subprocess.Popen([*words, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in ("a", "b")
    ]
    for each in both:
        assert each.stdout is not None
        each.stdout.readline()
    for each in both:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()
    for each in both:
        each.communicate()
        assert each.returncode == 0
    assert len(labels(stores.Store(kept))) == 100


def test_a_label_is_kept_beside_the_runs_and_taken_away_again(called: Command, kept: Path) -> None:
    before = files(kept)
    assert called("runs", "label", "run-0", " old ").returncode == 0
    assert called("runs", "label", "last", "new").returncode == 0
    after = files(kept)
    assert json.loads(after.pop("labels.json")) == {"run-0": "old", "run-2": "new"}
    assert after == before
    assert called("runs", "label", "run-0", "").returncode == 0
    assert json.loads((kept / "labels.json").read_bytes()) == {"run-2": "new"}


@pytest.mark.parametrize("text", ["a,b", "@a", "a=b", "x" * 61, "a\nb", "\x1b[31m"])
def test_a_label_that_could_not_be_named_again_is_refused(called: Command, kept: Path, text: str) -> None:
    reported = called("runs", "label", "last", text)
    assert reported.returncode == 2
    assert reported.stderr.count("\n") == 1
    assert not (kept / "labels.json").exists()


def test_a_side_of_a_comparison_is_all_runs_with_a_label(called: Command, kept: Path) -> None:
    for run in ("run-0", "run-1"):
        called("runs", "label", run, "before")
    sides = json.loads(called("compare", "@before", "last", "--json").stdout)["sides"]
    assert [side["runs"] for side in sides] == [["run-0", "run-1"], ["run-2"]]
    reported = called("compare", "@nothing", "last")
    assert reported.returncode == 2
    assert "no run in '@nothing'" in reported.stderr


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"run-0": 1}', b"\xff"])
def test_damaged_labels_are_said_in_one_line_and_left_as_they_are(
    called: Command, kept: Path, damage: bytes
) -> None:
    (kept / "labels.json").write_bytes(damage)
    before = files(kept)
    for arguments in (
        ["label", "last", "new"],
        ["rm", "last", "--yes"],
        ["--label", "new"],
    ):
        reported = called("runs", *arguments)
        assert reported.returncode == 2
        assert reported.stderr.splitlines()[-1].endswith("labels.json is damaged: repair it, or move it away")
    reported = called("runs", "--json")
    assert len(ids(reported)) == 3
    assert reported.stderr.count("\n") == 1
    assert files(kept) == before


def test_a_labels_file_that_cannot_be_written_keeps_what_it_held(called: Command, kept: Path) -> None:
    called("runs", "label", "run-0", "old")
    before = files(kept)
    with mock.patch("pathlib.Path.replace", side_effect=OSError(28, "No space left on device")):
        reported = called("runs", "label", "run-1", "new")
    assert reported.returncode == 2
    assert reported.stderr.endswith("labels.json: No space left on device\n")
    assert files(kept) == before


def test_runs_are_removed_with_their_labels_after_they_were_named(called: Command, kept: Path) -> None:
    for run in ("run-0", "run-1"):
        called("runs", "label", run, "old")
    reported = called("runs", "rm", "run-0", "last", "run-2", "--yes")
    assert reported.returncode == 0
    assert reported.stderr.splitlines() == [
        f"removing {kept}/run-0.latlab.jsonl",
        f"removing {kept}/run-2.latlab.jsonl",
    ]
    assert sorted(files(kept)) == ["labels.json", "run-1.latlab.jsonl"]
    assert json.loads((kept / "labels.json").read_bytes()) == {"run-1": "old"}


def test_nothing_is_removed_unasked(called: Command, kept: Path) -> None:
    reported = called("runs", "rm", "last")
    assert reported.returncode == 2
    assert reported.stderr.splitlines() == [
        f"would remove {kept}/run-2.latlab.jsonl",
        "latlab: nothing was removed: add --yes, or run it on a terminal to be asked",
    ]
    assert len(files(kept)) == 3


@pytest.mark.parametrize(("answer", "left"), [(True, 2), (False, 3)])
def test_a_terminal_is_asked(called: Command, kept: Path, answer: bool, left: int) -> None:
    with (
        mock.patch("latlab.cli.runs.sys", stdin=mock.Mock(), stderr=mock.Mock()),
        mock.patch.object(click, "confirm", return_value=answer) as asked,
    ):
        reported = called("runs", "rm", "last")
    assert reported.returncode == (0 if answer else 130)
    assert asked.call_args.args == ("Remove this run?",)
    assert len(files(kept)) == left


def test_a_file_outside_of_the_folder_of_runs_is_refused(
    called: Command, kept: Path, place: Path, rounds: str
) -> None:
    outside = place / "own.latlab.jsonl"
    outside.write_bytes(Path(rounds).read_bytes())
    (kept / "notes.jsonl").write_text("{}\n", encoding="utf-8")
    for name in ("own.latlab.jsonl", str(outside), str(kept / "notes.jsonl"), "missing.latlab.jsonl"):
        reported = called("runs", "rm", "run-0", name, "--yes")
        assert reported.returncode == 2
        assert "is not among the kept runs" in reported.stderr
    assert outside.exists()
    assert len(files(kept)) == 4
    # By its path a kept one may be named as well; of a link to a file elsewhere only the link goes.
    (kept / "link.latlab.jsonl").symlink_to(outside)
    assert called("runs", "rm", str(kept / "link.latlab.jsonl"), "--yes").returncode == 0
    assert outside.exists()
    assert len(files(kept)) == 4


def test_a_list_reads_no_more_of_a_run_than_its_first_line(called: Command, kept: Path) -> None:
    read: list[Path] = []
    first_line = stores.first_line

    def counted(path: Path) -> bytes:
        read.append(path)
        return first_line(path)

    with (
        mock.patch.object(stores, "first_line", counted),
        mock.patch("latlab.run.reader.read", side_effect=AssertionError),
    ):
        assert len(ids(called("runs", "--json"))) == 3
    # Once to find it, and once for what is shown.
    assert len(read) == 6


def test_where_there_is_no_run_that_is_said(called: Command) -> None:
    assert called("runs").stdout == "No kept run.\n"
    assert ids(called("runs", "--json")) == []
