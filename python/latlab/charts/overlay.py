"""One picture of several runs: ladders, curves and staircases laid over one another, with what differs.

Each kind of picture has one outline: a panel a curve (reading, writing, ...), a line a machine. Charts of
what happened when, of one machine's own CPUs or of causes say nothing side by side and are not in the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import altair as alt

from latlab.charts import named
from latlab.charts.many import Difference, Figure, Machine, comparable, differences
from latlab.errors import UserError
from latlab.run.model import Record, Unit
from latlab.run.run import Run
from latlab.run.rung import Rung
from latlab.run.samples import Key, Quantile, Sample, samples_of
from latlab.topics import ladder
from latlab.topics.chapters import TOPICS
from latlab.units import format_bytes, format_count, format_ns, format_rate, format_stated
from latlab.view import curves, distribution, stairs, vega
from latlab.view.axes import count_axis, duration_x, widened
from latlab.view.drawing import inline, layered, unchecked
from latlab.view.plot import Axis
from latlab.view.points import Spot, drawable
from latlab.view.table import Cell, Column, Quantity, Table
from latlab.view.theme import LIGHT, config
from latlab.view.topic import CurvesOfSeveral, StairsOfSeveral

#: Charts that topics draw.
TOPIC_CHARTS: Final = [chart for topic in TOPICS for chart in topic.charts]
Picture: TypeAlias = alt.LayerChart | alt.ConcatChart
_Drawn = TypeVar("_Drawn", Sequence[Spot], Record)
_PANEL_WIDTH, _PANEL_HEIGHT, _MOST_PANELS = 330, 250, 8
#: Machines up to which each has its own line in a row of the ladder, and pixels of such a line.
_PIXELS = ((6, 9.0), (12, 5.0), (30, 2.4))
_LEAST_ROW = 26
_LEGEND_COLUMNS = 5
#: Quantiles of a distribution that are compared.
_QUANTILES: Final[dict[Quantile, str]] = {"p50": "median", "p99": "p99"}

CURVES: Final = {
    chart.id: chart.several for chart in TOPIC_CHARTS if isinstance(chart.several, CurvesOfSeveral)
}
STAIRS: Final = {
    chart.id: chart.several for chart in TOPIC_CHARTS if isinstance(chart.several, StairsOfSeveral)
}
_PROBES: Final = {chart.id: chart.probe for chart in TOPIC_CHARTS}
#: Every chart that says something of several runs.
NAMES: Final = (ladder.TOPIC.id, *CURVES, *STAIRS)


@dataclass(frozen=True, slots=True)
class Part:
    """One level of the ladder, curve or distribution, of all machines that have it.

    Attributes:
        name: Its name.
        differences: What was compared, by name: a size, a quantile; one without a name for a level.
        figures: What was compared, likewise.
    """

    name: str
    differences: dict[str, Difference]
    figures: dict[str, list[Figure]]

    @property
    def words(self) -> str:
        """What can be said of all of it in one line."""
        every = list(self.differences.items())
        if not every:
            return "not comparable: no point in common"
        if len(every) == 1:
            at, only = every[0]
            return f"{at}: {only.words}" if at else only.words
        apart = [(at, each) for at, each in every if each.kind == "changed"]
        if apart:
            at, most = max(apart, key=lambda pair: pair[1].ratio or 0.0)
            return f"{at}: {most.words}; differs at {len(apart)} of {len(every)}"
        unknown = [(at, each) for at, each in every if each.kind != "same"]
        if not unknown:
            return f"{every[0][1].words} at all {len(every)}"
        at, middle = unknown[len(unknown) // 2]
        same = len(every) - len(unknown)
        return f"{at}: {middle.words}{f'; the same at {same} of {len(every)}' if same else ''}"


def checked(name: str, machines: Sequence[Machine]) -> tuple[list[Machine], list[str]]:
    """The machines as this chart may compare them, and what was left out.

    Raises:
        UserError: this chart has nothing to say of several runs, or fewer than two have data for it.
    """
    chart = named(name)
    if name not in NAMES:
        raise UserError(
            f"the chart {name} shows one run only: nothing in it can be laid over another machine's;"
            f" several runs: {', '.join(NAMES)}"
        )
    found, notes = comparable(machines)
    absences = {machine.name: why for machine in found if (why := chart.absence(machine.run)) is not None}
    if len(found) - len(absences) < 2:  # noqa: PLR2004 - nothing to compare with
        who, why = next(iter(absences.items()), ("", "there is one run"))
        raise UserError(f"fewer than two of these runs have the chart {name}: {who}: {why}")
    notes += [f"{who} is not in the picture: {why}" for who, why in absences.items()]
    return [machine for machine in found if machine.name not in absences], notes


def parts(name: str, machines: Sequence[Machine], kept: Sequence[Run] = ()) -> list[Part]:
    """What several machines have in common, compared.

    Args:
        name: The chart.
        machines: At least two.
        kept: Other runs of the first machine, which say how far its runs lie apart.

    Raises:
        UserError: no two of them measured the same of it.
    """
    figures = {
        part: {at: found for at, found in own.items() if len(found) > 1}
        for part, own in _figures(name, machines).items()
    }
    if not figures:
        raise UserError(f"no chart {name} of these runs: no two of them measured the same")
    others = _figures(name, [Machine(run.id, run) for run in kept], of_one=True)
    found = iter(
        differences(
            [own for places in figures.values() for own in places.values()],
            [
                [each.sample for each in others.get(part, {}).get(at, ())]
                for part, places in figures.items()
                for at in places
            ],
            together=name == ladder.TOPIC.id,
        )
    )
    return [Part(part, {at: next(found) for at in places}, places) for part, places in figures.items()]


def _figures(
    name: str, machines: Sequence[Machine], *, of_one: bool = False
) -> dict[str, dict[str, list[Figure]]]:
    """What each machine has, by part and place; with `of_one` also what only one of them has."""
    least = 1 if of_one else 2
    if name == ladder.TOPIC.id:
        return {
            level: {"": [Figure(who, _of_rung(rung)) for who, rung in own.items()]}
            for level, own in _rungs(machines).items()
            if len(own) >= least
        }
    if name in CURVES:
        return {
            part: _at_places(name, part, own) for part, own in _lines(name, machines, least=least).items()
        }
    return {part: _at_quantiles(own) for part, own in _records(name, machines, least=least).items()}


def standalone(name: str, machines: Sequence[Machine], kept: Sequence[Run] = ()) -> Picture:
    """The picture, with its title, in the light theme on its own surface.

    Raises:
        UserError: see :func:`checked` and :func:`parts`.
    """
    found, _ = checked(name, machines)
    own = parts(name, found, kept)
    drawn: Picture
    with unchecked():
        if name == ladder.TOPIC.id:
            drawn = _ladder(found, own)
        elif name in CURVES:
            drawn = _curve_panels(name, found, own)
        else:
            drawn = _stair_panels(name, found, own)
    title = alt.Title(
        f"{named(name).title.replace('this machine', f'{len(found)} machines')}",
        subtitle=[
            f"{len(found)} runs, each figure with its own run's interval; a cross: disturbed, not judged.",
            "Times: lowest to highest, with its interval. Cannot tell: a smaller difference may not show.",
        ],
    )
    titled: Picture = drawn.properties(title=title, description=alt_text(name, own))
    titled.config = alt.Config(**config(LIGHT, background=True))
    return titled


def alt_text(name: str, own: Sequence[Part]) -> str:
    """What the picture shows, in words."""
    return (
        f"{named(name).title} Several machines: "
        + "; ".join(f"{part.name}: {part.words}" for part in own)
        + "."
    )


def table(name: str, machines: Sequence[Machine], kept: Sequence[Run] = ()) -> Table:
    """Every figure that was compared, a row a machine."""
    quantity: Quantity = CURVES[name].y.quantity if name in CURVES else "ns"
    columns = (
        Column("what"),
        Column("at"),
        Column("machine"),
        Column(CURVES[name].value if name in CURVES else "value" if name in STAIRS else "median", quantity),
        Column("its interval from", quantity),
        Column("to", quantity),
        Column("disturbed"),
        Column("difference"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            part.name,
            at,
            figure.machine,
            figure.sample.value,
            *(figure.sample.ends or (None, None)),
            "yes" if figure.sample.disturbed else "no",
            part.differences[at].words,
        )
        for part in parts(name, machines, kept)
        for at, figures in part.figures.items()
        for figure in figures
    ]
    return Table(columns, tuple(rows))


# ---------------------------------------------------------------------------------------------------- ladder


def _rungs(machines: Sequence[Machine]) -> dict[str, dict[str, Rung]]:
    """The rungs by level and machine, in the order of the longest ladder."""
    own = {machine.name: {rung.level: rung for rung in ladder.bars(machine.run)} for machine in machines}
    # A level that was not found is in its machine's ladder too, where it belongs.
    ladders = sorted((machine.run.ladder() for machine in machines), key=len, reverse=True)
    order = [rung.level for rungs in ladders for rung in rungs]
    return {
        level: {name: rungs[level] for name, rungs in own.items() if level in rungs}
        for level in dict.fromkeys(order)
    }


def _of_rung(rung: Rung) -> Sample:
    doubtful = any(flag.startswith("disturbed") for flag in rung.flags)
    key = Key(rung.probe, rung.path, "batch_mean", "p50")
    return Sample(key, "ns", 1, rung.latency_p50_ns or 0.0, rung.interval, doubtful, rung.resolution_ns)


def _ladder(machines: Sequence[Machine], own: Sequence[Part]) -> alt.LayerChart:
    names = [machine.name for machine in machines]
    rows: list[dict[str, Any]] = [
        {
            "name": part.name,
            "series": figure.machine,
            "x": sample.value,
            "low": low if drawable(low) else sample.value,
            "high": high if drawable(high) else sample.value,
            "doubt": int(sample.disturbed),
            "text": f"{part.name}, {figure.machine}: {format_stated(sample.value, sample.ends)}",
        }
        for part in own
        for figure in part.figures[""]
        for sample in [figure.sample]
        for low, high in [sample.ends or (None, None)]
    ]
    low, high = widened([end for row in rows for end in (row["low"], row["high"])], down=1.6, up=1.6)
    pixels = next((size for most, size in _PIXELS if len(names) <= most), _PIXELS[-1][1])
    height = round(max(_LEAST_ROW, pixels * len(names) + 8) * len(own))
    axis = alt.Axis(grid=True, ticks=False, domain=False, labelFontSize=13, labelPadding=8, tickBand="extent")
    y = alt.Y("name:N", title=None, sort=None, scale=alt.Scale(domain=[part.name for part in own]), axis=axis)
    offset = alt.YOffset("series:N", scale=alt.Scale(domain=names))
    x, from_low = (duration_x(field, "one access, logarithmic", low, high) for field in ("x", "low"))
    color, shape = _legend(names)
    data = alt.Chart(inline(rows))
    tip = alt.Tooltip("text:N")
    said = [{"name": part.name, "text": part.words} for part in own]
    layers = [
        data.mark_rule(strokeWidth=2).encode(
            x=from_low, x2=alt.X2("high:Q"), y=y, yOffset=offset, color=color
        ),
        data.mark_point(size=46 if len(names) <= _PIXELS[1][0] else 22, filled=True, opacity=1).encode(
            x=x, y=y, yOffset=offset, color=color, shape=shape, tooltip=tip
        ),
        data.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=110, angle=45, style="crossed")
        .encode(x=x, y=y, yOffset=offset, tooltip=tip),
        alt.Chart(inline(said))
        .mark_text(style="note", align="left", dx=8)
        .encode(x=alt.value(560), y=y, text=alt.Text("text:N")),
    ]
    return layered(layers, width=560, height=height)


def _legend(names: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    columns = _LEGEND_COLUMNS if len(names) > _LEGEND_COLUMNS else 0
    return curves.series_encodings(names, columns)


# ---------------------------------------------------------------------------------------------------- curves


def _lines(name: str, machines: Sequence[Machine], *, least: int = 2) -> dict[str, dict[str, Sequence[Spot]]]:
    return _by_panel(machines, CURVES[name].lines, least)


def _by_panel(
    machines: Sequence[Machine], of: Callable[[Run], Mapping[str, _Drawn]], least: int
) -> dict[str, dict[str, _Drawn]]:
    """What a chart draws of each run, by panel and machine; only what so many machines have."""
    own = {machine.name: of(machine.run) for machine in machines}
    panels = dict.fromkeys(panel for drawn in own.values() for panel in drawn)
    found = {panel: {who: drawn[panel] for who, drawn in own.items() if drawn.get(panel)} for panel in panels}
    return dict([pair for pair in found.items() if len(pair[1]) >= least][:_MOST_PANELS])


def _at_places(name: str, part: str, own: Mapping[str, Sequence[Spot]]) -> dict[str, list[Figure]]:
    """The machines' figures by the name of their place on the axis."""
    outline = CURVES[name]
    unit: Unit = "bytes_per_s" if outline.y.quantity == "bytes_per_s" else "ns"
    by_x: dict[float, list[Figure]] = {}
    for place, who, spot in sorted(
        ((spot.x, who, spot) for who, curve in own.items() for spot in curve), key=lambda each: each[0]
    ):
        key = Key(_PROBES[name], f"{part} {place}", "batch_mean", "p50")
        sample = Sample(key, unit, 1, spot.value, spot.ends, spot.disturbed)
        by_x.setdefault(place, []).append(Figure(who, sample))
    return dict(zip(_places(outline, by_x), by_x.values(), strict=True))


def _places(outline: CurvesOfSeveral, values: Iterable[float]) -> list[str]:
    """What each is called: 4,099 and 4,100 bytes are both 4 KiB, so they are written out."""
    shown = [(x, _place(outline, x)) for x in values]
    counts = Counter(text for _, text in shown)
    unit = "B" if outline.x.quantity == "bytes" else outline.at
    return [text if counts[text] == 1 else f"{x:,.12g} {unit}" for x, text in shown]


def _place(outline: CurvesOfSeveral, x: float) -> str:
    if outline.x.quantity == "bytes":
        return format_bytes(x)
    return f"{format_count(x)} {outline.at}"


def _curve_panels(name: str, machines: Sequence[Machine], own: Sequence[Part]) -> alt.ConcatChart:
    outline = CURVES[name]
    panels = _lines(name, machines)
    spots = [spot for lines in panels.values() for spot in curves.everywhere(lines)]
    written = format_rate if outline.y.quantity == "bytes_per_s" else format_ns
    bottom, top = widened(end for spot in spots for end in (spot.low, spot.high))
    names = [machine.name for machine in machines]
    drawn = []
    for part in own:
        # Every panel has every machine: a machine has one colour and one shape in all of them.
        lines = {who: panels[part.name].get(who, ()) for who in names}
        x = _x_axis(outline.x, [spot.x for spot in spots])
        layers = curves.layers(
            lines, x, vega.y_axis(outline.y, "value", bottom, top), columns=_columns(names)
        )
        data = curves.rows(lines, lambda spot: f"{_place(outline, spot.x)}: {spot.stated(written)}")
        drawn.append(_panel(layers, data, part))
    return alt.concat(*drawn, columns=2, spacing=24)


def _x_axis(axis: Axis, values: Sequence[float]) -> alt.X:
    """Of counts the powers of four have ticks."""
    if axis.unit != "count":
        return vega.x_axis(axis, values)
    ticks = [2**power for power in range(0, 40, 2) if min(values) <= 2**power <= max(values)]
    drawn = count_axis("x", axis.title, ticks or sorted({round(value) for value in values}))
    drawn["scale"]["domain"] = [min(values) / 1.2, max(values) * 1.2]
    return drawn


def _columns(names: Sequence[str]) -> int:
    return min(len(names), _LEGEND_COLUMNS)


def _panel(layers: Sequence[alt.Chart], data: alt.Data, part: Part) -> alt.LayerChart:
    drawn = layered(layers, data=data, width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
    titled: alt.LayerChart = drawn.properties(title=alt.Title(part.name, subtitle=_folded(part.words)))
    return titled


def _folded(words: str) -> list[str]:
    """Two lines at most: a panel is narrow."""
    head, mark, rest = words.partition("; within")
    return [head, f"within{rest}"] if mark else [head]


# ---------------------------------------------------------------------------------------------------- stairs


def _records(name: str, machines: Sequence[Machine], *, least: int = 2) -> dict[str, dict[str, Record]]:
    return _by_panel(machines, STAIRS[name].records, least)


def _at_quantiles(own: Mapping[str, Record]) -> dict[str, list[Figure]]:
    """The machines' figures by the name of the quantile."""
    found: dict[str, list[Figure]] = {}
    for who, record in own.items():
        for sample in samples_of(record):
            found.setdefault(_QUANTILES[sample.key.quantile], []).append(Figure(who, sample))
    return found


def _stair_panels(name: str, machines: Sequence[Machine], own: Sequence[Part]) -> alt.ConcatChart:
    records = _records(name, machines)
    names = [machine.name for machine in machines]
    panels = {
        part: {who: distribution.steps(record) for who, record in of.items()} for part, of in records.items()
    }
    ends = stairs.span({f"{part} {who}": s for part, of in panels.items() for who, s in of.items()})
    drawn: list[Any] = []
    for part in own:
        titles = (STAIRS[name].title, "share" if not drawn else None)
        panel = stairs.panel(panels[part.name], names, titles, ends, _PANEL_WIDTH, _PANEL_HEIGHT)
        drawn.append(panel.properties(title=alt.Title(part.name, subtitle=_folded(part.words))))
    return alt.concat(*drawn, columns=2, spacing=24)
