"""What keeps programs from this CPU, when, with which period, and what that does to every figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from latlab.run import disturbances
from latlab.run.disturbances import PROBE, UNEXPLAINED, Standing, cause_name, heard_in, rate
from latlab.run.noise import CauseRow
from latlab.run.run import Run
from latlab.units import format_count, format_ns, format_ns_as_asked, format_seconds
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.plot import Drawing, Row
from latlab.view.points import MOST_POINTS, began_at, drawable
from latlab.view.table import Cell, Listing, Quantity, listed, table_of
from latlab.view.topic import Chart, Surprise, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

#: Points of each cause, the longest gaps: more are a band of ink.
_MOST: Final = 120
#: Causes with a colour of their own; what nothing explains always has one.
_NAMED: Final = 4
#: Fewer gaps are in step with every rate by chance.
_FEWEST: Final = 50
#: Rates that are looked at: of programs and of kernels' ticks, and the first overtones of those.
_SLOWEST_HZ, _FASTEST_HZ = 2.0, 1100.0
#: Far below a period of the fastest.
_BIN_NS: Final = 1e5
#: Longer recordings are looked at in their first part: periods show in half a minute.
_LONGEST_NS: Final = 60e9
#: Lengths of operations for which it is said how many meet a gap.
_OPERATIONS_NS: Final = (1e2, 1e3, 1e4, 1e5)
#: A tenth of a percent is what a quiet machine's ticks take.
_QUIET_SHARE: Final = 0.001


class Gap(NamedTuple):
    """When the CPU was interrupted, since the first clock read, for how long, and by what."""

    at_s: float
    ns: float
    cause: str


class Spectrum(NamedTuple):
    """Which gaps come with a period.

    Attributes:
        in_step: By rate, Hz: length of the mean of all gaps on the circle of one period, 1 if in one phase.
        chance: What that reaches without any period.
        found: The periods that were found, each with its rate, Hz.
    """

    in_step: Mapping[float, float]
    chance: float
    found: Sequence[tuple[str, float]]


Causes = Sequence[CauseRow]
Gaps = Mapping[str, Sequence[Gap]]


def causes(run: Run) -> Causes:
    """The one with most time first; what nothing explains is among them even when there is none of it."""
    heard = heard_in(run)
    return disturbances.with_unexplained(heard[1].causes) if heard is not None and heard[1].gaps else ()


def _picture_of_causes(rows: Causes) -> Drawing:
    parts = [
        f"{cause_name(row.cause)}: {rate(row.per_s)} a second, {format_ns(row.ns_per_s)} of each second"
        for row in rows
    ]
    words = f"Bars: gaps a second and their time, by cause. {'; '.join(parts)}."
    return Drawing(words, lambda: _drawn_causes(rows))


def _drawn_causes(rows: Causes) -> AnyChart:
    """Two panels of bars from zero with the same rows: gaps a second, and time a second."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, drawing  # noqa: PLC0415 - as above

    names = [cause_name(row.cause) for row in rows]
    says = [
        f"{cause_name(row.cause)}: {rate(row.per_s)} a second, median {format_ns(row.median_ns)}, largest"
        f" {format_ns(row.largest_ns)}"
        for row in rows
    ]

    def panel(title: str, values: list[tuple[float, str]], label: str, *, first: bool) -> AnyChart:
        data: list[Row] = [
            {"row": name, "x": value, "label": figure, "text": text}
            for name, (value, figure), text in zip(names, values, says, strict=True)
        ]
        # A figure stands to the right of its bar.
        scale = alt.Scale(domain=[0, 1.4 * max(values)[0] or 1.0], nice=False)
        x = alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(labelExpr=label, tickCount=3, grid=True))
        look = {"labels": first, "labelPadding": 6, "labelLimit": 190}
        y = axes.names_y("row", names, look, paddingInner=0.35)
        bar = alt.Chart().mark_bar(style="level", height=17)
        figure = alt.Chart().mark_text(style="name", align="left", dx=5)
        layers = [
            bar.encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
            figure.encode(x=x, y=y, text=alt.Text("label:N")),
        ]
        return drawing.layered(layers, data=drawing.inline(data), width=215, height=30 * len(rows))

    often = [(row.per_s, rate(row.per_s)) for row in rows]
    long = [(row.ns_per_s, format_ns(row.ns_per_s, digits=2)) for row in rows]
    return alt.hconcat(
        panel("gaps a second", often, "format(datum.value, ',~r')", first=True),
        panel("time in gaps, a second", long, axes.DURATION_FROM_ZERO, first=False),
        spacing=24,
    )


def gaps(run: Run) -> Gaps:
    """By cause, the one with most time first, unexplained last."""
    heard = heard_in(run)
    if heard is None:
        return {}
    record = heard[0]
    start = began_at(record)
    by_cause: dict[str, list[Gap]] = {}
    for sample in record.tail:
        if drawable(sample.value) and sample.at_ns >= start:
            name = cause_name(sample.cause or UNEXPLAINED)
            by_cause.setdefault(name, []).append(Gap((sample.at_ns - start) / 1e9, sample.value, name))
    unexplained = by_cause.pop(UNEXPLAINED, [])
    ordered = sorted(by_cause.items(), key=lambda item: -sum(gap.ns for gap in item[1]))
    others = [gap for _, own in ordered[_NAMED:] for gap in own]
    last = {"other causes": others, UNEXPLAINED: unexplained}
    return dict(ordered[:_NAMED]) | {name: own for name, own in last.items() if own}


def _longest(found: Gaps) -> Gaps:
    """The longest of each cause, in order of time."""
    return {name: sorted(sorted(own, key=lambda gap: -gap.ns)[:_MOST]) for name, own in found.items()}


def _picture_of_gaps(found: Gaps) -> Drawing:
    parts = [
        f"{name}: {format_count(len(own))}, the longest {format_ns(max(gap.ns for gap in own))}"
        for name, own in found.items()
    ]
    words = f"Gaps of a thread that only reads the clock, each at its time, by cause. {'; '.join(parts)}."
    return Drawing(words, lambda: _drawn_gaps(_longest(found)))


def _drawn_gaps(found: Gaps) -> AnyChart:
    """Time along x, the gap's length on a log axis, one shape and colour a cause."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, curves, drawing  # noqa: PLC0415 - as above

    rows: list[Row] = [
        {
            "series": series,
            "x": round(at, 6),
            "y": float(f"{ns:.4g}"),
            "text": f"{at:.4f} s: {format_ns(ns)}, {cause}",
        }
        for series, own in found.items()
        for at, ns, cause in own
    ]
    low, high = axes.widened([row["y"] for row in rows], down=1.3, up=1.4)
    last = max(row["x"] for row in rows)
    scale = alt.Scale(domain=[-0.01 * last, 1.01 * last + 1e-6], nice=False)
    ticks = alt.Axis(grid=False, tickCount=8)
    x = alt.X("x:Q", title="seconds since the first clock read", scale=scale, axis=ticks)
    color, shape = curves.series_encodings(list(found))
    y = axes.duration_y("y", "the CPU was interrupted for", low, high)
    points = alt.Chart().mark_point(size=22, filled=True, opacity=0.75)
    layers = [points.encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N"))]
    return drawing.layered(layers, data=drawing.inline(rows), width=curves.WIDTH, height=curves.HEIGHT)


def spectrum(run: Run) -> Spectrum | Absent | None:
    """How far all gaps are in step with each rate, where there are enough of them."""
    heard = heard_in(run)
    if heard is None:
        return None
    record, noise = heard
    in_step = _in_step([sample.at_ns for sample in record.tail])
    if not in_step:
        return Absent(f"fewer than {_FEWEST} gaps, or too short a time")
    found = [
        (f"{cause_name(one.cause)}, {one.hz:,.4g} Hz", one.hz)
        for one in disturbances.standing_causes(noise)
        if _SLOWEST_HZ <= one.hz <= _FASTEST_HZ
    ]
    return Spectrum(in_step, by_chance(len(record.tail)), found)


def _in_step(at_ns: Sequence[float]) -> dict[float, float]:
    """The strongest rate of each of many equal steps of a log axis; empty with too few gaps."""
    import numpy as np  # noqa: PLC0415 - only with gaps

    times = np.array(at_ns)
    if times.size < _FEWEST:
        return {}
    times -= times.min()
    times = times[times < _LONGEST_NS]
    bins = int(times.max() / _BIN_NS) + 1
    if times.size < _FEWEST or bins < 2 * 1e9 / _SLOWEST_HZ / _BIN_NS:
        return {}
    counts = np.bincount((times / _BIN_NS).astype(int), minlength=bins)
    # Twice the length: between two rates of the transform a comb would lose a third of its height.
    strength = np.abs(np.fft.rfft(counts, 2 * bins)) / times.size
    hz = np.fft.rfftfreq(2 * bins, _BIN_NS / 1e9)
    edges = np.geomspace(_SLOWEST_HZ, _FASTEST_HZ, MOST_POINTS)
    found = {}
    for low, high in itertools.pairwise(edges):
        first, last = np.searchsorted(hz, (low, high))
        if last > first:
            best = first + int(np.argmax(strength[first:last]))
            found[float(hz[best])] = float(strength[best])
    return found


def by_chance(gaps: int) -> float:
    """What the strongest of as many rates reaches without any period, once in twenty (Rayleigh)."""
    return math.sqrt(math.log(MOST_POINTS / 0.05) / gaps)


def _picture_of_spectrum(found: Spectrum) -> Drawing:
    best, most = max(found.in_step.items(), key=lambda line: line[1])
    words = (
        f"How far the gaps are in step with each rate from {_SLOWEST_HZ:g} to {_FASTEST_HZ:g} a second."
        f" Strongest at {best:,.1f}, {most:.0%} in step; chance reaches {found.chance:.0%}."
        f" Found: {', '.join(name for name, _ in found.found) or 'no period was found'}."
    )
    return Drawing(words.replace("%", " %"), lambda: _drawn_spectrum(found))


def _drawn_spectrum(found: Spectrum) -> AnyChart:
    """A line over rates; dotted: what chance reaches; named: the periods that were found."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, curves, drawing  # noqa: PLC0415 - as above

    scale = alt.Scale(type="log", domain=[_SLOWEST_HZ, _FASTEST_HZ], nice=False)
    axis = alt.Axis(values=axes.decades(_SLOWEST_HZ, _FASTEST_HZ, (1, 2, 5)), format=",~r", grid=True)
    x = alt.X("x:Q", title="rate, times a second", scale=scale, axis=axis)
    top = min(1.0, 1.25 * max(found.in_step.values()))
    scale = alt.Scale(domain=[0, top], nice=False, clamp=True)
    y = alt.Y("y:Q", title="in step", scale=scale, axis=alt.Axis(format="%", tickCount=5, grid=True))
    rows = [
        {
            "x": float(f"{hz:.5g}"),
            "y": round(share, 4),
            "text": f"{hz:,.1f} a second: {share:.0%} in step".replace("%", " %"),
        }
        for hz, share in found.in_step.items()
    ]
    names = []
    for text, at in found.found:
        nearest = min(found.in_step, key=lambda hz: abs(math.log(hz / at)))
        names.append({"x": float(f"{at:.5g}"), "y": found.in_step[nearest], "text": text})
    line, chance, name = (alt.Chart(drawing.inline(own)) for own in (rows, [{"y": found.chance}], names))
    layers = [
        line.mark_line(style="level", strokeWidth=1.2).encode(x=x, y=y, tooltip=alt.Tooltip("text:N")),
        chance.mark_rule(style="reported").encode(y=y),
    ]
    if names:
        layers.append(name.mark_text(style="name", dy=-9).encode(x=x, y=y, text=alt.Text("text:N")))
    return drawing.layered(layers, width=curves.WIDTH, height=curves.HEIGHT - 60)


def prose(run: Run) -> Iterator[str]:
    """How often and by what, and how many of the noticeable gaps have a cause."""
    heard = heard_in(run)
    if heard is not None:
        yield disturbances.verdict(heard[1])
        if explained := disturbances.with_causes(heard[1].explained):
            yield f"{explained[:1].upper()}{explained[1:]}."


def _listings(run: Run) -> tuple[Listing, ...]:
    """What the standing causes do to figures, and all gaps together."""
    heard = heard_in(run)
    if heard is None:
        return ()
    standing = disturbances.standing_causes(heard[1])
    everything = disturbances.all_gaps(heard[1])
    return listed(
        "Periodic interference, and how many operations of each length meet it",
        standing if everything is None else [*standing, everything],
        ("cause", "text", lambda one: cause_name(one.cause)),
        ("times a second", "number", lambda one: float(f"{one.hz:.4g}")),
        # Of all of them together there is a mean, and nothing that is usual.
        ("usually takes", "ns", lambda one: None if one is everything else one.gap_ns),
        *map(_hit, _OPERATIONS_NS),
        ("in the p99.9 from", "ns", lambda one: one.touches_from_ns(0.999)),
        ("of every mean", "share", lambda one: one.share),
    )


def _hit(length_ns: float) -> tuple[str, Quantity, Callable[[Standing], Cell]]:
    """A column: one of how many operations of this length meets it."""
    title = f"hit, of {format_ns_as_asked(length_ns)}"
    return title, "text", lambda one: f"1 in {format_count(one.one_in(length_ns))}"


def _evidence(run: Run) -> Iterator[str]:
    heard = heard_in(run)
    if heard is None:
        return
    record, noise = heard
    yield (
        f"{format_count(noise.gaps)} gaps among {format_count(record.work.ops)} clock reads in "
        f"{format_seconds(noise.seconds)} on CPU {noise.cpu}."
    )
    # The first line counts operations, which these are not.
    yield from evidence(run, PROBE)[1:]
    yield f"Causes from {disturbances.seen_by(noise.levels) or 'nothing'}."
    yield from (f"Without {rung.level}: {rung.reason}." for rung in noise.levels if not rung.available)


def surprise(run: Run) -> Surprise | None:
    """Which share of its time the CPU was interrupted, where that is more than on a quiet machine."""
    heard = heard_in(run)
    if heard is None or heard[1].lost_share <= _QUIET_SHARE:
        return None
    noise = heard[1]
    standing = disturbances.standing_causes(noise)
    effect = f" The {disturbances.effect(standing[0])}." if standing else ""
    score = 0.4 * math.log2(noise.lost_share / _QUIET_SHARE)
    return Surprise("the-cpu-is-taken-away", score, f"{disturbances.verdict(noise)}{effect}")


TOPIC: Final = Topic(
    Chart(
        id="noise_causes",
        title="What interrupts the CPU, and for how much of its time?",
        caption="Each gap counts for the cause that covers most of it. Gaps without evidence are "
        "unexplained and have their own row.",
        probe=PROBE,
        measured=causes,
        picture=_picture_of_causes,
        table=lambda rows: table_of(
            rows,
            ("cause", "text", lambda row: cause_name(row.cause)),
            ("gaps a second", "number", lambda row: float(f"{row.per_s:.4g}")),
            ("time a second", "ns", lambda row: row.ns_per_s),
            ("median", "ns", lambda row: row.median_ns),
            ("largest", "ns", lambda row: row.largest_ns),
            ("share of the time in gaps", "share", lambda row: row.share_time),
            ("evidence", "text", disturbances.evidence_of),
        ),
    ),
    others=(
        Chart(
            id="noise_timeline",
            title="When was the CPU interrupted, and by what?",
            caption="One point per gap, the longest 120 of each cause. A row of points at one height "
            "and equal distances is periodic.",
            probe=PROBE,
            measured=gaps,
            picture=_picture_of_gaps,
            table=lambda found: table_of(
                sorted(
                    (round(at, 6), ns, cause) for own in _longest(found).values() for at, ns, cause in own
                ),
                ("at", "seconds", lambda gap: gap[0]),
                ("interrupted for", "ns", lambda gap: gap[1]),
                ("cause", "text", lambda gap: gap[2]),
            ),
        ),
        Chart(
            id="noise_spectrum",
            title="Which gaps come with a period?",
            caption="How closely the gaps follow a rate: 100 % if all came at the same phase of its "
            "period. Chance exceeds the dotted line once in twenty. Periodic interference also shows "
            "at multiples of its rate; the periods that were found are named.",
            probe=PROBE,
            measured=spectrum,
            picture=_picture_of_spectrum,
            table=lambda found: table_of(
                found.in_step.items(),
                ("times a second", "number", lambda line: float(f"{line[0]:.5g}")),
                ("in step", "share", lambda line: round(line[1], 4)),
            ),
        ),
    ),
    id="noise",
    title="What interrupts programs on this CPU?",
    shown=heard_in,
    prose=prose,
    listings=_listings,
    evidence=_evidence,
    surprise=surprise,
)
