"""What was measured to explain programs by is kept, and holds where it was measured."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.explain.in_process import explain

from latlab.explain.kept import FILE, Kept, KeptLimit
from latlab.explain.model import Calibration, Cost
from latlab.run.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain asks Linux")

DAY_S = 86_400
NOW = int(time.time())


def measured(recording: bool | None = None, *, days_ago: float = 0, switch_ns: float = 1.5) -> Calibration:
    price = {"switch_ns": switch_ns, "open_ns": 2.5}
    return Calibration(recording, int(NOW - days_ago * DAY_S), price, {"fault": Cost(1.0, 2.0, 3.5)})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs" / FILE


def test_what_was_measured_is_kept_by_permission(store: Store, file: Path) -> None:
    assert Kept(store).calibrations == ()
    for calibration in (measured(), measured(recording=False), measured(switch_ns=9)):
        kept = Kept(store)
        kept.keep(calibration)
        assert kept.notice == ""
    # The third takes the place of the first.
    assert Kept(store).calibrations == (measured(recording=False), measured(switch_ns=9))
    assert list(file.parent.iterdir()) == [file]
    assert store.entries() == [], "it is no run"


def test_a_limit_is_kept_by_name_and_file_system(store: Store) -> None:
    one, other = KeptLimit(NOW, ((4096, 1, 2, 3),), device=7), KeptLimit(NOW, ((4096, 4, 5, 6),), device=8)
    Kept(store).keep(measured())
    Kept(store).keep_limits({"read-disk": one, "fault": KeptLimit(NOW, note="no figure")})
    Kept(store).keep_limits({"read-disk": other})
    kept = Kept(store)
    assert kept.limits == {"read-disk": (one, other), "fault": (KeptLimit(NOW, note="no figure"),)}
    assert kept.calibrations == (measured(),)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: bytes(len(whole)),
        lambda whole: whole.replace(b'"mid":2.0', b'"mid":"2.0"'),
        lambda whole: whole.replace(b'"version":', b'"version":1', 1),
        lambda _: b"[" * 100_000,
        lambda _: b'{"version":1}',
        lambda _: b"\xff\xfe",
    ],
    ids=["empty", "cut", "zeros", "a text", "another version", "deep", "less", "no text"],
)
def test_a_damaged_file_is_ignored_and_replaced(
    store: Store, file: Path, damage: Callable[[bytes], bytes]
) -> None:
    Kept(store).keep(measured())
    damaged = damage(file.read_bytes())
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert Kept(store).calibrations == ()
    Kept(store).keep(measured())
    assert Kept(store).calibrations == (measured(),)


def test_a_pipe_in_its_place_is_not_waited_for(store: Store, file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)
    kept = Kept(store)
    assert kept.calibrations == ()
    kept.keep(measured())
    assert Kept(store).calibrations == (measured(),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("boot", "d2719d2b-1a5c-4c1d-8a2f-0c3f5b1f1f5e"),
        ("kernel", "2.6.32"),
        ("host", "elsewhere"),
        ("cpu", ["model name\t: 80486"]),
        ("cpus", 4097),
        ("latlab", "0.0.0"),
    ],
)
def test_what_was_measured_on_another_machine_is_replaced(
    store: Store, file: Path, field: str, value: object
) -> None:
    Kept(store).keep(measured())
    content: dict[str, Any] = json.loads(file.read_bytes())
    assert content["machine"][field] != value
    content["machine"][field] = value
    file.write_text(json.dumps(content), encoding="utf-8")
    assert Kept(store).calibrations == ()
    Kept(store).keep(measured(recording=True))
    assert Kept(store).calibrations == (measured(recording=True),)


@pytest.mark.parametrize("days_ago", [31, -1], ids=["a month ago", "tomorrow"])
def test_what_is_old_or_of_another_clock_is_measured_again(store: Store, days_ago: float) -> None:
    Kept(store).keep(measured(days_ago=days_ago))
    Kept(store).keep_limits({"fault": KeptLimit(int(NOW - days_ago * DAY_S))})
    assert Kept(store).calibrations == ()
    assert not any(Kept(store).limits.values())


def test_another_user_measures_himself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Kept(store).keep(measured())
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert Kept(store).calibrations == ()
    Kept(store).keep(measured(switch_ns=9))
    assert Kept(store).calibrations == (measured(switch_ns=9),)
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert Kept(store).calibrations == (measured(),)


def test_where_no_folder_can_be_written_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody can make a folder there, not even root.
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/self/fdinfo")
    monkeypatch.setattr("tempfile.tempdir", "/proc/self/fdinfo")
    kept = Kept()
    kept.keep(measured())
    assert kept.notice.count("cannot be kept") == 1
    assert "no writable folder" in kept.notice


def test_without_a_home_it_is_kept_where_runs_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Kept().keep(measured())
    assert Kept().calibrations == (measured(),)
    assert [path.name for path in tmp_path.iterdir()] == [f"latlab-{os.getuid()}"]


def test_a_full_disk_costs_a_sentence_and_leaves_what_was_there(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kept(store).keep(measured())

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    kept = Kept(store)
    kept.keep(measured(switch_ns=9))
    assert "No space left on device" in kept.notice
    assert Kept(store).calibrations == (measured(),)
    assert list(file.parent.iterdir()) == [file]


def _keeps(folder: str, recording: bool) -> None:
    for _ in range(50):
        kept = Kept(Store(folder))
        kept.keep(measured(recording))
        assert kept.notice == ""
        # Another may have written since, but never a part of a file.
        assert json.loads((Path(folder) / FILE).read_bytes())["users"]


def test_two_at_once_do_not_damage_it(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_keeps, args=(str(file.parent), recording)) for recording in (False, True)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert list(file.parent.iterdir()) == [file]
    assert Kept(Store(file.parent)).calibrations


@pytest.mark.slow
@pytest.mark.parametrize("level", ["1", "3"])
def test_the_next_program_is_explained_by_what_was_kept(tmp_path: Path, own_home: Path, level: str) -> None:
    def ledger() -> dict[str, Any]:
        where = tmp_path / "where.json"
        result = explain("--no-limits", "--level", level, "--json", str(where), "--", "true")
        assert result.returncode == 0, result.stderr
        found: dict[str, Any] = json.loads(where.read_bytes())
        since = "measured" if found["calibration_kept"] else "measured now"
        assert f"costs of kernel work and of recording: {since}" in result.stderr
        return found

    first, second = ledger(), ledger()
    assert not first["calibration_kept"]
    assert second["calibration_kept"]
    assert second["calibration"]["measured_s"] == first["calibration"]["measured_s"]
    for name, cost in first["calibration"]["costs"].items():
        assert second["calibration"]["costs"][name] == pytest.approx(cost)
    # One whose figures cannot have been measured is measured again, and said to be.
    file = own_home / "data/latlab/runs" / FILE
    content = json.loads(file.read_bytes())
    for user in content["users"].values():
        for calibration in user["calibrations"]:
            calibration["costs"]["fault"]["low"] = -1.0
    file.write_text(json.dumps(content), encoding="utf-8")
    assert not ledger()["calibration_kept"]
    assert ledger()["calibration_kept"]
