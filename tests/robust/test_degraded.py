"""Little memory, one CPU, no home, no huge pages, closed streams: it works, and says what is missing."""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests import calling
from tests.robust.conftest import BRIEF
from tests.some import some

from latlab import __main__
from latlab.run.store import default_folder

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="takes away what Linux gives"),
]

MEMORY = ("measure", "--profile", "quick", "--no-report", "--budget", "60", "--only")
_PR_SET_THP_DISABLE = 41


def test_one_cpu_is_reported_and_what_needs_more_is_left_out(place: Place) -> None:
    one = {min(os.sched_getaffinity(0))}
    words = (*BRIEF, "--profile", "quick", "--only", "memory.bandwidth", "--budget", "3")
    result = place.run(*words, preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert result.returncode == 0, result.stderr
    assert "one CPU" in calling.warning(result, place.lines()[0]["doctor"], "one-cpu")
    assert "1 CPU" in result.stderr
    reasons = [(figure.get("error") or {}).get("text", "") for figure in place.figures()]
    assert any("one CPU is allowed" in reason for reason in reasons), reasons


@pytest.mark.parametrize("probe", ["memory.load.dependent", "memory.bandwidth"])
@pytest.mark.parametrize("kib", [600_000, 300_000])
def test_a_limit_of_address_space_is_kept_and_named(place: Place, kib: int, probe: str) -> None:
    limit = (kib * 1024, kib * 1024)

    def is_named(lines: list[dict[str, Any]]) -> bool:
        flags = [flag for line in lines for flag in line.get("flags", [])]
        return any("a quarter of the memory that may be used" in flag for flag in flags)

    result = place.run_until(
        is_named, *MEMORY, probe, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit)
    )
    assert "ulimit -v" in calling.warning(result, place.lines()[0]["doctor"], "memory-limit")
    assert not place.deaths()
    points = [line["point"] for line in place.lines() if line["line"] == "record"]
    assert 0 < max(point.get("working_set_bytes") or 0 for point in points) <= kib * 1024 // 4


def test_without_huge_pages_no_figure_bears_their_name_and_the_reason_is_printed(place: Place) -> None:
    def forbid() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)

    def of_huge_pages(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [line for line in lines if line.get("point", {}).get("pages") == "huge"]

    result = place.run_until(of_huge_pages, *MEMORY, "vm.fault", preexec_fn=forbid)
    assert "huge pages" in calling.warning(result, place.lines()[0]["doctor"], "huge-pages")
    for line in some(of_huge_pages(place.lines())):
        assert "a proof failed: huge pages obtained" in line["error"]["text"]


@pytest.mark.parametrize("home", ["/nonexistent", "file", None])
def test_without_a_home_the_run_goes_to_the_current_folder_and_that_is_said(
    place: Place, home: str | None
) -> None:
    del place.environment["XDG_DATA_HOME"]
    if home == "file":
        home = str(place.root / "home/file")
        (place.root / "home/file").touch()
    if home is None:
        place.environment["XDG_DATA_HOME"] = "/proc/none"
    else:
        place.environment["HOME"] = home
    result = place.run(*BRIEF)
    assert result.returncode == 0, result.stderr
    assert "this run is kept in" in " ".join(result.stderr.split())
    (file,) = (place.root / "here").iterdir()
    assert file.name in result.stderr
    assert place.called("show", "last").returncode == 0
    assert [path.name for path in (place.root / "here").iterdir()] == [file.name], "no index beside it"
    assert not os.path.lexists("/nonexistent")


def test_without_any_folder_of_its_own_the_run_goes_to_a_private_temporary_one(place: Place) -> None:
    place.environment |= {"XDG_DATA_HOME": "/proc/none"}
    result = place.run(*BRIEF, cwd="/proc/self")
    assert result.returncode == 0, result.stderr
    (folder,) = (place.root / "tmp").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert str(folder) in result.stderr


def test_a_current_folder_that_was_removed_is_no_fault(place: Place) -> None:
    # The shell's folder goes while the shell is in it.
    script = f"rmdir ../here && {shlex.join(place.started_as(*BRIEF))}"
    result = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=place.root / "here",
        env=place.environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "saved" in result.stderr


def test_the_c_locale_gets_ascii(place: Place) -> None:
    place.environment |= {"LC_ALL": "C", "LANG": "C"}
    result = place.run(*BRIEF)
    assert result.returncode == 0
    shown = place.run("show", "-v", "last")
    assert (result.stdout + result.stderr + shown.stdout + shown.stderr).isascii()
    assert "?" not in result.stdout + result.stderr


def test_an_empty_environment_is_enough(place: Place) -> None:
    out = place.root / "home" / "run.latlab.jsonl"
    result = place.run(*BRIEF, "--out", str(out), env={})
    assert result.returncode == 0, result.stderr
    assert "\ufffd" not in result.stdout + result.stderr
    assert place.called("show", str(out)).returncode == 0


def test_a_user_whom_the_system_does_not_know_has_no_home_instead_of_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    # As for a user id that is not in the list of users.
    monkeypatch.setattr(os.path, "expanduser", lambda path: os.environ.get("HOME", path))
    monkeypatch.setitem(sys.modules, "latlab.cli.main", SimpleNamespace(run=lambda: 0))
    with pytest.raises(SystemExit):
        __main__.main()
    assert default_folder() is None


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        ("<&-", 0, "saved"),
        (">&-", 0, "saved"),
        ("<&- >&-", 0, "saved"),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 1, "No space left"),
        ("--json >/dev/full", 1, "saved"),
        ("2>/dev/full", 1, ""),
    ],
)
def test_closed_and_full_streams_do_not_harm_the_run(
    place: Place, streams: str, code: int, said: str
) -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(place.started_as(*BRIEF))} {streams}"],
        cwd=place.root / "here",
        env=place.environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "fault" not in result.stderr
    assert "Exception ignored" not in result.stderr
    assert place.lines()[-1]["stopped_by"] == "completed"
    assert place.left() == []
