"""The timeline of a program as the Firefox Profiler (profiler.firefox.com) loads it: the processed format.

Newer profilers upgrade its version 57 when they load it. Rules that it keeps: columns of a table are as long
as `length` says, numbers in them are rows of the table that they are of, a stack's prefix comes before it,
times ascend, strings of all threads are in `shared.stringArray`, one category is grey, and each has the
subcategory "Other".
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from latlab.explain.model import Explained, Lane, StageSpans
from latlab.text import clean

VERSION: Final = 57
_GECKO_VERSION: Final = 30
_COLORS: Final = {
    "compute": "blue",
    "memory-copy": "lightblue",
    "allocator": "orange",
    "garbage-collection": "yellow",
    "user-cpu": "blue",
    "on-cpu": "blue",
    "on-cpu-or-ready": "blue",
    "page-faults": "brown",
    "file-io-cpu": "green",
    "kernel-cpu": "green",
    "storage-wait": "magenta",
    "network": "purple",
    "pipe": "purple",
    "locks": "red",
    "run-queue-wait": "lightred",
    "sleep": "transparent",
    "waiting-for-children": "transparent",
}
_GREY: Final = "grey"

Table = dict[str, Any]


class _Strings:
    """The strings of all threads, each once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self.all.append(text)
        return self._numbers[text]


class _Stacks:
    """Functions, frames and stacks of one thread, each once."""

    def __init__(self, strings: _Strings) -> None:
        self._strings = strings
        self._funcs: dict[int, int] = {}
        self._frames: dict[tuple[int, int], int] = {}
        self._stacks: dict[tuple[int | None, int], int] = {}

    def stack(self, names: Sequence[str], category: int) -> int | None:
        """The stack of these functions, the outermost first."""
        at: int | None = None
        for name in names:
            func = self._funcs.setdefault(self._strings.number(name), len(self._funcs))
            frame = self._frames.setdefault((func, category), len(self._frames))
            at = self._stacks.setdefault((at, frame), len(self._stacks))
        return at

    def tables(self) -> dict[str, Table]:
        funcs, frames, stacks = list(self._funcs), list(self._frames), list(self._stacks)

        def column(count: int, value: object) -> list[object]:
            return [value] * count

        many, more = len(funcs), len(frames)
        return {
            "funcTable": {
                "length": many,
                "name": funcs,
                "isJS": column(many, value=False),
                "relevantForJS": column(many, value=False),
                "resource": column(many, -1),
                "fileName": column(many, None),
                "lineNumber": column(many, None),
                "columnNumber": column(many, None),
            },
            "frameTable": {
                "length": more,
                "address": column(more, -1),
                "inlineDepth": column(more, 0),
                "category": [category for _, category in frames],
                "subcategory": column(more, 0),
                "func": [func for func, _ in frames],
                "nativeSymbol": column(more, None),
                "innerWindowID": column(more, 0),
                "line": column(more, None),
                "column": column(more, None),
            },
            "stackTable": {
                "length": len(stacks),
                "frame": [frame for _, frame in stacks],
                "prefix": [prefix for prefix, _ in stacks],
            },
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
        }


def firefox(explained: Explained) -> bytes:
    """A sample for each stretch of a thread, weighted by its time; all sampled stacks; stages as markers."""
    strings = _Strings()
    timeline = explained.timeline
    names = dict.fromkeys(
        [*timeline.thread_names, *timeline.names, *(row.name for row in explained.categories)]
    )
    categories = ["Other", *names]
    numbers = {name: number for number, name in enumerate(categories)}
    processes = {each.pid: clean(each.name, most=40) for each in explained.processes}
    threads = [
        _thread(explained, lane, _Stacks(strings), strings, numbers, processes) for lane in timeline.threads
    ]
    if explained.stacks:
        threads.append(_functions(explained, _Stacks(strings), numbers, processes))
    whole = {
        "meta": _meta(explained, categories),
        "libs": [],
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "shared": {"stringArray": strings.all},
        "threads": threads,
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _meta(explained: Explained, categories: Sequence[str]) -> Table:
    name = clean(" ".join(explained.program.arguments), most=120) or f"process {explained.program.pid}"
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        # Of the end, nearly: it says when the profile was taken, and all else counts from the start.
        "startTime": round(1e3 * (time.time() - explained.wall_s), 3),
        "interval": 1.0,
        "processType": 0,
        "product": name,
        "stackwalk": 1,
        "debug": False,
        "symbolicated": True,
        "sourceCodeIsNotOnSearchfox": True,
        "usesOnlyOneStackType": True,
        "importedFrom": "latlab explain",
        "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
        "categories": [
            {"name": each, "color": _COLORS.get(each, _GREY), "subcategories": ["Other"]}
            for each in categories
        ],
        "markerSchema": [
            {
                "name": "Stage",
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "chartLabel": "{marker.name}",
                "tooltipLabel": "stage {marker.name}",
                "fields": [
                    {"key": "times", "label": "Times", "format": "integer"},
                    {"key": "inside", "label": "Time in it", "format": "duration"},
                ],
            }
        ],
    }


def _millis(seconds: float) -> float:
    return round(1e3 * seconds, 6)


def _thread(
    explained: Explained,
    lane: Lane,
    stacks: _Stacks,
    strings: _Strings,
    numbers: dict[str, int],
    processes: dict[int, str],
) -> Table:
    names = explained.timeline.thread_names
    samples = [
        (_millis(begin), stacks.stack([names[name]], numbers[names[name]]), _millis(seconds))
        for begin, seconds, name, _ in lane.spans
    ]
    main = lane.thread == lane.process
    mine = [
        row
        for row in explained.timeline.stages
        if (row.process or explained.program.pid) == lane.process
        and (row.thread == lane.thread or (main and not row.thread))
    ]
    ends = lane.spans[-1][0] + lane.spans[-1][1] if lane.spans else 0.0
    process = processes.get(lane.process) or "process"
    name = process if main else f"thread {lane.thread}"
    return _as_thread(
        (name, process, lane.process, str(lane.thread), main),
        (_millis(lane.spans[0][0]) if lane.spans else 0.0, _millis(ends)),
        samples,
        _markers(mine, strings),
        stacks,
    )


def _functions(
    explained: Explained, stacks: _Stacks, numbers: dict[str, int], processes: dict[int, str]
) -> Table:
    """Sampled stacks know neither thread nor time any more: one after another, as long as their shares."""
    at, samples = 0.0, []
    for stack in explained.stacks:
        milliseconds = 1e3 * stack.share * explained.wall_s
        names = [stack.name, *(clean(frame, most=300) for frame in stack.frames)]
        samples.append((round(at, 6), stacks.stack(names, numbers[stack.name]), round(milliseconds, 6)))
        at += milliseconds
    pid = explained.program.pid
    process = processes.get(pid) or "process"
    name = "all sampled stacks (not in order of time)"
    return _as_thread(
        (name, process, pid, f"{pid}-stacks", False),
        (0.0, round(at, 6)),
        samples,
        _markers([], _Strings()),
        stacks,
    )


def _as_thread(
    who: tuple[str, str, int, str, bool],
    when: tuple[float, float],
    samples: Sequence[tuple[float, int | None, float]],
    markers: Table,
    stacks: _Stacks,
) -> Table:
    name, process, pid, tid, is_main = who
    return {
        "name": name,
        "isMainThread": is_main,
        "processType": "default",
        "processName": process,
        "processStartupTime": 0.0,
        "processShutdownTime": None,
        "registerTime": when[0],
        "unregisterTime": when[1],
        "pausedRanges": [],
        "showMarkersInTimeline": bool(markers["length"]),
        "pid": str(pid),
        "tid": tid,
        "samples": {
            "length": len(samples),
            "time": [sample[0] for sample in samples],
            "stack": [sample[1] for sample in samples],
            "weight": [sample[2] for sample in samples],
            "weightType": "tracing-ms",
        },
        "markers": markers,
        **stacks.tables(),
    }


def _markers(rows: Sequence[StageSpans], strings: _Strings) -> Table:
    """Stages as intervals; phase 1 is one with a beginning and an end."""
    spans = sorted(
        ((span, strings.number(clean(row.name, most=120))) for row in rows for span in row.spans),
        key=lambda each: each[0][0],
    )
    return {
        "length": len(spans),
        "name": [name for _, name in spans],
        "startTime": [_millis(span[0]) for span, _ in spans],
        "endTime": [_millis(span[0] + span[1]) for span, _ in spans],
        "phase": [1] * len(spans),
        "category": [0] * len(spans),
        "data": [{"type": "Stage", "times": span[2], "inside": _millis(span[3])} for span, _ in spans],
    }
