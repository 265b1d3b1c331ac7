"""How fast the program moved data, beside what this machine was measured to do at that block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import altair as alt

from latlab.explain.model import Explained
from latlab.explain.resources import File, Moved
from latlab.run.run import Run
from latlab.text import clean
from latlab.topics import bandwidth, storage_blocks
from latlab.units import format_bytes, format_rate
from latlab.view import curves
from latlab.view.axes import rate_y, size_axis, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot
from latlab.view.table import Column, Table

TITLE: Final = "How fast did it move data, and how fast can this machine?"
PROBES: Final = (storage_blocks.READ, storage_blocks.WRITE, bandwidth.PROBE)
_PATHS: Final = {
    storage_blocks.READ: {"cold cache": "read, cold cache", "warm cache": "read, warm cache"},
    storage_blocks.WRITE: {
        "never flushed": "write, not flushed",
        "fsync at the end": "write, fsync at the end",
    },
}
_COPY: Final = "copy in memory, by working set"
_WIDTH, _HEIGHT = 640, 340
_MOST_DOTS: Final = 12
_LEAST_SHARE: Final = 0.005
"""Of wall time: what takes less has no rate worth a dot."""
_MIXED: Final = 0.1


@dataclass(frozen=True, slots=True)
class Dot:
    """Data that the program moved: mean bytes of a call, and bytes a second with the least and the most."""

    name: str
    how: str
    block: float
    rate: float
    low: float
    high: float


def lines(runs: Mapping[str, Run]) -> dict[str, list[Spot]]:
    """The measured curves."""
    found: dict[str, list[Spot]] = {}
    for probe, names in _PATHS.items():
        if probe in runs:
            measured = storage_blocks.lines(runs[probe], probe)
            found |= {name: measured[path] for path, name in names.items() if measured.get(path)}
    if bandwidth.PROBE in runs:
        copy = bandwidth.lines(runs[bandwidth.PROBE]).get("copy")
        if copy:
            found[_COPY] = copy
    return found


def dots(explained: Explained) -> list[Dot]:
    """The program as a whole, while it was in file I/O, and its files, while their positions moved."""
    whole = _whole(explained)
    found = [whole] if whole else []
    for row in explained.files.rows:
        if row.kind != "file":
            continue
        for moved, verb in ((row.read, "read"), (row.written, "write")):
            dot = _of_file(row, moved, verb)
            if dot:
                found.append(dot)
    return found[:_MOST_DOTS]


def _whole(explained: Explained) -> Dot | None:
    counters = explained.counters
    calls = (counters.read_calls or 0) + (counters.write_calls or 0)
    moved = (counters.read_chars or 0) + (counters.written_chars or 0)
    rows = explained.known("file-io-cpu", "storage-wait")
    share = sum(row.share for row in rows)
    # Pipes and sockets count as calls, but their time stands elsewhere.
    if not calls or not moved or share < _LEAST_SHARE or explained.share("pipe", "network") > _MIXED * share:
        return None
    low, high = sum(row.low for row in rows), sum(row.high for row in rows)
    reads = (counters.read_chars or 0) / moved
    verb = "read" if reads > 1 - _MIXED else "write" if reads < _MIXED else "read and write"
    wall = explained.wall_s
    return Dot(
        name=f"all: {verb}",
        how="over the time in file I/O and storage waits",
        block=moved / calls,
        rate=moved / (share * wall),
        low=moved / (high * wall) if high > 0 else moved / (share * wall),
        high=moved / (max(low, share / 10) * wall),
    )


def _of_file(row: File, moved: Moved | None, verb: str) -> Dot | None:
    if moved is None or not moved.block_bytes or not moved.rate:
        return None
    name = clean(PurePath(row.name).name or row.name, most=32)
    return Dot(
        f"{name}: {verb}",
        "over the time between scans in which it moved, computing included",
        moved.block_bytes,
        moved.rate,
        moved.rate,
        moved.rate,
    )


def chart(explained: Explained, runs: Mapping[str, Run]) -> alt.LayerChart | None:
    """Curves of the machine, dots of the program, both axes logarithmic."""
    measured, own = lines(runs), dots(explained)
    if not own:
        return None
    blocks = [spot.x for spot in curves.everywhere(measured) if spot.x <= 1 << 31] + [
        dot.block for dot in own
    ]
    low, high = widened(blocks, down=2, up=2)
    bottom, top = widened(
        [*curves.ends(measured), *(end for dot in own for end in (dot.low, dot.high))], down=1.6, up=1.6
    )
    x = size_axis("x", "bytes a call", low, high)
    y = rate_y("value", "bytes a second", bottom, top)
    data = curves.rows(measured, lambda spot: f"{format_bytes(spot.x)}: {spot.stated(format_rate)}")
    drawn = curves.layers(measured, x, y) if measured else []
    return layered([*drawn, *_dots(own, x, y)], data=data, width=_WIDTH, height=_HEIGHT)


def _dots(own: Sequence[Dot], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows = [
        {
            "x": dot.block,
            "value": dot.rate,
            "low": dot.low,
            "high": dot.high,
            "name": dot.name,
            "text": f"{dot.name}: {format_bytes(dot.block)} a call, {format_rate(dot.rate)} {dot.how}",
        }
        for dot in own
    ]
    base = alt.Chart(inline(rows))
    lower = y.copy()
    lower["shorthand"] = "low:Q"
    return [
        base.mark_rule(style="whisker").encode(x=x, y=lower, y2=alt.Y2("high:Q")),
        base.mark_point(shape="diamond", size=120, filled=True, style="outlined", opacity=1).encode(
            x=x, y=y, tooltip=alt.Tooltip("text:N")
        ),
        base.mark_text(style="name", align="left", dx=9, dy=-7).encode(x=x, y=y, text=alt.Text("name:N")),
    ]


def caption(runs: Mapping[str, Run]) -> str:
    """How to read it, and what the curves are from."""
    parts = [
        "Diamonds: the program, with the interval of its rate. Lines: this machine, one thread. The "
        "distance upwards is what better I/O could gain."
    ]
    ids = dict.fromkeys(clean(run.id, most=60) for run in runs.values())
    if ids:
        parts.append(f"Lines from run {', '.join(ids)}.")
    return " ".join(parts)


def missing(runs: Mapping[str, Run]) -> str:
    """What was not measured on this machine; empty where all was."""
    absent = [probe for probe in PROBES if probe not in runs]
    if not absent:
        return ""
    only = " ".join(f"--only {probe}" for probe in absent)
    return f"No run of this machine has {', '.join(absent)}, so that line is missing: latlab measure {only}."


def alt_text(explained: Explained, runs: Mapping[str, Run]) -> str:
    """What the picture shows, for a screen reader."""
    own = [f"{dot.name} {format_rate(dot.rate)} at {format_bytes(dot.block)}" for dot in dots(explained)]
    words = curves.in_words(lines(runs), lambda spot: f"{format_rate(spot.value)} at {format_bytes(spot.x)}")
    return (
        "Bytes a second against bytes a call, both axes logarithmic."
        f" The program: {'; '.join(own)}. Measured: {words or 'nothing'}."
    )


def table(explained: Explained, runs: Mapping[str, Run]) -> Table:
    """Every dot and every point of the curves."""
    columns = (
        Column("what"),
        Column("bytes a call", "bytes"),
        Column("rate", "bytes_per_s"),
        Column("from", "bytes_per_s"),
        Column("to", "bytes_per_s"),
    )
    own = [(dot.name, dot.block, dot.rate, dot.low, dot.high) for dot in dots(explained)]
    measured = [
        (name, spot.x, spot.value, spot.low, spot.high)
        for name, curve in lines(runs).items()
        for spot in curve
    ]
    return Table(columns, (*own, *measured))
