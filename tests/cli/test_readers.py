"""The commands that read a run: show, report, chart, export; and those that need none."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from latlab.run.run import load

Command = Callable[..., CompletedProcess[str]]


def test_show_prints_the_ladder(called: Command, file: str) -> None:
    result = called("show", file)
    assert result.returncode == 0
    assert "L3 10–14 of 32 MiB" in result.stdout
    assert result.stderr == ""


def test_show_is_as_wide_as_asked(called: Command, file: str) -> None:
    assert "10–14 of 32 MiB" in called("show", file, "-v", COLUMNS="140").stdout
    assert max(map(len, called("show", file, "-v", COLUMNS="140").stdout.splitlines())) > 100


def test_show_v_tells_samples_paths_intervals_checks_and_findings(called: Command, file: str) -> None:
    result = called("show", file, "-v")
    for words in (
        "30 windows of 4,096 accesses",
        "95 % interval",
        "check held: single cycle",
        "poke 1 MB, read",
    ):
        assert words in result.stdout
    assert "what distorted figures" in result.stdout


def test_a_hostile_run_file_does_not_write_to_the_terminal(called: Command, file: str, place: Path) -> None:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    header = json.loads(lines[0])
    header["machine"]["cpu"]["model_name"] = "Evil\x1b]0;owned\x07\u202ePU"
    header["doctor"][0]["title"] = "\x1b[2Jnothing to see"
    lines[0] = json.dumps(header)
    (place / "hostile.latlab.jsonl").write_text("\n".join(lines), encoding="utf-8")
    result = called("show", "hostile.latlab.jsonl", "-v")
    assert result.returncode == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(result.stdout)


@pytest.fixture
def part(rounds: str, place: Path) -> str:
    """A run that was cut short, in the folder of the command."""
    lines = Path(rounds).read_text(encoding="utf-8").splitlines()
    (place / "part.latlab.jsonl").write_text("\n".join(lines[:40]), encoding="utf-8")
    return "part.latlab.jsonl"


def test_a_run_that_was_cut_short_says_so(called: Command, part: str) -> None:
    result = called("show", part)
    assert result.returncode == 0
    assert "cut short" in result.stdout


def test_a_run_of_an_older_latlab_is_shown_as_measured_once(called: Command, root: Path) -> None:
    result = called("show", str(root / "tests/data/run-v1.latlab.jsonl"))
    assert result.returncode == 0, result.stderr
    assert "profile standard · one round" in result.stdout
    assert "measured once" in result.stdout
    assert "Range:" not in result.stdout, "one round says nothing of others"


def test_charts_are_listed_without_a_name(called: Command, file: str) -> None:
    result = called("chart", file)
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines() if line[0] != " "][:2] == [
        "hierarchy",
        "ladder",
    ]


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_is_written_under_the_name_given(
    called: Command, part: str, place: Path, ending: str
) -> None:
    result = called("report", part, "-o", f"report.{ending}")
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert (place / f"report.{ending}").stat().st_size > 1000


def test_an_export_as_csv_has_one_row_a_figure(called: Command, rounds: str, place: Path) -> None:
    assert called("export", rounds, "-o", "run.csv").returncode == 0
    with (place / "run.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == len(load(rounds).records)
    assert {"probe", "p50", "unit"} <= set(rows[0])


def test_an_export_as_json_is_what_measure_prints(called: Command, file: str, place: Path) -> None:
    assert called("export", file, "-o", "run.json").returncode == 0
    assert json.loads((place / "run.json").read_text(encoding="utf-8"))["records"]
    assert called("show", "run.json").returncode == 0


def test_an_export_as_npz_has_the_raw_values(called: Command, file: str, place: Path) -> None:
    assert called("export", file, "-o", "run.npz").returncode == 0
    with np.load(place / "run.npz", allow_pickle=False) as arrays:
        assert "index" in arrays.files


def test_an_anonymous_export_does_not_name_the_host(called: Command, file: str, place: Path) -> None:
    assert "synthetic-host" in Path(file).read_text(encoding="utf-8")
    assert called("export", file, "--anonymous", "-o", "run.json").returncode == 0
    assert "synthetic-host" not in (place / "run.json").read_text(encoding="utf-8")
    assert called("export", file, "--anonymous", "-o", "run.latlab.jsonl").returncode == 0
    assert "synthetic-host" not in (place / "run.latlab.jsonl").read_text(encoding="utf-8")
    assert called("show", "run.latlab.jsonl").stdout == called("show", "run.json").stdout


def test_the_list_of_probes_has_the_fields_that_programs_rely_on(called: Command) -> None:
    probes = json.loads(called("list", "--json").stdout)
    assert [probe["id"] for probe in probes][:2] == ["clock.read", "memory.load.dependent"]
    assert all({"id", "tier", "title", "needs", "touches"} <= set(probe) for probe in probes)
    shown = called("list").stdout
    assert all(probe["id"] in shown for probe in probes)


@pytest.mark.slow
def test_the_doctor_works_without_a_run(called: Command) -> None:
    result = called("doctor", "--no-listen")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("latlab ")
    quick = json.loads(called("doctor", "--no-listen", "--json").stdout)
    findings = json.loads(called("doctor", "--json").stdout)
    assert all({"id", "severity", "title", "effect"} <= set(finding) for finding in findings)
    more = {finding["id"] for finding in findings} - {finding["id"] for finding in quick}
    assert "disturbed-cpu" in more, "no CPU is left alone for two seconds"
    assert more <= {"disturbed-cpu", "quietest-cpu", "standing-causes", "load"}
