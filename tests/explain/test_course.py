"""The course of a run, and the files that it used: their sums are the ledger's."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from latlab.explain.resources import File

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")


def test_bins_sum_to_the_ledger_and_to_the_wall_time(written: SimpleNamespace) -> None:
    explained = written.explained
    timeline = explained.timeline
    assert 1 <= len(timeline.bins) <= 512
    assert timeline.end_s == pytest.approx(explained.wall_s, rel=1e-4)
    for at, name in enumerate(timeline.names):
        assert sum(one[at] for one in timeline.bins) / explained.wall_s == pytest.approx(
            explained.share(name), abs=0.005
        )
    left_out = {row.name for row in explained.categories} - set(timeline.names)
    assert explained.share(*left_out) == pytest.approx(0, abs=1e-6)


def test_each_thread_has_its_stretches_in_order_within_the_run(written: SimpleNamespace) -> None:
    timeline = written.explained.timeline
    assert len(timeline.threads) == 2
    for lane in timeline.threads:
        last = 0.0
        for begin, seconds, name, share in lane.spans:
            assert begin >= last - 2e-6
            assert seconds >= 0
            assert 0 < share <= 1
            assert timeline.thread_names[name]
            last = begin + seconds
        assert last <= timeline.end_s + 1e-3


def test_a_thread_that_only_sleeps_is_shown_asleep(written: SimpleNamespace) -> None:
    timeline = written.explained.timeline
    sleeper = next(lane for lane in timeline.threads if lane.thread != lane.process)
    asleep = sum(span[1] * span[3] for span in sleeper.spans if timeline.thread_names[span[2]] == "sleep")
    seen = sum(span[1] for span in sleeper.spans)
    # Of its 0.6 s, what lies before the first scan of it and after the last is not known.
    assert 0.3 <= seen <= timeline.end_s
    # Being started and waking up may take long on a busy machine.
    assert 0.3 <= asleep >= 0.5 * seen


def test_stages_are_found_when_they_were(written: SimpleNamespace) -> None:
    rows = {row.name: row for row in written.explained.timeline.stages}
    assert set(rows) == {"read", "work", "part", "write"}
    read, work, write = (rows[name].spans for name in ("read", "work", "write"))
    assert [len(spans) for spans in (read, work, write)] == [1, 1, 1]
    assert read[0][0] + read[0][1] <= work[0][0] + 1e-5
    assert work[0][0] + work[0][1] <= write[0][0] + 1e-5
    part = next(stage for stage in written.explained.stages if stage.name == "part")
    assert sum(span[2] for span in rows["part"].spans) == part.count
    assert sum(span[3] for span in rows["part"].spans) == pytest.approx(part.thread_s, rel=0.01)


def file(written: SimpleNamespace, name: str) -> File:
    rows: list[File] = written.explained.files.rows
    return next(row for row in rows if row.name == name)


def test_the_file_that_was_read_is_named_with_its_bytes(written: SimpleNamespace) -> None:
    row = file(written, str(written.input))
    assert row.kind == "file"
    assert row.read is not None
    assert (row.read.bytes, row.written) == (written.read_bytes, None)
    # Its last call returns nothing; others' calls are larger or smaller.
    assert row.read.block_bytes is None or 16_384 <= row.read.block_bytes <= 65_536
    assert row.read.rate is not None
    assert written.read_bytes / written.explained.wall_s <= row.read.rate * 1.01


def test_the_file_that_was_written_is_named_with_its_bytes(written: SimpleNamespace) -> None:
    row = file(written, str(written.output))
    assert row.written is not None
    assert (row.written.bytes, row.read) == (written.written_bytes, None)


def test_the_table_says_how_much_it_explains(written: SimpleNamespace) -> None:
    files, counters = written.explained.files, written.explained.counters
    assert files.counted_read_bytes >= counters.read_chars
    assert files.read_share is not None
    read = sum(row.read.bytes for row in files.rows if row.read)
    assert files.read_share == pytest.approx(min(read / files.counted_read_bytes, 1), rel=1e-3)
    assert files.read_share > 0.4
    assert files.scans > 1
