"""The timeline of a program as Chrome trace events: for chrome://tracing, Perfetto and speedscope.

Times are whole microseconds, as in the ledger, and no stretch of a track ends after the next one begins: by
one microsecond too many, a viewer draws the next one inside. What stands in `args` is part of the name for
speedscope, so whatever is as the name says has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from latlab.explain.model import Explained, StageSpans
from latlab.text import clean

_STAGE_TRACKS_FROM: Final = 1 << 24
"""No Linux thread has so high a number (kernel.pid_max is at most 2^22)."""

_WHOLE: Final = 0.95
"""What is more is all of a stretch, rounded."""

Event = dict[str, Any]


def chrome(explained: Explained) -> bytes:
    """A complete event for each stretch of a thread or stage, and a counter of the categories over time."""
    name = clean(" ".join(explained.program.arguments), most=200) or f"process {explained.program.pid}"
    whole = {
        "traceEvents": [*_names(explained), *_threads(explained), *_stages(explained), *_counters(explained)],
        "displayTimeUnit": "ms",
        "otherData": {
            "program": name,
            "source": "latlab explain",
            "level": str(explained.level),
            "wall_s": f"{explained.wall_s:.9g}",
        },
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _micros(seconds: float) -> int:
    return round(1e6 * seconds)


def _laid_out(spans: Sequence[tuple[float, float, int, float]]) -> Iterator[tuple[int, int]]:
    """Beginning and length of each; rounded, one may seem to end after the next has begun."""
    begins = [_micros(span[0]) for span in spans]
    for (begin, seconds, _, _), at, after in zip(spans, begins, [*begins[1:], None], strict=True):
        end = _micros(begin + seconds)
        yield at, max((end if after is None else min(end, after)) - at, 0)


def _meta(kind: str, pid: int, tid: int, **arguments: object) -> Event:
    return {"name": kind, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": arguments}


def _names(explained: Explained) -> list[Event]:
    """Names of processes and threads, the program's own process first."""
    names = {each.pid: clean(each.name, most=40) for each in explained.processes}
    timeline, root = explained.timeline, explained.program.pid
    pids = dict.fromkeys([root, *(lane.process for lane in timeline.threads)])
    events = [_meta("process_name", pid, pid, name=f"{names.get(pid) or 'process'} {pid}") for pid in pids]
    events += [_meta("process_sort_index", pid, pid, sort_index=number) for number, pid in enumerate(pids)]
    for lane in timeline.threads:
        kind = "main thread" if lane.thread == lane.process else "thread"
        events.append(_meta("thread_name", lane.process, lane.thread, name=f"{kind} {lane.thread}"))
    for number, row in enumerate(timeline.stages):
        pid, tid = _track(explained, row, number)
        whose = f", thread {row.thread}" if row.thread else ""
        events.append(_meta("thread_name", pid, tid, name=f"stage {clean(row.name, most=60)}{whose}"))
        events.append(_meta("thread_sort_index", pid, tid, sort_index=-1))
    return events


def _track(explained: Explained, row: StageSpans, number: int) -> tuple[int, int]:
    """A track for each stage and thread: stretches of two stages need not lie within each other."""
    return row.process or explained.program.pid, _STAGE_TRACKS_FROM + number


def _threads(explained: Explained) -> list[Event]:
    timeline = explained.timeline
    return [
        {
            "name": timeline.thread_names[name],
            "cat": "thread",
            "ph": "X",
            "ts": at,
            "dur": length,
            "pid": lane.process,
            "tid": lane.thread,
            **({"args": {"share": round(share, 1)}} if share < _WHOLE else {}),
        }
        for lane in timeline.threads
        for (_, _, name, share), (at, length) in zip(lane.spans, _laid_out(lane.spans), strict=True)
    ]


def _stages(explained: Explained) -> list[Event]:
    events = []
    for number, row in enumerate(explained.timeline.stages):
        pid, tid = _track(explained, row, number)
        for (_, _, times, busy), (at, length) in zip(row.spans, _laid_out(row.spans), strict=True):
            events.append(
                {
                    "name": clean(row.name, most=60),
                    "cat": "stage",
                    "ph": "X",
                    "ts": at,
                    "dur": length,
                    "pid": pid,
                    "tid": tid,
                    **({"args": {"times": times, "in_it_us": _micros(busy)}} if times > 1 else {}),
                }
            )
    return events


def _counters(explained: Explained) -> list[Event]:
    """Percent of each moment by category; the last one ends with the program."""
    timeline, pid = explained.timeline, explained.program.pid
    events = []
    for number, one in enumerate(timeline.bins):
        whole = sum(one)
        if whole > 0:
            shares = {
                name: round(100 * part / whole, 2) for name, part in zip(timeline.names, one, strict=True)
            }
            events.append(_counter(pid, number * timeline.bin_s, shares))
    if events:
        events.append(_counter(pid, timeline.end_s, dict.fromkeys(timeline.names, 0.0)))
    return events


def _counter(pid: int, at_s: float, shares: dict[str, float]) -> Event:
    return {
        "name": "wall time, %",
        "cat": "ledger",
        "ph": "C",
        "ts": _micros(at_s),
        "pid": pid,
        "tid": pid,
        "args": shares,
    }
