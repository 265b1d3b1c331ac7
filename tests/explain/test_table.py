"""The ledger in tables: figures that are made from others."""

from __future__ import annotations

import msgspec
from tests.explain.ledgers import ledger

from latlab.explain.model import Stage
from latlab.explain.table import stages


def test_a_stages_rate_is_its_bytes_over_the_time_of_its_threads() -> None:
    """16 MB in eight seconds of threads, of which half a second was wall time."""
    copying = Stage("copy", 0.05, 0.5, (), 4, thread_s=8.0, own_thread_s=8.0, range_ns=(2e9, 2e9), bytes=16e6)
    _, row = stages(msgspec.structs.replace(ledger({}), stages=(copying,)))
    assert "2.00 MB/s" in row
