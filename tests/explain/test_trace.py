"""Chrome's trace events by their documented form, the Firefox Profiler's by the rules it loads by."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tests.some import some

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")

Event = dict[str, Any]

# "Trace Event Format": what an event of each phase that is used must and may have.
NUMBER = (int, float)
MUST: dict[str, dict[str, Any]] = {
    "X": {"name": str, "ph": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int},
    "C": {"name": str, "ph": str, "ts": NUMBER, "pid": int, "args": dict},
    "M": {"name": str, "ph": str, "pid": int, "args": dict},
}
MAY: dict[str, Any] = {"cat": str, "args": dict, "ts": NUMBER, "tid": int}
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def of(written: SimpleNamespace, phase: str) -> list[Event]:
    return [event for event in written.trace["traceEvents"] if event["ph"] == phase]


def test_every_event_has_the_fields_of_its_phase_and_no_other(written: SimpleNamespace) -> None:
    trace = written.trace
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    assert {event["ph"] for event in trace["traceEvents"]} == set(MUST)
    for event in trace["traceEvents"]:
        must = MUST[event["ph"]]
        assert set(must) <= set(event) <= set(must) | set(MAY)
        for name, value in event.items():
            assert isinstance(value, (must | MAY)[name]), (name, value)
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}


def test_complete_events_of_one_track_lie_one_after_another(written: SimpleNamespace) -> None:
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in of(written, "X"):
        tracks[event["pid"], event["tid"]].append(event)
    for event, after in some(pair for events in tracks.values() for pair in pairwise(events)):
        # One microsecond more, and a viewer draws the next inside of it.
        assert event["ts"] + event["dur"] <= after["ts"]


def test_what_is_as_its_name_says_has_no_arguments_which_would_be_part_of_it(
    written: SimpleNamespace,
) -> None:
    names = {(event["name"], str(event.get("args"))) for event in of(written, "X")}
    assert {("read", "None"), ("work", "None"), ("write", "None")} <= names
    of_threads = {(name, args) for name, args in names if name not in {"read", "work", "part", "write"}}
    assert len(of_threads) <= 11 * len({name for name, _ in of_threads})


def test_threads_and_stages_have_their_own_named_tracks(written: SimpleNamespace) -> None:
    named = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in of(written, "M")
        if event["name"] == "thread_name"
    }
    kinds: dict[tuple[int, int], set[str]] = defaultdict(set)
    for event in of(written, "X"):
        kinds[event["pid"], event["tid"]].add(event["cat"])
    assert set(kinds) == set(named)
    assert all(len(each) == 1 for each in kinds.values())
    stages = {name for track, name in named.items() if kinds[track] == {"stage"}}
    assert {name.split(",")[0] for name in stages} == {
        "stage read",
        "stage work",
        "stage part",
        "stage write",
    }
    assert len({event["pid"] for event in of(written, "M") if event["name"] == "process_name"}) == 1


def test_counters_are_the_ledger_over_time(written: SimpleNamespace) -> None:
    counters = of(written, "C")
    assert len(counters) == len(written.explained.timeline.bins) + 1
    wall = 1e6 * written.explained.wall_s
    times = [event["ts"] for event in counters]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(wall, rel=1e-3)
    for event in counters[:-1]:
        assert sum(event["args"].values()) == pytest.approx(100, abs=0.2)
    sums: Counter[str] = Counter()
    for event, after in pairwise(counters):
        for name, value in event["args"].items():
            sums[name] += value / 100 * (after["ts"] - event["ts"]) / wall
    for name, share in sums.items():
        assert share == pytest.approx(written.explained.share(name), abs=0.01)


def test_a_stage_in_the_trace_is_as_long_as_in_the_ledger(written: SimpleNamespace) -> None:
    read = next(event for event in of(written, "X") if event["name"] == "read")
    stage = next(stage for stage in written.explained.stages if stage.name == "read")
    assert read["dur"] == pytest.approx(1e6 * stage.thread_s, abs=3)


# ---- the Firefox Profiler's processed format

THREAD_TABLES = {
    "samples": ["stack", "time", "weight"],
    "markers": ["name", "startTime", "endTime", "phase", "category", "data"],
    "stackTable": ["frame", "prefix"],
    "frameTable": [
        "address",
        "inlineDepth",
        "category",
        "subcategory",
        "func",
        "nativeSymbol",
        "innerWindowID",
        "line",
        "column",
    ],
    "funcTable": [
        "name",
        "isJS",
        "relevantForJS",
        "resource",
        "fileName",
        "lineNumber",
        "columnNumber",
    ],
    "resourceTable": ["lib", "name", "host", "type"],
    "nativeSymbols": ["libIndex", "address", "name", "functionSize"],
}
# The colours that the profiler's style sheet has.
COLORS = {
    "transparent",
    "purple",
    "green",
    "orange",
    "yellow",
    "lightblue",
    "blue",
    "brown",
    "red",
    "lightred",
    "darkgrey",
    "grey",
    "magenta",
}


def test_the_profile_says_what_it_is(written: SimpleNamespace) -> None:
    meta = written.firefox["meta"]
    assert meta["preprocessedProfileVersion"] == 57
    assert isinstance(meta["version"], int)
    assert meta["interval"] > 0
    assert {"startTime", "product", "processType", "stackwalk", "categories", "markerSchema"} <= set(meta)
    assert [each["name"] for each in meta["categories"]].count("Other") == 1
    assert meta["categories"][0] == {"name": "Other", "color": "grey", "subcategories": ["Other"]}
    for category in meta["categories"]:
        assert category["color"] in COLORS
        assert category["subcategories"][0] == "Other"
    for schema in meta["markerSchema"]:
        assert all({"key", "format"} <= set(field) for field in schema["fields"])
    assert {"libs", "pages", "counters", "shared", "threads"} <= set(written.firefox)


def test_columns_of_a_table_are_as_long_as_it_says_and_point_into_their_tables(
    written: SimpleNamespace,
) -> None:
    strings = written.firefox["shared"]["stringArray"]
    categories = written.firefox["meta"]["categories"]
    assert len(strings) == len(set(strings))
    assert all(isinstance(text, str) for text in strings)
    for thread in written.firefox["threads"]:
        for name, columns in THREAD_TABLES.items():
            table = thread[name]
            assert set(columns) <= set(table)
            assert {len(table[column]) for column in columns} == {table["length"]}, name
        stacks, frames, funcs = (thread[name] for name in ("stackTable", "frameTable", "funcTable"))
        assert all(0 <= each < len(strings) for each in funcs["name"] + thread["markers"]["name"])
        assert all(0 <= each < funcs["length"] for each in frames["func"])
        assert all(0 <= each < len(categories) for each in frames["category"])
        assert all(0 <= each < frames["length"] for each in stacks["frame"])
        for at, prefix in enumerate(stacks["prefix"]):
            assert prefix is None or 0 <= prefix < at
        samples = thread["samples"]
        assert samples["time"] == sorted(samples["time"])
        assert all(each is None or 0 <= each < stacks["length"] for each in samples["stack"])
        assert samples["weightType"] in {"samples", "tracing-ms", "bytes"}


def test_threads_belong_to_their_process_and_have_numbers_of_their_own(written: SimpleNamespace) -> None:
    threads = written.firefox["threads"]
    assert all(isinstance(thread["pid"], str) and isinstance(thread["tid"], str) for thread in threads)
    assert len({thread["tid"] for thread in threads}) == len(threads)
    assert [thread["isMainThread"] for thread in threads].count(True) == 1
    for thread in threads:
        assert thread["registerTime"] <= thread["unregisterTime"]
        assert thread["name"]


def test_weights_are_the_time_of_the_threads(written: SimpleNamespace) -> None:
    threads = {thread["tid"]: thread for thread in written.firefox["threads"]}
    for lane in some(written.explained.timeline.threads, least=2):
        thread = threads[str(lane.thread)]
        assert sum(thread["samples"]["weight"]) == pytest.approx(
            1e3 * sum(span[1] for span in lane.spans), rel=1e-6
        )


def test_stages_are_markers_with_a_beginning_and_an_end(written: SimpleNamespace) -> None:
    strings = written.firefox["shared"]["stringArray"]
    main = next(thread for thread in written.firefox["threads"] if thread["isMainThread"])
    markers = main["markers"]
    assert {strings[name] for name in markers["name"]} == {"read", "work", "part", "write"}
    assert set(markers["phase"]) == {1}
    assert markers["startTime"] == sorted(markers["startTime"])
    assert all(begin <= end for begin, end in zip(markers["startTime"], markers["endTime"], strict=True))
    types = {schema["name"] for schema in written.firefox["meta"]["markerSchema"]}
    assert {data["type"] for data in markers["data"]} <= types
