"""The ledger in tables: figures that are made from others."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import Stage
from latlab.explain.table import facts, stages


def test_a_stages_rate_is_its_bytes_over_the_time_of_its_threads() -> None:
    """16 MB in eight seconds of threads, of which half a second was wall time."""
    copying = Stage("copy", 0.05, 0.5, (), 4, thread_s=8.0, bytes=16e6)
    _, row = stages(msgspec.structs.replace(ledger({}), stages=(copying,)))
    assert "2.00 MB/s" in row


@pytest.mark.parametrize(
    ("device", "says"),
    [
        (0.0, "nothing came from a disk"),
        (2048.0, "2 KiB came from a disk"),
        (32768.0, "32 KiB came from a disk, with whole pages, read-ahead and mapped files"),
    ],
)
def test_what_a_disk_gave_is_no_part_of_what_was_read(device: float, says: str) -> None:
    counters = {"read_chars": 3984.0, "read_calls": 4.0, "device_read_bytes": device}
    (line,) = (line for line in facts(ledger({}, counters=counters)) if line.startswith("read "))
    assert line == f"read 3.89 KiB in 4 calls (996 B each); {says}"
