"""Bandwidth of a disk against block size: reading and writing, one curve a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from latlab.run.findings import findings, found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.disk import PATHS, path_name, timed
from latlab.units import format_bytes, format_rate
from latlab.view import curves
from latlab.view.axes import rate_y, size_axis, widened
from latlab.view.drawing import inline, layered
from latlab.view.points import Spot, drawable, is_disturbed, why_absent
from latlab.view.table import Column, Table

ID = "storage_blocks"
TITLE = "How large should a block be, and how fast is the disk then?"
READ, WRITE = "storage.read.sequential", "storage.write.sequential"
PANELS = {READ: "reading", WRITE: "writing"}
_WIDTH, _HEIGHT = 312, 320


@dataclass(frozen=True, slots=True)
class Fit:
    """T = alpha + block / beta, fitted to the medians of one path.

    Attributes:
        path: Which path.
        alpha_ns: What a block costs whatever its size.
        beta: Bytes a second beyond that.
        half: Block of which the two parts are equal: half of the bandwidth, bytes.
        ninety: Block with nine tenths of the bandwidth, bytes.
        worst: Farthest residual, as measured over fitted; absent when not said.
    """

    path: str
    alpha_ns: float
    beta: float
    half: float
    ninety: float
    worst: float | None


def lines(run: Run, probe: str) -> dict[str, list[Spot]]:
    """One curve a path, ascending in block size: all bytes over all calls' time, band over repeats."""
    records = [r for r in timed(run, probe) if r.point.block_bytes and _rate(r)]
    known = list(PATHS)
    paths = sorted(
        {r.point.path or "" for r in records}, key=lambda path: known.index(path) if path in known else 99
    )
    return {
        path_name(path): sorted(
            (_spot(r) for r in records if (r.point.path or "") == path), key=lambda spot: spot.x
        )
        for path in paths
    }


def _rate(record: Record) -> float | None:
    return positive(found(record), "bytes_per_s")


def _spot(record: Record) -> Spot:
    # Not from the median call: most cold reads are answered by what was read ahead, writes by the cache.
    rate = _rate(record) or 0.0
    repeats = found(record).at("bytes_per_s_between_blocks")
    ends = [rate]
    if isinstance(repeats, list):
        ends += [float(own) for own in repeats if isinstance(own, int | float) and drawable(own)]
    return Spot(
        x=record.point.block_bytes or 1,
        value=rate,
        low=min(ends),
        high=max(ends),
        samples=record.samples,
        disturbed=is_disturbed(record),
    )


def fits(run: Run, probe: str) -> list[Fit]:
    """The fits that were concluded and can be right."""
    out = []
    for entry in findings(run, probe).sections("fits"):
        path = entry.text("path")
        figures = [
            positive(entry, name)
            for name in (
                "alpha_ns",
                "beta_bytes_per_s",
                "half_bandwidth_block_bytes",
                "ninety_percent_block_bytes",
            )
        ]
        alpha, beta, half, ninety = figures
        if path is None or alpha is None or beta is None or half is None or ninety is None:
            continue
        residuals = [positive(entry.section("residuals"), name) for name in entry.section("residuals")]
        off = [value for value in residuals if value is not None]
        worst = max(off, key=lambda value: max(value, 1 / value), default=None)
        out.append(Fit(path, alpha, beta, half, ninety, worst))
    return out


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run, READ) or lines(run, WRITE) else why_absent(run, READ)


def chart(run: Run) -> alt.HConcatChart | None:
    """Reading beside writing on the same axes, both logarithmic."""
    panels = {probe: own for probe in PANELS if (own := lines(run, probe))}
    if not panels:
        return None
    spots = [spot for own in panels.values() for spot in curves.everywhere(own)]
    low, high = widened((spot.x for spot in spots), down=1.5, up=1.5)
    bottom, top = widened(end for own in panels.values() for end in curves.ends(own))
    drawn = []
    for number, (probe, own) in enumerate(panels.items()):
        x = size_axis("x", "block", low, high)
        y = rate_y("value", "bytes a second" if number == 0 else "", bottom, top)
        data = curves.rows(own, lambda spot: f"blocks of {format_bytes(spot.x)}: {spot.stated(format_rate)}")
        layers = [*curves.layers(own, x, y, columns=2), *_marks(run, probe, x, y, (low, high, bottom, top))]
        drawn.append(layered(layers, data=data, width=_WIDTH, height=_HEIGHT, title=PANELS[probe]))
    whole: alt.HConcatChart = alt.hconcat(*drawn, spacing=24).resolve_scale(
        color="independent", shape="independent"
    )
    return whole


def _marks(
    run: Run, probe: str, x: alt.X, y: alt.Y, ends: tuple[float, float, float, float]
) -> list[alt.Chart]:
    low, high, bottom, top = ends
    drawn = lines(run, probe)
    rows: list[dict[str, Any]] = []
    for fit in fits(run, probe):
        name = path_name(fit.path)
        for block, share, short in ((fit.half, 0.5, "½"), (fit.ninety, 0.9, "90 %")):
            value = share * fit.beta
            if name in drawn and low < block < high and drawable(value) and bottom < value < top:
                text = f"{name}: {short} of its bandwidth from blocks of {format_bytes(block)}"
                rows.append({"x": block, "value": value, "name": short, "text": text})
    if not rows:
        return []
    rings = alt.Chart(inline(rows))
    return [
        rings.mark_point(shape="circle", size=150, filled=False, style="crossed").encode(
            x=x, y=y, tooltip=alt.Tooltip("text:N")
        ),
        rings.mark_text(style="name", dy=16, dx=6, align="left").encode(x=x, y=y, text=alt.Text("name:N")),
    ]


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for probe, verb in PANELS.items():
        words = curves.in_words(
            lines(run, probe), lambda spot: f"{format_rate(spot.value)} in blocks of {format_bytes(spot.x)}"
        )
        if words:
            parts.append(f"{verb}, {words}")
    text = "Two line charts, axes logarithmic: bandwidth of the disk against the size of a block. "
    return text + ". ".join(parts) + "."


def table(run: Run) -> Table:
    """Every point of every curve."""
    columns = (
        Column("operation"),
        Column("path"),
        Column("block", "bytes"),
        Column("all bytes over all time", "bytes_per_s"),
        Column("slowest repeat", "bytes_per_s"),
        Column("fastest repeat", "bytes_per_s"),
        Column("median call", "ns"),
        Column("blocks", "count"),
        Column("disturbed"),
    )
    rows = []
    for probe, verb in PANELS.items():
        median = {(path_name(r.point.path), r.point.block_bytes): r.value for r in timed(run, probe)}
        for name, curve in lines(run, probe).items():
            rows += [
                (
                    verb,
                    name,
                    spot.x,
                    spot.value,
                    spot.low,
                    spot.high,
                    median.get((name, int(spot.x))),
                    spot.samples,
                    "yes" if spot.disturbed else "no",
                )
                for spot in curve
            ]
    return Table(columns, tuple(rows))
