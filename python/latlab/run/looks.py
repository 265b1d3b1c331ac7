"""What a second look at the end of a run says of its records: wider intervals, and which figures moved.

A record is in the file as soon as it is measured, so it cannot know of a second look; the footer does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from latlab.run.model import LookedAgain, Record

#: From this ratio on a figure that moved by more than both own intervals is said to have moved: less is in
#: every ±, and no news.
_MOVED: Final = 1.2
MOVED: Final = "moved: a second look at the end of the run gave another figure; ± holds both"


def with_looks(records: Iterable[Record], looked_again: Sequence[LookedAgain]) -> list[Record]:
    """The records with their intervals between looks, where the footer has any; twice is as once."""
    by = {(look.probe, look.point): look for look in looked_again}
    return [_with(record, by.get((record.probe, record.point))) for record in records]


def _with(record: Record, look: LookedAgain | None) -> Record:
    if look is None or record.summary is None or record.kind not in {"batch_mean", "per_op"}:
        return record
    if "p50" not in record.summary.intervals:
        # Of too few samples for an interval: how far others moved does not say how far these scatter.
        return record
    summary = msgspec.structs.replace(record.summary, between_looks=look.between_looks)
    flags = record.flags
    if _moved(record, look) and MOVED not in flags:
        flags = (*flags, MOVED)
    return msgspec.structs.replace(record, summary=summary, flags=flags)


def _moved(record: Record, look: LookedAgain) -> bool:
    own = record.summary.intervals.get("p50") if record.summary is not None else None
    median = record.value
    if own is None or look.interval is None or look.p50 is None or not median or look.p50 <= 0:
        return False
    apart = own[0] > look.interval[1] or look.interval[0] > own[1]
    # Where one of both was disturbed, ± does not hold the second.
    held = look.between_looks[0] <= look.p50 <= look.between_looks[1]
    step = (record.resolution_ns or 0.0) if record.unit == "ns" else 0.0
    return (
        apart
        and held
        and abs(median - look.p50) > step
        and max(median / look.p50, look.p50 / median) >= _MOVED
    )
