from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest
from tests.some import some


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, ModuleType]]:
    """The modules beside benches/compare.py, found as it finds them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benches"))
        yield {
            name: importlib.import_module(f"peers.{name}")
            for name in ("lines", "machine", "observing", "storage")
        }
    for name in [name for name in sys.modules if name.split(".")[0] == "peers"]:
        del sys.modules[name]


class Verdict(Protocol):
    """What is looked at of a verdict."""

    ratio: float
    ratios: tuple[float, float]
    sames: tuple[float, float]
    answer: str


def verdict(peers: dict[str, ModuleType], *pairs: tuple[float, float, float]) -> Verdict:
    lines = peers["lines"]
    found: Verdict = lines.verdict([lines.Pair(*pair) for pair in pairs], 0.1, more_is_better=False)
    return found


def test_a_line_says_yes_within_its_tolerance_and_not_beyond(peers: dict[str, ModuleType]) -> None:
    assert verdict(peers, (100, 109, 100), (100, 109, 100)).answer == "yes"
    found = verdict(peers, (100, 111, 100), (100, 111, 100))
    assert found.answer == "NO"
    assert found.ratio == pytest.approx(1.11)
    assert verdict(peers, (100, 85, 100)).answer == "NO", "a figure that is too good is as wrong"


def test_a_line_beyond_its_tolerance_is_inconclusive_where_the_peer_differs_from_itself_by_as_much(
    peers: dict[str, ModuleType],
) -> None:
    found = verdict(peers, (100, 135, 130), (100, 130, 100), (100, 130, 100))
    assert found.answer == "inconclusive"
    assert found.sames == pytest.approx((1.0, 1.3))


def test_one_bad_pair_decides_nothing(peers: dict[str, ModuleType]) -> None:
    found = verdict(peers, (100, 900, 100), (100, 101, 100), (100, 99, 100))
    assert found.answer == "yes"
    assert found.ratios == pytest.approx((0.99, 9.0))


def test_more_bandwidth_than_the_peer_is_no_fault_where_the_line_says_so(
    peers: dict[str, ModuleType],
) -> None:
    lines = peers["lines"]
    pairs = [lines.Pair(100, 150, 100)]
    assert lines.verdict(pairs, 0.05, more_is_better=True).answer == "yes"
    assert lines.verdict(pairs, 0.05, more_is_better=False).answer == "NO"


FIO = {
    "jobs": [
        {
            "error": 0,
            "read": {
                "total_ios": 5512,
                "runtime": 701,
                "lat_ns": {"percentile": {"50.000000": 66048, "99.000000": 2310144}},
            },
            "sync": {"lat_ns": {"percentile": {"50.000000": 98816}}},
        }
    ]
}


def test_fio_is_read_after_its_notes_too(peers: dict[str, ModuleType]) -> None:
    storage = peers["storage"]
    text = "fio: a note on what is not supported\n" + json.dumps(FIO)
    assert storage.fio_latency("read", 50)(text) == 66048
    assert storage.fio_latency("read", 99)(text) == 2310144
    assert storage.fio_latency("sync", 50)(text) == 98816
    assert storage.fio_rate("read")(text) == pytest.approx(7863.05, abs=0.01)


def test_a_job_of_fio_that_failed_is_no_figure(peers: dict[str, ModuleType]) -> None:
    failed = {"jobs": [{**FIO["jobs"][0], "error": 28}]}
    with pytest.raises(ValueError, match="error 28"):
        peers["storage"].fio_rate("read")(json.dumps(failed))


PG_TEST_FSYNC = """1 second per test
Compare file sync methods using one 8kB write:
        open_datasync                      8101.004 ops/sec     123 usecs/op
        fdatasync                          7176.189 ops/sec     139 usecs/op
        fsync                              8000.000 ops/sec     125 usecs/op
        fsync_writethrough                              n/a

Compare file sync methods using two 8kB writes:
        fdatasync                          1000.000 ops/sec    1000 usecs/op
"""


def test_pg_test_fsync_is_read_from_its_table_of_one_write(peers: dict[str, ModuleType]) -> None:
    storage = peers["storage"]
    assert storage.pg_ns("fdatasync")(PG_TEST_FSYNC) == pytest.approx(139_350, abs=1)
    assert storage.pg_ns("fsync")(PG_TEST_FSYNC) == 125_000
    with pytest.raises(ValueError, match="nothing of open_sync"):
        storage.pg_ns("open_sync")(PG_TEST_FSYNC)


def test_a_quantile_that_was_refused_is_no_figure(peers: dict[str, ModuleType]) -> None:
    record = {"summary": {"p99": None, "refused": {"p99": "120 samples, needs 368"}}}
    with pytest.raises(ValueError, match="needs 368"):
        peers["storage"].quantile("p99")(record)


def test_a_record_is_found_by_its_probe_and_its_point(peers: dict[str, ModuleType]) -> None:
    line = next(line for line in peers["storage"].block_lines(1) if line.name == "write 4 KiB")
    point = {"block_bytes": 4096, "path": "direct", "engine": "psync"}
    summary = {"p50": 1.0}
    read = {"probe": "storage.read.sequential", "point": point, "summary": summary}
    refused = {"probe": "storage.write.sequential", "point": point, "error": {"text": "no room"}}
    cached = {"probe": "storage.write.sequential", "point": {**point, "path": "buffered"}, "summary": summary}
    write = {"probe": "storage.write.sequential", "point": point, "summary": summary}
    assert peers["lines"].find([read, refused, cached, write], line) is write
    assert peers["lines"].find([read, refused, cached], line) is None


def test_both_sides_do_the_same(peers: dict[str, ModuleType]) -> None:
    """Past the page cache or through it, as many under way, the same blocks."""
    lines = [line for kind in peers["storage"].KINDS.values() for line in kind.lines(2)]
    for line in some((line for line in lines if line.peer[0] == "fio"), 5):
        block = line.point.get("block_bytes", 4096)
        assert {f"--bs={block}", f"--bs={block // 1024}k"} & set(line.peer), line.name
        assert ("--direct=1" in line.peer) == ("operation" not in line.point), line.name
        depth = line.point.get("queue_depth", 1)
        assert (f"--iodepth={depth}" in line.peer) == (depth > 1), line.name
        assert "--cpus_allowed=2" in line.peer, line.name


def test_the_file_is_made_anew_for_commands_that_overwrite_it(peers: dict[str, ModuleType]) -> None:
    storage = peers["storage"]
    lines = [*storage.block_lines(1), *storage.random_lines(1)]
    assert {line.name for line in lines if storage.writes(line.peer)} == {
        line.name for line in lines if line.name.startswith("write")
    }


def test_nobody_writes_into_the_file_that_both_read(peers: dict[str, ModuleType]) -> None:
    storage = peers["storage"]
    lines = [line for kind in storage.KINDS.values() for line in kind.lines(1)]
    assert {storage.writes(line.peer) for line in lines} == {False, True}
    for line in lines:
        writes = storage.writes(line.peer)
        assert (f"--filename={storage.WRITTEN}" in line.peer) == writes, line.name
        assert ("--filename=FILE" in line.peer) == (line.peer[0] == "fio" and not writes), line.name


def test_a_command_is_reported_without_the_place_where_it_ran(peers: dict[str, ModuleType]) -> None:
    lines = peers["lines"]
    line = peers["storage"].block_lines(1)[0]
    assert "--filename=FILE" in line.peer
    assert "--filename=/data/x" in lines.placed(line.peer, "/data/x", "/data")
    assert lines.placed(["--dir", "DIR"], "/data/x", "/data") == ["--dir", "/data"]


def test_names_of_lines_are_one_each(peers: dict[str, ModuleType]) -> None:
    for kind in some((peers["machine"].KINDS | peers["storage"].KINDS).values()):
        names = some(line.name for line in kind.lines(1))
        assert len(set(names)) == len(names)


def single(probe: str, p50: float, **point: object) -> dict[str, object]:
    return {"probe": probe, "kind": "per_op", "point": point, "summary": {"p50": p50, "p999": 10 * p50}}


def test_medians_of_single_operations_are_compared_and_p999_of_pokes(peers: dict[str, ModuleType]) -> None:
    records = [
        single("memory.poke", 20.0, size=1),
        single("storage.sync", 5e5, sync="fsync"),
        {"probe": "memory.load", "kind": "batch_mean", "point": {}, "summary": {"p50": 1.0}},
        {"probe": "vm.map", "kind": "per_op", "point": {}, "summary": None},
    ]
    assert peers["observing"].figures(records) == {
        ("memory.poke", "median"): {"size 1": 20.0},
        ("memory.poke", "p99.9"): {"size 1": 200.0},
        ("storage.sync", "median"): {"sync fsync": 5e5},
    }


def test_watching_that_costs_more_than_it_may_is_said(peers: dict[str, ModuleType]) -> None:
    rows = peers["observing"].table(
        {
            ("vm.map", "median"): [
                ({"a": 100.0, "b": 200.0}, {"a": 104.0, "b": 208.0}, {"a": 100.0, "b": 200.0})
            ],
            ("vm.fault", "median"): [({"a": 100.0}, {"a": 101.0}, {"a": 100.0})],
            ("kernel.timer", "median"): [({"a": 100.0}, {"a": 110.0}, {"a": 120.0})],
            ("kernel.spawn", "median"): [({"a": 100.0}, {"b": 110.0}, {"a": 120.0})],
        }
    )  # fmt: skip
    assert len(rows) == 5, "what no pair has three times is no line"
    assert "| 2 | 1.040 (1.040-1.040) |" in rows[2]
    assert rows[2].endswith("| NO |")
    assert rows[3].endswith("| 2% | yes |")
    assert rows[4].endswith("| yes |"), "no more than the run without differs from itself"
