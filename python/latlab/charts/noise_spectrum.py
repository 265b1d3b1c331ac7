"""Which gaps come with a period: how far all of them are in step with each rate."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from latlab.run.disturbances import PROBE, cause_name, heard_in, standing_causes
from latlab.run.run import Run
from latlab.view.axes import decades
from latlab.view.curves import HEIGHT, WIDTH
from latlab.view.drawing import inline, layered
from latlab.view.points import MOST_POINTS, why_absent
from latlab.view.table import Column, Table

ID = "noise_spectrum"
TITLE = "Which gaps come with a period?"
#: Fewer gaps are in step with every rate by chance.
_FEWEST = 50
#: Rates that are looked at: of programs and of kernels' ticks, and the first overtones of those.
_SLOWEST_HZ, _FASTEST_HZ = 2.0, 1100.0
#: Far below a period of the fastest.
_BIN_NS = 1e5
#: Longer recordings are looked at in their first part: periods show in half a minute.
_LONGEST_NS = 60e9


@dataclass(frozen=True, slots=True)
class Line:
    """One rate.

    Attributes:
        hz: How often a second.
        in_step: Length of the mean of all gaps on the circle of one period: 1 when all have one phase.
    """

    hz: float
    in_step: float


def spectrum(run: Run) -> list[Line]:
    """The strongest rate of each of many equal steps of a log axis; empty with too few gaps."""
    import numpy as np  # noqa: PLC0415 - only with gaps

    heard = heard_in(run)
    if heard is None:
        return []
    times = np.array([sample.at_ns for sample in heard[0].tail])
    if times.size < _FEWEST:
        return []
    times -= times.min()
    times = times[(times >= 0) & (times < _LONGEST_NS)]
    bins = int(times.max() / _BIN_NS) + 1
    if times.size < _FEWEST or bins < 2 * 1e9 / _SLOWEST_HZ / _BIN_NS:
        return []
    counts = np.bincount((times / _BIN_NS).astype(int), minlength=bins)
    # Twice the length: between two rates of the transform a comb would lose a third of its height.
    strength = np.abs(np.fft.rfft(counts, 2 * bins)) / times.size
    hz = np.fft.rfftfreq(2 * bins, _BIN_NS / 1e9)
    edges = np.geomspace(_SLOWEST_HZ, _FASTEST_HZ, MOST_POINTS)
    lines = []
    for low, high in itertools.pairwise(edges):
        first, last = np.searchsorted(hz, (low, high))
        if last > first:
            best = first + int(np.argmax(strength[first:last]))
            lines.append(Line(float(hz[best]), float(strength[best])))
    return lines


def by_chance(gaps: int) -> float:
    """What the strongest of as many rates reaches without any period, once in twenty (Rayleigh)."""
    return math.sqrt(math.log(MOST_POINTS / 0.05) / gaps)


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    if spectrum(run):
        return None
    if heard_in(run) is None:
        return why_absent(run, PROBE)
    return f"fewer than {_FEWEST} gaps, or too short a time"


def chart(run: Run) -> alt.LayerChart | None:
    """A line over rates; dotted: what chance reaches; named: the periods that were found."""
    lines = spectrum(run)
    heard = heard_in(run)
    if not lines or heard is None:
        return None
    top = min(1.0, 1.25 * max(line.in_step for line in lines))
    x = alt.X(
        "x:Q",
        title="rate, times a second",
        scale=alt.Scale(type="log", domain=[_SLOWEST_HZ, _FASTEST_HZ], nice=False),
        axis=alt.Axis(values=decades(_SLOWEST_HZ, _FASTEST_HZ, (1, 2, 5)), format=",~r", grid=True),
    )
    y = alt.Y(
        "y:Q",
        title="in step",
        scale=alt.Scale(domain=[0, top], nice=False, clamp=True),
        axis=alt.Axis(format="%", tickCount=5, grid=True),
    )
    rows = [
        {
            "x": float(f"{line.hz:.5g}"),
            "y": round(line.in_step, 4),
            "text": f"{line.hz:,.1f} a second: {line.in_step:.0%} in step".replace("%", " %"),
        }
        for line in lines
    ]
    names = _names(run, lines)
    layers = [
        alt.Chart(inline(rows))
        .mark_line(style="level", strokeWidth=1.2)
        .encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
        alt.Chart(inline([{"y": by_chance(len(heard[0].tail))}])).mark_rule(style="reported").encode(y=y),
    ]
    if names:
        layers.append(
            alt.Chart(inline(names)).mark_text(style="name", dy=-9).encode(x=x, y=y, text=alt.Text("text:N"))
        )
    return layered(layers, width=WIDTH, height=HEIGHT - 60)


def _names(run: Run, lines: list[Line]) -> list[dict[str, Any]]:
    """The periods that were found, each at the line nearest to it."""
    heard = heard_in(run)
    if heard is None:
        return []
    return [
        {
            "x": float(f"{one.hz:.5g}"),
            "y": min(lines, key=lambda line: abs(math.log(line.hz / one.hz))).in_step,
            "text": f"{cause_name(one.cause)}, {one.hz:,.4g} Hz",
        }
        for one in standing_causes(heard[1])
        if _SLOWEST_HZ <= one.hz <= _FASTEST_HZ
    ]


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    lines = spectrum(run)
    heard = heard_in(run)
    if not lines or heard is None:
        return "No spectrum of gaps."
    best = max(lines, key=lambda line: line.in_step)
    named = ", ".join(row["text"] for row in _names(run, lines)) or "no period was found"
    return (
        f"How far the gaps are in step with each rate from {_SLOWEST_HZ:g} to {_FASTEST_HZ:g} a second."
        f" Strongest at {best.hz:,.1f}, {best.in_step:.0%} in step; chance reaches"
        f" {by_chance(len(heard[0].tail)):.0%}. Found: {named}."
    ).replace("%", " %")


def table(run: Run) -> Table:
    """Every rate."""
    columns = (Column("times a second", "number"), Column("in step", "share"))
    return Table(columns, tuple((float(f"{line.hz:.5g}"), round(line.in_step, 4)) for line in spectrum(run)))
