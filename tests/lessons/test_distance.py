"""Both sides of transfers: how long they took together."""

from __future__ import annotations

from typing import Any, cast

import pytest

from latlab.lessons import distance
from latlab.lessons.bench import Cannot
from latlab.lessons.distance import Helper, Way


class Core:
    """Answers as the core's client does: two transfers that overlap, times in nanoseconds."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"stamped": [{"begun": 1e9, "last_byte": 2e9}, {"begun": 1.5e9, "last_byte": 3.5e9}]}


def test_transfers_take_from_the_first_begin_to_the_last_byte() -> None:
    core = cast(Helper, Core())
    way = Way("loopback", "the loopback", core, native=core)
    seconds, reported = way.by_core(1000, 2, 2, kept=False)
    assert seconds == pytest.approx(2.5)
    assert len(reported) == 2
    with pytest.raises(Cannot, match="reported 2 transfers, not 3"):
        way.by_core(1000, 3, 2, kept=False)


def test_the_cores_own_client_transfers_over_the_loopback() -> None:
    with distance.loopback(0.0, core=True) as way:
        _, reported = way.by_core(1000, 3, 2, kept=False)
    assert [each["last_byte"] >= each["begun"] for each in reported] == [True, True, True]
