"""`latlab measure` for real, with the quickest probe: streams, files, exit codes."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests import calling

from latlab.cli import measure
from latlab.errors import UserError
from latlab.run.run import load
from latlab.run.settings import DISTANCES, make_settings, may_drop_caches

Command = Callable[..., CompletedProcess[str]]
QUICK = ("measure", "--profile", "quick", "--only", "clock.read", "--budget", "2s")


@dataclass
class Measured:
    """What a real run printed, and where it left its files."""

    reported: CompletedProcess[str]
    home: Path
    place: Path


@pytest.fixture(scope="module")
def measure_once(latlab: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    """Measures in an empty folder, with a home of its own; `before` stands before the command."""

    def measured(*arguments: str, before: tuple[str, ...] = (), **more: str) -> Measured:
        home, place = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("place")
        (place / "pathmark").mkdir()
        plain = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
        own = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "LC_ALL": "C.UTF-8"}
        # It waits for nobody else's run.
        own["LATLAB_LOCK_NAME"] = secrets.token_hex(8)
        reported = subprocess.run(
            [*before, latlab, *QUICK, *arguments],
            cwd=place,
            env=plain | own | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert reported.returncode == 0, reported.stderr
        return Measured(reported, home, place)

    return measured


@pytest.fixture(scope="module")
def usual(measure_once: Callable[..., Measured]) -> Measured:
    """With a report, in a folder whose name is nobody's business."""
    return measure_once("--anonymous", "--dir", "pathmark")


@pytest.mark.slow
def test_a_run_is_shown_saved_and_readable(usual: Measured, called: Command) -> None:
    assert "will take: at most" in usual.reported.stderr
    assert "saved" in usual.reported.stderr
    (file,) = usual.home.rglob("*.latlab.jsonl")
    assert load(file).stopped_by == "completed"
    again = called("show", "last", HOME=str(usual.home), XDG_DATA_HOME=str(usual.home / "data"))
    assert again.stdout == usual.reported.stdout


@pytest.mark.slow
def test_a_report_is_written_beside_the_run(usual: Measured) -> None:
    (report,) = usual.home.rglob("*.html")
    assert f"report  ~/{report.relative_to(usual.home)}" in usual.reported.stderr


@pytest.mark.slow
def test_an_anonymous_run_never_names_the_host_or_a_folder(usual: Measured) -> None:
    (file,), (report,) = (list(usual.home.rglob(name)) for name in ("*.latlab.jsonl", "*.html"))
    run = load(file)
    assert run.machine.text("os.host_name") == "host-1"
    assert run.settings.dir == run.machine.text("dir.path")
    assert re.fullmatch(r"path-\d+", run.settings.dir or "")
    assert run.machine.at("limits.uid") is None
    for path in (file, report):
        text = path.read_text(encoding="utf-8")
        assert "pathmark" not in text
        assert str(usual.place) not in text


@pytest.fixture(scope="module")
def quiet(measure_once: Callable[..., Measured]) -> Measured:
    """Under a name that was given, for a terminal that knows ASCII only."""
    return measure_once("--quiet", "--no-report", "--out", "mine.latlab.jsonl", LC_ALL="C")


@pytest.fixture(scope="module")
def confined(measure_once: Callable[..., Measured]) -> Measured:
    """On one CPU where that can be, for a program that reads it; what it says besides is ASCII too."""
    before = ("taskset", "-c", str(min(os.sched_getaffinity(0)))) if shutil.which("taskset") else ()
    return measure_once("--no-report", "--json", before=before, LC_ALL="C")


@pytest.mark.slow
def test_a_quiet_run_says_nothing_and_is_saved_under_the_name_given(quiet: Measured) -> None:
    assert quiet.reported.stderr == ""
    assert quiet.reported.stdout
    assert load(quiet.place / "mine.latlab.jsonl").probes == ("clock.read",)


@pytest.mark.slow
def test_the_c_locale_gets_ascii(quiet: Measured, confined: Measured) -> None:
    assert quiet.reported.stdout.isascii()
    assert "will take: at most" in confined.reported.stderr
    assert confined.reported.stderr.isascii()


@pytest.mark.slow
def test_json_is_one_object_and_nothing_else(confined: Measured) -> None:
    whole = json.loads(confined.reported.stdout)
    assert whole["schema"].startswith("latlab.run/2.")
    assert {record["probe"] for record in whole["records"]} == {"clock.read"}
    assert whole["footer"]["stopped_by"] == "completed"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset")
def test_one_allowed_cpu_is_enough_and_is_said(confined: Measured) -> None:
    (file,) = confined.home.rglob("*.latlab.jsonl")
    doctor = json.loads(file.read_bytes().splitlines()[0])["doctor"]
    assert calling.warning(confined.reported, doctor, "one-cpu") == "only one CPU may be used"


def test_few_probes_have_the_whole_time_until_figures_agree(called: Command) -> None:
    few = " ".join(called("measure", "--only", "clock.read", "--dry-run").stdout.split())
    assert "will take: at most 1 min 30 s, less where figures agree sooner" in few
    once = " ".join(called("measure", "--only", "kernel.noise", "--dry-run").stdout.split())
    assert "will take: about 6.5 s" in once


def test_a_dry_run_says_what_it_would_do_and_does_nothing(called: Command, own_home: Path) -> None:
    reported = called("measure", "--profile", "quick", "--dry-run")
    assert reported.returncode == 0
    assert "memory.load.dependent" in reported.stdout
    assert "will take: about" in reported.stdout
    assert reported.stderr == ""
    assert not list(own_home.rglob("*.jsonl"))


def test_dropping_caches_is_refused_to_all_but_root_and_said_to_root(
    called: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/sys/vm/drop_caches").exists():
        pytest.skip("needs Linux")
    reported = called("measure", "--only", "clock.read", "--drop-caches", "--dry-run")
    if os.geteuid() == 0 and os.access("/proc/sys/vm/drop_caches", os.W_OK):
        assert reported.returncode == 0
        assert reported.stderr.count("\n") == 1
    else:
        assert reported.returncode == 2
    assert "every program on this machine reads from the disk again" in reported.stderr
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="only root may empty"):
        may_drop_caches(True)


def test_a_file_is_asked_for_by_its_absolute_path(called: Command, place: Path) -> None:
    (place / "mine").write_bytes(bytes(4096))
    reported = called("measure", "--only", "clock.read", "--file", "mine", "--dry-run")
    assert reported.returncode == 0
    assert make_settings(file=place / "mine").file == str(place / "mine")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--delay", "0"], "--delay: 0 ms cannot be emulated"),
        (["--delay", "nan"], "--delay: nan ms cannot be emulated"),
        (["--delay", "20", "--distance", "same-city"], "--delay: a distance is also a delay"),
        (["--rate", "-1"], "--rate: -1 Mbit/s cannot be emulated"),
        (["--distance", "the-moon"], "'the-moon' is not one of"),
        (["--delay", "20 miles"], "'20 miles' is not a valid float"),
    ],
)
def test_a_path_that_cannot_be_emulated_is_refused_in_one_line(
    called: Command, asked: list[str], said: str
) -> None:
    reported = called("measure", "--dry-run", *asked)
    assert reported.returncode == 2
    assert said in reported.stderr
    assert "Traceback" not in reported.stderr


def test_a_distance_is_in_the_settings_of_the_run() -> None:
    assert make_settings(delay_ms=20, rate_mbit=200.0).delay_ms == 20
    assert make_settings(distance="london-california").distance == "london-california"
    assert measure.DISTANCES == DISTANCES
    with pytest.raises(UserError, match="there is no distance 'the-moon'"):
        make_settings(distance="the-moon")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--url", "example.org"], "--url: 'example.org' does not start with http:// or https://"),
        (["--url", "ftp://example.org/"], "does not start with http:// or https://"),
        (["--url", "http://"], "has no host"),
        (["--url", "http://example.org:99999/"], "is not a URL"),
        (["--url", "http://me:word@example.org/"], "the URL names a user"),
        (["--url", "http://example.org/a b"], "a character that a URL cannot contain"),
        (["--secret-file", "x"], "--secret-file: needs the server's --url"),
        (["--url", "http://example.org/", "--secret-file", "/nonexistent"], "--secret-file: '/nonexistent'"),
        (["--requests", "0"], "--requests: 0 requests per second cannot be sent"),
    ],
)
def test_a_server_that_cannot_be_asked_is_refused_in_one_line(
    called: Command, asked: list[str], said: str
) -> None:
    reported = called("measure", "--dry-run", *asked)
    assert reported.returncode == 2
    assert said in reported.stderr
    assert "Traceback" not in reported.stderr


def test_what_leaves_the_machine_is_said_beforehand(called: Command) -> None:
    reported = called("measure", "--dry-run", "--only", "network.http", "--url", "https://example.org/")
    assert (reported.returncode, reported.stderr.count("\n")) == (0, 1)
    assert "sends requests to example.org, port 443; nothing else leaves this machine" in reported.stderr
    here = called("measure", "--dry-run", "--only", "network.http", "--url", "http://[::1]:8600/")
    assert "sends requests to ::1, port 8600, on this machine" in here.stderr


def test_a_dry_run_is_json_for_a_program(called: Command) -> None:
    reported = called("measure", "--dry-run", "--json", "--skip", "memory.*")
    ids = [probe["id"] for probe in json.loads(reported.stdout)["probes"]]
    assert ids[0] == "clock.read"
    assert not [name for name in ids if name.startswith("memory.")]


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.3, 0.8], ids=["early", "later"])
def test_ctrl_c_gives_a_valid_part_and_code_130(latlab: str, own_home: Path, after_s: float) -> None:
    process = subprocess.Popen(
        [latlab, "measure", "--profile", "quick", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(own_home)},
    )
    assert process.stderr is not None
    process.stderr.readline()  # the header: it measures now
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["footer"]["stopped_by"] == "interrupted"
    assert "interrupted" in err
    assert "saved" in err


def test_a_reader_that_goes_away_is_no_fault(latlab: str, file: str) -> None:
    with subprocess.Popen(
        [latlab, "show", file, "-v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
