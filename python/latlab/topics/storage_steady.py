"""Bandwidth of one long stream against the bytes that it moved, with the levels that were found in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab.run.findings import found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_digits, format_percent, format_rate
from latlab.view.plot import Drawing, Row
from latlab.view.points import MOST_POINTS, drawable
from latlab.view.prose import sentence
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

PROBE: Final = "storage.steady"
_NAMES: Final = {"write": "written", "read": "read"}
_LONGEST_SLICE_S: Final = 3600.0
_GIGA: Final = 1e9
#: No level of fewer seconds is called sustained, whatever a run file says.
_LEAST_S: Final = 20.0


class Regime(NamedTuple):
    """A level of bandwidth: what was moved before it and when it ended; its bytes over its time."""

    from_bytes: float
    to_bytes: float
    bytes_per_s: float


def records(run: Run) -> list[Record]:
    """One stream each: written, read."""
    return [r for r in disk.timed(run, PROBE) if r.point.operation in _NAMES and slices(r)]


def _name(record: Record) -> str:
    return _NAMES.get(record.point.operation or "", "?")


def slices(record: Record) -> list[tuple[float, float]]:
    """`(bytes moved before it, bytes a second)` of each slice of time; nothing where one cannot be."""
    own, length_s = found(record).at("slices"), positive(found(record), "slice_s")
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
    length_s = positive(found(record), "slice_s") or 0.0
    moved = sum(rate * length_s for _, rate in slices(record))
    starts = [
        (at, rate)
        for entry in found(record).sections("regimes")
        if (at := entry.number("from_bytes")) is not None
        and 0 <= at < moved
        and (rate := positive(entry, "bytes_per_s")) is not None
    ]
    ends = [*(at for at, _ in starts[1:]), moved]
    return [Regime(at, end, rate) for (at, rate), end in zip(starts, ends, strict=False) if end > at]


def _picture(own: Sequence[Record]) -> Drawing:
    words = "; ".join(f"{_name(record)}: {levels_in_words(record)}" for record in own)
    about = "Line chart from zero: bandwidth of one stream against the bytes moved."
    return Drawing(f"{about} {words}.", lambda: _drawn(own))


def _drawn(own: Sequence[Record]) -> AnyChart:
    """Both axes from zero: what was moved, and how fast; a thick line is a level."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, curves, drawing  # noqa: PLC0415 - as above

    rows: list[Row] = []
    levels: list[Row] = []
    for record in own:
        series, steps = _name(record), slices(record)
        for at, rate in steps[:: math.ceil(len(steps) / (MOST_POINTS // 2))]:
            text = f"{series}, after {_gigabytes(at)}: {format_rate(rate)}"
            rows.append({"series": series, "x": at / _GIGA, "value": rate, "text": text})
        for begin, end, rate in regimes(record):
            text = f"{series}, {format_digits(begin / _GIGA, 3)} to {_gigabytes(end)}: {format_rate(rate)}"
            ends = {"x": begin / _GIGA, "x2": end / _GIGA}
            levels.append({"series": series, **ends, "value": rate, "text": text})
    x = alt.X("x:Q", title="moved so far, GB", scale=alt.Scale(zero=True, nice=False))
    y = axes.linear_rate_y("value", "bandwidth", 1.08 * max(row["value"] for row in rows))
    color, shape = curves.series_encodings(list(map(_name, own)))
    base, tip = alt.Chart(), alt.Tooltip("text:N")
    level = alt.Chart(drawing.inline(levels)).mark_rule(strokeWidth=4, opacity=0.9)
    layers = [
        base.mark_line(opacity=0.45, strokeWidth=1).encode(x=x, y=y, color=color),
        base.mark_point(size=16, filled=True, opacity=0.8).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tip
        ),
        level.encode(x=alt.X("x:Q"), x2=alt.X2("x2:Q"), y=y, color=color, tooltip=tip),
    ]
    return drawing.layered(layers, data=drawing.inline(rows), width=curves.WIDTH, height=curves.HEIGHT)


def _gigabytes(size: float) -> str:
    return f"{format_digits(size / _GIGA, 3)} GB"


def levels_in_words(record: Record) -> str:
    """`first 12.0 GB at 2.00 GB/s, then 500 MB/s`."""
    own = regimes(record)
    if not own:
        return "no level"
    *others, last = own
    if not others:
        return f"{_gigabytes(last.to_bytes)} at {format_rate(last.bytes_per_s)}"
    parts = [
        f"{'then' if place else 'first'} {_gigabytes(end - begin)} at {format_rate(rate)}"
        for place, (begin, end, rate) in enumerate(others)
    ]
    return ", ".join([*parts, f"then {format_rate(last.bytes_per_s)}"])


def _table(own: Sequence[Record]) -> Table:
    return table_of(
        [(_name(record), level) for record in own for level in regimes(record)],
        ("stream", "text", lambda at: at[0]),
        ("from", "bytes", lambda at: at[1].from_bytes),
        ("to", "bytes", lambda at: at[1].to_bytes),
        ("bandwidth", "bytes_per_s", lambda at: at[1].bytes_per_s),
    )


def is_sustained(record: Record) -> bool:
    """Whether the run says so, and has seconds enough for that word."""
    length_s = positive(found(record), "slice_s") or 0.0
    return found(record).flag("sustained") is True and len(slices(record)) * length_s >= _LEAST_S


def prose(run: Run) -> Iterator[str]:
    """By stream: its levels, and whether what it ends with may be called sustained."""
    for record in () if disk.notices(run, PROBE) else records(run):
        start = f"{_name(record)[:1].upper()}{_name(record)[1:]}: {levels_in_words(record)}"
        verdict = "sustained for as long as was measured" if is_sustained(record) else "not proven sustained"
        why = found(record).text("why") or "the run does not say why"
        yield sentence(f"{start}; {verdict}: {why}")


def _evidence(run: Run) -> Iterator[str]:
    own = records(run)
    yield from disk.evidence(run, PROBE)
    shares = [share for record in own if (share := positive(found(record), "busy_share")) is not None]
    if shares:
        yield f"Transfers fill {format_percent(min(*shares, 1.0))} of the time or more."
    yield from disk.commands(own)


TOPIC: Final = Topic(
    Chart(
        id="storage_steady",
        title="Does the disk stay as fast as at the start?",
        caption="One 1 MiB block after the other, past the page cache. Points: a quarter of a second "
        "each. Thick lines: levels between change points.",
        probe=PROBE,
        measured=records,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
    statements=lambda run: [
        sentence(f"{_name(r)}: {text}") for r in records(run) for text in found(r).texts("steps")
    ],
    notices=lambda run: disk.notices(run, PROBE),
    evidence=_evidence,
)
