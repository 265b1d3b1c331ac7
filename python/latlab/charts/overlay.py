"""One picture of several runs: ladders, curves and staircases overlaid, with what differs.

Each kind of picture has one outline: a panel a curve (reading, writing, ...), a line a machine. Charts of
what happened when, of one machine's own CPUs or of causes say nothing side by side and are not in the lists.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

import altair as alt

from latlab.charts import ladders, named
from latlab.charts.many import Figure, Machine, Part, by_machine, comparable, differences
from latlab.errors import UserError
from latlab.run.model import Record, Unit
from latlab.run.run import Run
from latlab.run.rung import Rung
from latlab.run.samples import Key, Quantile, Sample, samples_of
from latlab.topics import ladder
from latlab.topics.chapters import TOPICS
from latlab.units import format_bytes, format_count, format_ns, format_rate
from latlab.view import curves, distribution, stairs, vega
from latlab.view.axes import count_axis, widened
from latlab.view.drawing import layered, unchecked
from latlab.view.plot import Axis, yes_or_no
from latlab.view.points import Spot
from latlab.view.table import Quantity, Table, table_of
from latlab.view.theme import LIGHT, config
from latlab.view.topic import CurvesOfSeveral, StairsOfSeveral

#: Charts that topics draw.
TOPIC_CHARTS: Final = [chart for topic in TOPICS for chart in topic.charts]
Picture: TypeAlias = alt.LayerChart | alt.ConcatChart
_Drawn = TypeVar("_Drawn", Sequence[Spot], Record)
_PANEL_WIDTH, _PANEL_HEIGHT, _MOST_PANELS = 330, 250, 8
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


def checked(name: str, machines: Sequence[Machine]) -> tuple[list[Machine], list[str]]:
    """The machines as this chart may compare them, and what was left out.

    Raises:
        UserError: this chart has nothing to say of several runs, or fewer than two have data for it.
    """
    chart = named(name)
    if name not in NAMES:
        raise UserError(f"the chart {name} shows one run only; charts of several runs: {', '.join(NAMES)}")
    found, notes = comparable(machines)
    without = [chart.absence(machine.run) for machine in found]
    present = [machine for machine, why in zip(found, without, strict=True) if why is None]
    names = names_of(present)
    absences = {
        machine.name: why
        for machine, why in zip(found, without, strict=True)
        if why is not None and machine.name not in names
    }
    if len(names) < 2:  # noqa: PLR2004 - nothing to compare with
        who, why = next(iter(absences.items()), ("", "there is one run"))
        raise UserError(f"fewer than two of these runs have the chart {name}: {who}: {why}")
    notes += [f"{who} is not in the picture: {why}" for who, why in absences.items()]
    return present, notes


def sides_of(name: str, machines: Sequence[Machine]) -> dict[str, list[str]]:
    """Which of the machines have each part of a chart, also what only one of them has."""
    return {
        part: list({each.machine: None for own in places.values() for each in own})
        for part, places in _figures(name, machines, of_one=True).items()
    }


def names_of(machines: Iterable[Machine]) -> list[str]:
    """The names, each once: runs of one name are drawn as one."""
    return list(dict.fromkeys(machine.name for machine in machines))


def parts(name: str, machines: Sequence[Machine], kept: Sequence[Run] = ()) -> list[Part]:
    """What several machines have in common, compared; `kept` are other runs of the first one.

    Raises:
        UserError: no two of them measured the same of it.
    """
    figures = {part.name: part.figures for part in common(name, machines)}
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


def common(name: str, machines: Sequence[Machine]) -> list[Part]:
    """What several machines have in common, not judged."""
    return [
        Part(
            part,
            {},
            {at: found for at, found in own.items() if len({each.machine for each in found}) > 1},
        )
        for part, own in _figures(name, machines).items()
    ]


def _figures(
    name: str, machines: Sequence[Machine], *, of_one: bool = False
) -> dict[str, dict[str, list[Figure]]]:
    """What each machine has, by part and place; with `of_one` also what only one of them has."""
    least = 1 if of_one else 2
    if name == ladder.TOPIC.id:
        return {
            level: {"": [Figure(who, _of_rung(rung)) for who, rungs in own.items() for rung in rungs]}
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
    drawn = picture(name, found, own, names_of(found))
    title = alt.Title(
        f"{named(name).title.replace('this machine', f'{len(found)} machines')}",
        subtitle=[
            f"{len(found)} runs; intervals are each run's own. Cross: disturbed, not judged.",
            "Times: highest over lowest, with its interval. Cannot tell: smaller differences may go "
            "undetected.",
        ],
    )
    titled: Picture = drawn.properties(title=title, description=alt_text(name, own))
    titled.config = alt.Config(**config(LIGHT, background=True))
    return titled


def picture(
    name: str, machines: Sequence[Machine], own: Sequence[Part], names: Sequence[str], *, said: bool = True
) -> Picture:
    """What machines have in common, without a title and without colours.

    Args:
        name: The chart.
        machines: Those that have it.
        own: Its parts.
        names: All names of a document in which each keeps its colour.
        said: Whether verdicts stand beside what they are of.
    """
    with unchecked():
        if name == ladder.TOPIC.id:
            return ladders.drawn(names, own, said=said)
        if name in CURVES:
            return _curve_panels(name, machines, own, names, said=said)
        return _stair_panels(name, machines, own, names, said=said)


def alt_text(name: str, own: Sequence[Part]) -> str:
    """What the picture shows, in words."""
    said = "; ".join(f"{part.name}: {part.words}" for part in own)
    return f"{named(name).title} Several machines: {said}."


def table(name: str, own: Sequence[Part]) -> Table:
    """Every figure of these parts, a row a machine."""
    quantity: Quantity = CURVES[name].y.quantity if name in CURVES else "ns"
    value = CURVES[name].value if name in CURVES else "value" if name in STAIRS else "median"
    return table_of(
        [
            (part, at, who, ladders.together(samples))
            for part in own
            for at, figures in part.figures.items()
            for who, samples in by_machine(figures).items()
        ],
        ("what", "text", lambda row: row[0].name),
        ("at", "text", lambda row: row[1]),
        ("machine", "text", lambda row: row[2]),
        (value, quantity, lambda row: row[3].value),
        ("its interval from", quantity, lambda row: row[3].ends[0] if row[3].ends else None),
        ("to", quantity, lambda row: row[3].ends[1] if row[3].ends else None),
        ("disturbed", "text", lambda row: yes_or_no(row[3].disturbed)),
        ("difference", "text", lambda row: row[0].differences[row[1]].words if row[0].differences else None),
    )


# ---------------------------------------------------------------------------------------------------- ladder


def _rungs(machines: Sequence[Machine]) -> dict[str, dict[str, list[Rung]]]:
    """The rungs by level and machine, in the order of the longest ladder."""
    found: dict[str, dict[str, list[Rung]]] = {}
    for machine in machines:
        for rung in ladder.bars(machine.run):
            found.setdefault(rung.level, {}).setdefault(machine.name, []).append(rung)
    # A level that was not found is in its machine's ladder too, where it belongs.
    ladders = sorted((machine.run.ladder() for machine in machines), key=len, reverse=True)
    order = [rung.level for rungs in ladders for rung in rungs]
    return {level: found.get(level, {}) for level in dict.fromkeys(order)}


def _of_rung(rung: Rung) -> Sample:
    doubtful = any(flag.startswith("disturbed") for flag in rung.flags)
    key = Key(rung.probe, rung.path, "batch_mean", "p50")
    return Sample(key, "ns", 1, rung.latency_p50_ns or 0.0, rung.interval, doubtful, rung.resolution_ns)


# ---------------------------------------------------------------------------------------------------- curves


def _lines(
    name: str, machines: Sequence[Machine], *, least: int = 2
) -> dict[str, dict[str, list[Sequence[Spot]]]]:
    def curves_of(run: Run) -> dict[str, Sequence[Spot]]:
        return {part: curve for part, curve in CURVES[name].lines(run).items() if curve}

    return _by_panel(machines, curves_of, least)


def _by_panel(
    machines: Sequence[Machine], of: Callable[[Run], Mapping[str, _Drawn]], least: int
) -> dict[str, dict[str, list[_Drawn]]]:
    """What a chart draws of each run, by panel and machine; only what so many machines have."""
    found: dict[str, dict[str, list[_Drawn]]] = {}
    for machine in machines:
        for panel, drawn in of(machine.run).items():
            found.setdefault(panel, {}).setdefault(machine.name, []).append(drawn)
    return dict([pair for pair in found.items() if len(pair[1]) >= least][:_MOST_PANELS])


def _at_places(name: str, part: str, own: Mapping[str, Sequence[Sequence[Spot]]]) -> dict[str, list[Figure]]:
    """The machines' figures by the name of their place on the axis."""
    outline = CURVES[name]
    unit: Unit = "bytes_per_s" if outline.y.quantity == "bytes_per_s" else "ns"
    by_x: dict[float, list[Figure]] = {}
    for place, who, spot in sorted(
        ((spot.x, who, spot) for who, runs in own.items() for curve in runs for spot in curve),
        key=lambda each: each[0],
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


def _curve(runs: Sequence[Sequence[Spot]]) -> Sequence[Spot]:
    """One curve to draw: of several runs the median at each place, and the lowest and the highest."""
    if len(runs) == 1:
        return runs[0]
    places: dict[float, list[Spot]] = {}
    for spot in (spot for curve in runs for spot in curve):
        places.setdefault(spot.x, []).append(spot)
    return [
        replace(
            spots[0],
            value=statistics.median(spot.value for spot in spots),
            low=min(spot.value for spot in spots),
            high=max(spot.value for spot in spots),
            disturbed=all(spot.disturbed for spot in spots),
        )
        for _, spots in sorted(places.items())
    ]


def _curve_panels(
    name: str, machines: Sequence[Machine], own: Sequence[Part], names: Sequence[str], *, said: bool
) -> alt.ConcatChart:
    outline = CURVES[name]
    panels = {
        part: {who: _curve(runs) for who, runs in lines.items()}
        for part, lines in _lines(name, machines).items()
    }
    spots = [spot for lines in panels.values() for spot in curves.everywhere(lines)]
    written = format_rate if outline.y.quantity == "bytes_per_s" else format_ns
    bottom, top = widened(end for spot in spots for end in (spot.low, spot.high))
    drawn = []
    for part in own:
        # Every panel has every machine: a machine has one colour and one shape in all of them.
        lines = {who: panels[part.name].get(who, ()) for who in names}
        x = _x_axis(outline.x, [spot.x for spot in spots])
        layers = curves.layers(
            lines, x, vega.y_axis(outline.y, "value", bottom, top), columns=_columns(names)
        )
        data = curves.rows(lines, lambda spot: f"{_place(outline, spot.x)}: {spot.stated(written)}")
        drawn.append(_panel(layers, data, part, said=said))
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


def _panel(layers: Sequence[alt.Chart], data: alt.Data, part: Part, *, said: bool) -> alt.LayerChart:
    drawn = layered(layers, data=data, width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
    titled: alt.LayerChart = drawn.properties(title=_title(part, said=said))
    return titled


def _title(part: Part, *, said: bool) -> alt.Title:
    """Two lines of verdict at most: a panel is narrow."""
    return alt.Title(part.name, subtitle=part.words.split("; ")) if said else alt.Title(part.name)


# ---------------------------------------------------------------------------------------------------- stairs


def _records(name: str, machines: Sequence[Machine], *, least: int = 2) -> dict[str, dict[str, list[Record]]]:
    return _by_panel(machines, STAIRS[name].records, least)


def _at_quantiles(own: Mapping[str, Sequence[Record]]) -> dict[str, list[Figure]]:
    """The machines' figures by the name of the quantile."""
    found: dict[str, list[Figure]] = {}
    for who, record in ((who, record) for who, records in own.items() for record in records):
        for sample in samples_of(record):
            found.setdefault(_QUANTILES[sample.key.quantile], []).append(Figure(who, sample))
    return found


def _middle(records: Sequence[Record]) -> Record:
    """One distribution to draw: of several runs the one with the middle median."""
    return sorted(records, key=lambda record: record.value or 0.0)[len(records) // 2]


def _stair_panels(
    name: str, machines: Sequence[Machine], own: Sequence[Part], names: Sequence[str], *, said: bool
) -> alt.ConcatChart:
    panels = {
        part: {who: distribution.steps(_middle(records)) for who, records in of.items()}
        for part, of in _records(name, machines).items()
    }
    ends = stairs.span({f"{part} {who}": s for part, of in panels.items() for who, s in of.items()})
    drawn: list[Any] = []
    for part in own:
        titles = (STAIRS[name].title, "share" if not drawn else None)
        panel = stairs.panel(panels[part.name], names, titles, ends, _PANEL_WIDTH, _PANEL_HEIGHT)
        drawn.append(panel.properties(title=_title(part, said=said)))
    return alt.concat(*drawn, columns=2, spacing=24)
