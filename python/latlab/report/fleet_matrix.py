"""Pairs of hosts as a map: rows measure towards columns, hosts of a group beside each other."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from latlab.report.document import Figure
from latlab.text import some
from latlab.units import format_ns, format_rate
from latlab.view.table import Table, table_of
from latlab.view.theme import CSS_VARIABLES

if TYPE_CHECKING:
    from latlab.fleet.pairs import Links

#: With more hosts than this, groups are rows and columns, or as many hosts together as it takes.
_MOST: Final = 64
_MOST_BLOCKS: Final = 40
_SIDE: Final = 400
#: From this on colours have a legend of powers of ten.
_MANY_TIMES: Final = 200.0
#: The row of hosts without a group.
_NO_GROUP: Final = "no group"


class Cell(NamedTuple):
    """What pairs from one place to another have: their number, and medians."""

    a: str
    b: str
    pairs: int
    rtt_ns: float
    rate: float


def figure(found: Links) -> Figure:
    """The map of a survey in which at least one pair was measured."""
    names, place_of = _places(found)
    cells = _cells(found, place_of)
    several = any(name not in found.groups for name in names)
    what = "group" if several and found.grouped > 1 else "block of hosts" if several else "host"
    trips, rates = [own.rtt_ns for own in cells], [own.rate for own in cells]
    said = (
        f"round trips of {format_ns(min(trips))} to {format_ns(max(trips))},"
        f" throughput of {format_rate(min(rates))} to {format_rate(max(rates))}"
    )
    more = " A cell is the median of its pairs." if several else ""
    borders = [] if several else [own[0] for own in _grouped(found, names)]
    if len(borders) > 1:
        more = f" Lines separate groups: {some([found.groups[host] or _NO_GROUP for host in borders], 12)}."
    return Figure(
        name="pairs",
        title=f"Pairs by {what}",
        spec=_spec(cells, names, borders),
        alt=f"Map of pairs of {len(names)} {what}s: {said}.",
        caption=f"The stronger the colour, the slower; empty: not measured.{more}",
        table=_table(cells, what),
    )


def _places(found: Links) -> tuple[list[str], Mapping[str, str]]:
    """Rows from the top, and in which one each host is."""
    hosts = sorted((own.names[0] for own in found.hosts), key=lambda own: _in_order(found.groups[own], own))
    if len(hosts) <= _MOST:
        return hosts, {host: host for host in hosts}
    if 1 < found.grouped <= _MOST:
        place_of = {host: found.groups[host] or _NO_GROUP for host in hosts}
    else:
        many = -(-len(hosts) // _MOST_BLOCKS)
        blocks = [hosts[start : start + many] for start in range(0, len(hosts), many)]
        place_of = {host: f"{block[0]}–{block[-1]}" for block in blocks for host in block}
    return list(dict.fromkeys(place_of.values())), place_of


def _grouped(found: Links, hosts: Sequence[str]) -> list[list[str]]:
    """The hosts of each group, which lie beside each other."""
    return [list(own) for _, own in groupby(hosts, key=lambda host: found.groups[host])]


def _in_order(*texts: str) -> list[tuple[bool, int, str]]:
    """By which texts are in order as people count: node2 before node10."""
    parts = [part for text in texts for part in (*re.split(r"(\d+)", text), "")]
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _cells(found: Links, place_of: Mapping[str, str]) -> list[Cell]:
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for own in found.measured:
        for a, b, rate in ((own.a, own.b, own.to), (own.b, own.a, own.back)):
            pairs.setdefault((place_of[a], place_of[b]), []).append((own.rtt_ns, rate))
    return [
        Cell(a, b, len(each), *(statistics.median(own) for own in zip(*each, strict=True)))
        for (a, b), each in sorted(pairs.items())
    ]


def _spec(cells: Sequence[Cell], names: Sequence[str], borders: Sequence[str]) -> dict[str, Any]:
    """Round trip and throughput side by side, with colours of one scale."""
    import altair as alt  # noqa: PLC0415 - takes some time to import

    from latlab.view import axes, matrix  # noqa: PLC0415 - see above
    from latlab.view.drawing import plain_spec, unchecked  # noqa: PLC0415 - see above

    # What a quarter of the cells have or better: with few hosts a slow one has half of them.
    quarter = len(cells) // 4
    best_ns, best = (
        sorted(own.rtt_ns for own in cells)[quarter],
        sorted(own.rate for own in cells)[-1 - quarter],
    )
    most = max(2.0, *(max(own.rtt_ns / best_ns, best / own.rate) for own in cells))
    legend = alt.Legend(
        title="times slower than the fastest quarter",
        values=axes.decades(1.0, most, (1, 2, 5) if most < _MANY_TIMES else (1,)),
        format="~r",
        titleLimit=260,
        symbolType="square",
        symbolFillColor=CSS_VARIABLES.s1,
    )
    # A figure in a cell can be read up to that colour.
    darkest = 0.62 if len(names) <= matrix.MOST_FIGURES else 0.95
    scale = alt.Scale(type="log", domain=[1, most], range=[0.14, darkest], clamp=True)
    parts = (
        ("Round trip", [(own.rtt_ns / best_ns, format_ns(own.rtt_ns)) for own in cells]),
        ("Throughput from row to column", [(best / own.rate, format_rate(own.rate)) for own in cells]),
    )
    with unchecked():
        panels = [
            matrix.panel(
                [
                    {"a": own.a, "b": own.b, "times": times, "figure": text, "pairs": own.pairs}
                    for own, (times, text) in zip(cells, figures, strict=True)
                ],
                names,
                alt.Opacity("times:Q", scale=scale, legend=legend),
                title=title,
                ends=("from", "to"),
                tips={"a": "from", "b": "to", "figure": title.split()[0].lower(), "pairs": "pairs"},
                side=_SIDE,
                angle=-90,
                mirrored=False,
                borders=borders[1:],
            )
            for title, figures in parts
        ]
        return plain_spec(alt.hconcat(*panels, spacing=36))


def _table(cells: Sequence[Cell], what: str) -> Table:
    return table_of(
        cells,
        (f"from {what}", "text", lambda own: own.a),
        ("to", "text", lambda own: own.b),
        ("pairs", "count", lambda own: own.pairs),
        ("round trip", "ns", lambda own: own.rtt_ns),
        ("throughput", "bytes_per_s", lambda own: own.rate),
    )
