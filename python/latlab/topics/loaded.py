"""Loaded latency: how much slower memory becomes while other CPUs use it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from latlab.findings import MemoryLoaded, MemoryLoadedCurve, MemoryLoadedDetails
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view.evidence import evidence
from latlab.view.figure import Absent, Figure, Measured, of_estimate, of_record
from latlab.view.plot import Axis, Ends, Mark, Plane, rings, yes_or_no
from latlab.view.points import Spot, why_absent, with_figures
from latlab.view.prose import Prose, sentence
from latlab.view.reading import concluded, details
from latlab.view.table import Table, of_range, table_of
from latlab.view.topic import Chart, Surprise, Topic

_MOST_CURVES: Final = 6
#: Times the slowest median. A p99 of windows that lost their CPU would flatten all curves; the table has it.
_CLIP: Final = 3.0
#: Servers go from 85 to 130 ns idle to 200 to 600 ns saturated (Mess benchmark); less may be one noisy point.
_LEAST_FACTOR: Final = 1.5
_NO_LOAD: Final = Measured(0.0, "bytes_per_s")
_QUIET: Final = """
    A load from memory takes {{ idle.bare }} while the machine is idle and {{ loaded.bare }} while other
    threads move {{ load.bare }} ({{ curve }}), {{ slowdown.bare }} times as long.

    Waiting starts to grow at {{ knee }}: stay below that where latency matters.
"""
_DISTURBED: Final = """
    A load from memory takes {{ idle.bare }} without load and {{ loaded.bare }} while other threads move
    {{ load.bare }} ({{ curve }}).

    Other programs used the CPUs meanwhile and may have caused these figures: measure again on a "
    "quiet machine.
"""
_SURPRISE: Final = """
    While other threads move {{ peak.bare }}, a load from memory takes {{ full.bare }} instead of
    {{ idle.bare }}: {{ factor.bare }} times as long, with nothing else changed.
"""


class Point(NamedTuple):
    """Latency at one load: what the other threads moved, one dependent load, p99 of windows of loads."""

    load: Measured
    latency: Measured
    p99: Figure


class Curves(NamedTuple):
    """A curve for each mix and number of threads, ascending in load; idle begins each. Knees by curve."""

    points: dict[str, list[Point]]
    knees: dict[str, tuple[Measured, Measured]]

    @property
    def idle(self) -> Figure:
        """Latency without load."""
        starts = (own[0] for own in self.points.values())
        return next((at.latency for at in starts if at.load == _NO_LOAD), Absent("it was not measured idle"))


def name(read_percent: int, threads: int) -> str:
    """What a curve is called."""
    return f"{read_percent} % reads, {threads} thread{'' if threads == 1 else 's'}"


def measured(run: Run) -> Curves | Absent:
    """Points from their records, which know range, samples and doubt; knees from the findings."""
    found = concluded(run, MemoryLoaded)
    records = with_figures(run, MemoryLoaded.PROBE, "batch_mean")
    idle = [at for record in records if not record.point.threads and (at := _point(record, _NO_LOAD))]
    kinds: dict[tuple[int, int], list[Point]] = {}
    for record in records:
        if record.point.threads and (at := _point(record, _load(record))):
            kinds.setdefault((-(record.point.read_percent or 0), record.point.threads), []).append(at)
    if not kinds:
        return Absent(
            "only memory without load was measured" if records else why_absent(run, MemoryLoaded.PROBE)
        )
    points = {
        name(-percent, threads): sorted([*idle, *own], key=lambda at: at.load.value)
        for (percent, threads), own in sorted(kinds.items())[:_MOST_CURVES]
    }
    knees = {}
    for curve in found.curves if found else ():
        each, knee = name(curve.read_percent, curve.threads), _knee(curve)
        if each in points and knee is not None:
            knees[each] = knee
    return Curves(points, knees)


def _load(record: Record) -> Figure:
    found = details(record, MemoryLoadedDetails)
    return of_estimate(None if found is None else found.load_bytes_per_s, "bytes_per_s")


def _point(record: Record, load: Figure) -> Point | None:
    latency = of_record(record)
    if isinstance(load, Absent) or isinstance(latency, Absent):
        return None
    p99 = of_estimate(record.summary.p99 if record.summary else None, "ns")
    return Point(load, latency, p99 if (p99.value or 0.0) >= latency.value else Absent("below the median"))


def _knee(curve: MemoryLoadedCurve) -> tuple[Measured, Measured] | None:
    if curve.knee is None:
        return None
    load = of_estimate(curve.knee.load_bytes_per_s, "bytes_per_s")
    latency = of_estimate(curve.knee.latency_ns, "ns")
    return None if isinstance(load, Absent) or isinstance(latency, Absent) else (load, latency)


def plot(curves: Curves) -> Plane:
    """Linear axes from zero, as such curves are drawn: the level part, the knee and the climb."""
    return Plane(
        x=Axis("what the other threads move meanwhile", "bytes_per_s", up=1.08, zero=True),
        y=Axis("one dependent load", "ns", up=1.1, zero=True, clip=_CLIP),
        lines={each: [_spot(each, at) for at in own] for each, own in curves.points.items()},
        tails=True,
        marks=lambda ends: _marks(curves, ends),
        about=_words(curves),
        said="",
    )


def _spot(each: str, at: Point) -> Spot:
    now = at.latency
    says = f"{each}: {_said(at)}"
    return Spot(at.load.value, now.value, now.low, now.high, now.samples, now.disturbed, at.p99.value, says)


def _marks(curves: Curves, ends: Ends) -> Iterator[Mark]:
    """A level for latency without load; a ring at each knee, the first with its name."""
    idle = curves.idle
    if isinstance(idle, Measured):
        row = {"x": ends.right, "value": idle.value, "name": f"idle: {idle.bare}"}
        yield Mark("rule", [row], {"y": "value"}, {"style": "reported"})
        look = {"style": "note", "align": "right", "dx": -4, "dy": 10}
        yield Mark("text", [row], {"x": "x", "y": "value", "text": "name:N"}, look)
    knees = [
        {"x": load.value, "value": latency.value, "text": f"knee, {each}: {latency.bare} at {load}"}
        for each, (load, latency) in curves.knees.items()
        if load.value <= ends.right and latency.value <= ends.top
    ]
    yield from rings(knees, 200)
    if knees:
        look = {"style": "name", "dy": 21}
        yield Mark("text", knees, {"x": "x", "y": "value", "text": "name:N"}, look, first="knee")


def _said(at: Point) -> str:
    slow = f", p99 of windows {at.p99.bare}" if isinstance(at.p99, Measured) else ""
    return f"{at.latency.bare} {f'while {at.load.bare} move' if at.load.value else 'without load'}{slow}"


def _words(curves: Curves) -> str:
    ends = []
    for each, own in curves.points.items():
        first, last = own[0], own[-1]
        start = f"at {first.load.bare}" if first.load.value else "idle"
        ends.append(f"{each}: {first.latency.bare} {start}, {last.latency.bare} at {last.load.bare}")
    knees = "; ".join(f"{each} at {load}" for each, (load, _) in curves.knees.items())
    return (
        "Line chart: latency of one dependent load against what other threads move meanwhile."
        f" {'; '.join(ends)}. {f'Knees: {knees}' if knees else 'No knee was found'}."
    )


def table(curves: Curves) -> Table:
    """Every point of every curve."""
    return table_of(
        [(each, at) for each, own in curves.points.items() for at in own],
        ("load", "text", lambda row: row[0]),
        ("moved meanwhile", "bytes_per_s", lambda row: row[1].load.value),
        ("one load, median", "ns", lambda row: row[1].latency.value),
        *of_range("ns", lambda row: row[1].latency),
        ("p99 of windows", "ns", lambda row: row[1].p99.value),
        ("samples", "count", lambda row: row[1].latency.samples),
        ("disturbed", "text", lambda row: yes_or_no(row[1].latency.disturbed)),
    )


def prose(curves: Curves) -> Prose:
    """The first curve: reading with all threads."""
    first, points = next(iter(curves.points.items()))
    idle, last = curves.idle, points[-1]
    disturbed = points[0].latency.disturbed or last.latency.disturbed
    return Prose(
        "" if isinstance(idle, Absent) else _DISTURBED if disturbed else _QUIET,
        curve=first,
        idle=idle,
        loaded=last.latency,
        load=last.load,
        slowdown=last.latency / idle,
        knee=curves.knees[first][0] if first in curves.knees else Absent("no knee was found"),
    )


def _evidence(run: Run) -> Iterator[str]:
    """Why a curve has no knee, each reason once, and what holds for every probe."""
    found = concluded(run, MemoryLoaded)
    yield from map(
        sentence, dict.fromkeys(curve.note for curve in found.curves if curve.note) if found else ()
    )
    yield from evidence(run, MemoryLoaded.PROBE)


def surprise(found: MemoryLoaded | None) -> Surprise | None:
    """The curve on which a load becomes slowest."""
    reported = []
    for curve in found.curves if found else ():
        idle, full = of_estimate(curve.idle_ns, "ns"), of_estimate(curve.saturated_ns, "ns")
        peak, factor = of_estimate(curve.peak_bytes_per_s, "bytes_per_s"), full / idle
        if isinstance(peak, Measured) and isinstance(factor, Measured) and factor.value >= _LEAST_FACTOR:
            text = Prose(_SURPRISE, idle=idle, full=full, peak=peak, factor=factor).sentences[0]
            reported.append((factor.value, text))
    if not reported:
        return None
    most, text = max(reported)
    return Surprise("load-makes-memory-slow", 1.5 * math.log2(most), text)


def _prose(run: Run) -> tuple[str, ...]:
    found = measured(run)
    return () if isinstance(found, Absent) else prose(found).sentences


CHART: Final = Chart(
    id="loaded",
    title="How much slower is memory under load from other CPUs?",
    caption="One CPU follows a chain of dependent loads while the others move data, faster from "
    "point to point. Left end: no other load. Ring: where waiting starts to grow. Thin line: 99 of "
    "100 windows of loads were faster; where it is missing, it lies above the chart or there were too "
    "few windows.",
    probe=MemoryLoaded.PROBE,
    measured=measured,
    picture=plot,
    table=table,
)
TOPIC: Final = Topic(
    CHART, prose=_prose, evidence=_evidence, surprise=lambda run: surprise(concluded(run, MemoryLoaded))
)
