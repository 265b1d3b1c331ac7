"""Bandwidth of one long stream against the bytes that it moved, with the levels that were found in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import timed
from latlab.units import format_digits, format_rate
from latlab.view.axes import linear_rate_y
from latlab.view.curves import HEIGHT, WIDTH, series_encodings
from latlab.view.drawing import inline, layered
from latlab.view.points import MOST_POINTS, drawable, why_absent
from latlab.view.table import Column, Table

ID = "storage_steady"
TITLE = "Does the disk stay as fast as it begins?"
PROBE = "storage.steady"
_NAMES = {"write": "written", "read": "read"}
_LONGEST_SLICE_S = 3600.0
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Regime:
    """A level of bandwidth.

    Attributes:
        from_bytes: Moved before it.
        to_bytes: Moved when it ended.
        bytes_per_s: Its bytes over its time.
    """

    from_bytes: float
    to_bytes: float
    bytes_per_s: float


def records(run: Run) -> list[Record]:
    """One stream each: written, read."""
    return [r for r in timed(run, PROBE) if r.point.operation in _NAMES and slices(r)]


def name(record: Record) -> str:
    """`written`, `read`."""
    return _NAMES.get(record.point.operation or "", "?")


def slices(record: Record) -> list[tuple[float, float]]:
    """`(bytes moved before it, bytes a second)` of each slice of time; nothing where one cannot be."""
    own = record.findings.get("slices") if isinstance(record.findings, dict) else None
    length_s = positive(found(record), "slice_s")
    if not isinstance(own, list) or length_s is None or length_s > _LONGEST_SLICE_S:
        return []
    out, moved = [], 0.0
    for rate in own:
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate) or rate < 0:
            return []
        out.append((moved, float(rate)))
        moved += rate * length_s
    return out if drawable(moved) else []


def regimes(record: Record) -> list[Regime]:
    """The levels, in order."""
    moved = _moved(record)
    starts = []
    for entry in found(record).sections("regimes"):
        at, rate = entry.number("from_bytes"), positive(entry, "bytes_per_s")
        if at is not None and 0 <= at < moved and rate is not None:
            starts.append((at, rate))
    if not starts:
        return []
    ends = [at for at, _ in starts[1:]] + [moved]
    return [Regime(at, end, rate) for (at, rate), end in zip(starts, ends, strict=True) if end > at]


def _moved(record: Record) -> float:
    length_s = positive(found(record), "slice_s") or 0.0
    return sum(rate * length_s for _, rate in slices(record))


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if records(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """Both axes from zero: what was moved, and how fast; a thick line is a level."""
    own = records(run)
    if not own:
        return None
    names = [name(record) for record in own]
    rows: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    for record in own:
        series = name(record)
        steps = slices(record)
        every = math.ceil(len(steps) / (MOST_POINTS // 2))
        for at, rate in steps[::every]:
            text = f"{series}, after {format_digits(at / _GIGA, 3)} GB: {format_rate(rate)}"
            rows.append({"series": series, "x": at / _GIGA, "value": rate, "text": text})
        for regime in regimes(record):
            ends = (regime.from_bytes / _GIGA, regime.to_bytes / _GIGA)
            begin, end = (format_digits(each, 3) for each in ends)
            text = f"{series}, {begin} to {end} GB: {format_rate(regime.bytes_per_s)}"
            levels.append(
                {"series": series, "x": ends[0], "x2": ends[1], "value": regime.bytes_per_s, "text": text}
            )
    x = alt.X("x:Q", title="moved so far, GB", scale=alt.Scale(zero=True, nice=False))
    y = linear_rate_y("value", "bandwidth", 1.08 * max(row["value"] for row in rows))
    color, shape = series_encodings(names)
    base = alt.Chart()
    return layered(
        [
            base.mark_line(opacity=0.45, strokeWidth=1).encode(x=x, y=y, color=color),
            base.mark_point(size=16, filled=True, opacity=0.8).encode(
                x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
            ),
            alt.Chart(inline(levels))
            .mark_rule(strokeWidth=4, opacity=0.9)
            .encode(x=alt.X("x:Q"), x2=alt.X2("x2:Q"), y=y, color=color, tooltip=alt.Tooltip("text:N")),
        ],
        data=inline(rows),
        width=WIDTH,
        height=HEIGHT,
    )


def levels_in_words(record: Record) -> str:
    """`first 12.0 GB at 2.00 GB/s, then 500 MB/s`."""
    own = regimes(record)
    if not own:
        return "no level"
    if len(own) == 1:
        return f"{format_digits(own[0].to_bytes / _GIGA, 3)} GB at {format_rate(own[0].bytes_per_s)}"
    parts = [
        f"{'then' if place else 'first'} {format_digits((level.to_bytes - level.from_bytes) / _GIGA, 3)} GB"
        f" at {format_rate(level.bytes_per_s)}"
        for place, level in enumerate(own[:-1])
    ]
    return ", ".join([*parts, f"then {format_rate(own[-1].bytes_per_s)}"])


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = "; ".join(f"{name(record)}: {levels_in_words(record)}" for record in records(run))
    return f"Line chart from zero: bandwidth of one stream against the bytes moved. {words}."


def table(run: Run) -> Table:
    """The levels."""
    columns = (
        Column("stream"),
        Column("from", "bytes"),
        Column("to", "bytes"),
        Column("bandwidth", "bytes_per_s"),
    )
    return Table(
        columns,
        tuple(
            (name(record), level.from_bytes, level.to_bytes, level.bytes_per_s)
            for record in records(run)
            for level in regimes(record)
        ),
    )
