"""Limits from run files: the newest of this machine that has them, at the program's own block size."""

from __future__ import annotations

import ctypes
import json
import math
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from latlab.explain.kept import Kept, KeptLimit
from latlab.explain.limits import Curve, Limits, Speed, calibrated, find, from_runs, same_machine
from latlab.run.model import Machine, Record, Settings
from latlab.run.reader import read
from latlab.run.store import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def first_line(path: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    return header


def record(probe: str, point: dict[str, Any], p50: float, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "line": "record",
        "probe": probe,
        "method": 1,
        "unit": "ns",
        "kind": "per_op",
        "stopped_by": "planned",
        "round": 0,
        "cpu": 0,
        "point": point,
        "samples": 100,
        "summary": {"p50": p50, "mean": 1.5 * p50, "p90": 2 * p50},
    } | more


def reading(
    size: int, rate: float, between: tuple[float, float], path: str = "buffered-warm"
) -> dict[str, Any]:
    return record(
        "storage.read.sequential",
        {"block_bytes": size, "path": path, "engine": "psync"},
        # A median of copies, which must not be taken for the rate.
        1.0,
        {"findings": {"bytes_per_s": rate, "bytes_per_s_between_blocks": list(between)}},
    )


@pytest.fixture
def store(tmp_path: Path, root: Path) -> Store:
    """Runs of this machine and of another one."""
    head = first_line(root / "tests/data/run-small.latlab.jsonl")
    head["machine"]["os"]["host_name"] = "here"

    def write(name: str, age: timedelta, records: list[dict[str, Any]], host: str = "here") -> None:
        header = json.loads(json.dumps(head))
        header |= {"id": name, "started": (NOW - age).isoformat()}
        header["machine"]["os"]["host_name"] = host
        lines = [header, *records]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (tmp_path / f"{name}.latlab.jsonl").write_text(text, encoding="utf-8")

    write("old", timedelta(days=9), [reading(4096, 2e9, (1e9, 4e9)), reading(65_536, 8e9, (6e9, 9e9))])
    write("older", timedelta(days=20), [reading(4096, 1e6, (1e6, 1e6)), fault(100)])
    write("new", timedelta(hours=2), [fault(1000), fault(5, ok=False)])
    write("elsewhere", timedelta(hours=1), [reading(4096, 9e12, (9e12, 9e12)), fault(1)], host="there")
    return Store(tmp_path)


def fault(p50: float, *, ok: bool = True) -> dict[str, Any]:
    checks = [{"name": "touched", "ok": ok, "detail": ""}]
    point = {"operation": "first-write", "pages": "4k", "size_bytes": 4096}
    failed = {} if ok else {"round": 1, "error": {"kind": "proof_failed", "text": "a proof failed"}}
    return record("vm.fault", point, p50, {"checks": checks} | failed)


def here(store: Store) -> Machine:
    return read(store.resolve("new")).machine


def test_each_limit_is_from_the_newest_run_of_this_machine_that_has_it(store: Store) -> None:
    found = from_runs(["read-memory", "fault"], store, here(store), now=NOW)
    assert found.source("fault") == "run new"
    # Median, mean, 90th percentile; the record whose proof failed has no part in it.
    at = found.at("fault")
    assert at is not None
    assert (at.low, at.mid, at.high) == pytest.approx((1000, 1000, 2000))
    # Nine days are said; the rate is that of all bytes, its range that of the blocks.
    assert found.source("read-memory") == "run old, 9 days old"
    at = found.at("read-memory", 4096)
    assert at is not None
    assert at.rates == pytest.approx((1e9, 4e9))


def test_a_read_from_memory_takes_what_single_ones_do_whatever_else_had_the_cpu(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three of four reads in the middle; in the last tenth another program ran.
    buckets = [(390.0, 410.0, 15), (590.0, 610.0, 75), (990.0, 1010.0, 5), (4e6, 4e6, 5)]
    monkeypatch.setattr(Record, "buckets", lambda _: buckets)
    at = from_runs(["read-memory"], store, here(store), now=NOW).at("read-memory", 4096)
    assert at == Speed(4096, 400, 600, 600)


def test_between_two_sizes_the_time_is_interpolated_on_logarithmic_axes() -> None:
    curve = Curve("x", (Speed(4096, 100, 100, 100), Speed(65_536, 1600, 6400, 10_000)), "")
    middle = curve.at(16_384)
    assert (middle.low, middle.mid, middle.high) == pytest.approx((400, 800, 1000))
    # A smaller call costs as much, a larger one by its bytes.
    assert curve.at(1).mid == 100
    assert curve.at(10 * 65_536).mid == pytest.approx(64_000)
    assert math.isclose(curve.at(65_536).mid, 6400)


@pytest.mark.slow
def test_limits_are_measured_once_and_without_a_file(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    watched = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert ctypes.CDLL(None).inotify_add_watch(watched, bytes(tmp_path), 0x100) >= 0, "IN_CREATE"
    said: list[str] = []
    kept = Kept(Store(own_home / "runs"))
    first = calibrated(["fault"], kept, report=said.append)
    assert len(said) == 1
    with pytest.raises(BlockingIOError):
        os.read(watched, 4096)
    (tmp_path / "seen").touch()
    assert b"seen" in os.read(watched, 4096)
    os.close(watched)
    # The next program finds them, or why there are none.
    again = calibrated(["fault"], Kept(Store(own_home / "runs")), report=said.append)
    assert len(said) == 1
    assert {name: curve.points for name, curve in again.curves.items()} == {
        name: curve.points for name, curve in first.curves.items()
    }
    assert again.notes == first.notes


def test_what_no_run_has_is_not_made_up(store: Store) -> None:
    found = from_runs(["read-random", "malloc"], store, here(store), now=NOW)
    assert found.curves == {}
    assert found.at("malloc", 16) is None


def test_a_run_without_a_host_name_is_of_no_machine(store: Store) -> None:
    machine = here(store)
    assert same_machine(machine, machine)
    nameless = Machine({**machine, "os": {**machine["os"], "host_name": None}})
    assert not same_machine(nameless, nameless)


def test_a_run_that_is_asked_for_is_used_and_said_to_be_foreign(store: Store) -> None:
    found = find(["fault", "malloc"], run=read(store.resolve("elsewhere")))
    assert found.at("fault") == Speed(0, 1, 1, 2)
    assert any("another machine" in note for note in found.notes)
    assert any("alloc.malloc" in note for note in found.notes)
    assert "malloc" not in found.curves


def test_a_limit_of_a_disk_is_of_the_disk_that_the_program_reads(store: Store) -> None:
    cold = "buffered-cold"
    folder = store.folder
    header = first_line(folder / "new.latlab.jsonl")
    header |= {"id": "disk", "settings": header["settings"] | {"file": str(folder)}}
    lines = [header, reading(4096, 1e9, (1e9, 1e9), cold)]
    (folder / "disk.latlab.jsonl").write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
    )
    own = folder.stat().st_dev
    assert "read-disk" in from_runs(["read-disk"], store, here(store), device=own, now=NOW).curves
    assert from_runs(["read-disk"], store, here(store), device=own + 1, now=NOW).curves == {}


POINTS = ((4096.0, 100.0, 200.0, 300.0),)


def never(*_: object, **__: object) -> NoReturn:
    raise AssertionError("measured again")


def test_a_kept_limit_is_used_and_says_when_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latlab.run.conduct.Conductor", never)
    measured_s = int(time.time())
    kept = Kept(Store(tmp_path))
    kept.keep_limits(
        {"switch": KeptLimit(measured_s, POINTS), "fault": KeptLimit(measured_s, note="No time.")}
    )
    found = calibrated(["switch", "fault"], Kept(Store(tmp_path)))
    assert found.at("switch", 4096) == Speed(*POINTS[0])
    assert found.source("switch") == f"calibration of {datetime.fromtimestamp(measured_s):%d %b %H:%M}"
    # One that gave no figure is not tried again, and says why.
    assert "fault" not in found.curves
    assert found.notes == ("No time.",)


def test_a_probe_that_others_left_no_time_is_measured_by_itself_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def conducted(settings: Settings) -> SimpleNamespace:
        asked.append(settings.only)
        return SimpleNamespace(run=lambda: SimpleNamespace(records=[]))

    monkeypatch.setattr("latlab.run.conduct.Conductor", conducted)
    for _ in range(3):
        calibrated(["fault", "fault-huge", "malloc"], Kept(Store(tmp_path)))
    # After the second time both are known to have no figure.
    assert asked == [("vm.fault", "alloc.malloc"), ("alloc.malloc",)]


def test_a_kept_limit_of_a_disk_is_of_the_disk_that_the_program_reads(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.touch()
    device = file.stat().st_dev
    for kept_device, inputs, known in (
        (device, [file], True),
        (device + 1, [file], False),
        (device, [], False),
    ):
        store = Store(tmp_path / f"{kept_device}-{known}")
        Kept(store).keep_limits({"read-disk": KeptLimit(int(time.time()), POINTS, kept_device)})
        found = calibrated(["read-disk"], Kept(store), inputs, measure=False)
        assert ("read-disk" in found.curves) == known


@pytest.mark.parametrize("point", [(4096.0, 3.0, 2.0, 4.0), (4096.0, 0.0, 2.0, 4.0), (-1.0, 1.0, 2.0, 4.0)])
def test_a_kept_limit_that_cannot_have_been_measured_is_no_limit(
    tmp_path: Path, point: tuple[float, float, float, float]
) -> None:
    kept = Kept(Store(tmp_path))
    kept.keep_limits({"fault": KeptLimit(int(time.time()), (point,))})
    found = calibrated(["fault"], Kept(Store(tmp_path)), measure=False)
    assert found == Limits()


def test_a_run_that_was_made_since_takes_the_place_of_what_was_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = SimpleNamespace(machine=here(store))
    monkeypatch.setattr("latlab.explain.limits.describe", lambda: description)
    monkeypatch.setattr("latlab.explain.limits.Store", lambda: store)
    monkeypatch.setattr("latlab.run.conduct.Conductor", never)
    monkeypatch.setattr("time.time", NOW.timestamp)

    def kept(age: timedelta) -> Kept:
        file = Kept(store)
        file.keep_limits({"fault": KeptLimit(int((NOW - age).timestamp()), POINTS)})
        return Kept(store)

    for age, source in ((timedelta(hours=3), "run new"), (timedelta(hours=1), "calibration of ")):
        known = kept(age)
        monkeypatch.setattr("latlab.explain.limits.Kept", lambda known=known: known)
        assert find(["fault"]).source("fault").startswith(source)
