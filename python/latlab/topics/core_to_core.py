"""A cache line there and back between two CPUs: every pair that was measured, as a map."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.units import format_cpus, format_ns
from latlab.view.evidence import evidence
from latlab.view.plot import Drawing, yes_or_no
from latlab.view.points import is_disturbed, with_figures
from latlab.view.table import Table, of_range, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

Pairs = Mapping[str, "list[Pair]"]
PROBE: Final = "memory.core_to_core"
_OPERATIONS: Final = {"compare-and-swap": "compare and swap", "load-store": "load and store"}
#: More rows than this are joined: a map of 496 pairs can still be read, and stays small in the file.
_MOST_PLACES: Final = 32
_SIDE: Final = 300
_MOST_CLUSTERS: Final = 6


@dataclass(frozen=True, slots=True)
class Pair:
    """Two CPUs, or two groups of neighbours: first, second, ns a round trip, whether to doubt it."""

    first: str
    second: str
    value: float
    low: float
    high: float
    samples: int
    disturbed: bool


def pairs(run: Run) -> dict[str, list[Pair]]:
    """The pairs that were measured, by operation."""
    found: dict[str, list[Pair]] = {}
    for operation, name in _OPERATIONS.items():
        own = []
        for record in with_figures(run, PROBE, "batch_mean"):
            first, second = record.point.from_cpu, record.point.to_cpu
            if record.point.operation != operation or first is None or second is None or first == second:
                continue
            value = record.value or 0.0
            low, high = record.interval or (value, value)
            one, two = sorted((first, second))
            own.append(Pair(str(one), str(two), value, low, high, record.samples, is_disturbed(record)))
        if own:
            found[name] = sorted(own, key=lambda pair: (int(pair.first), int(pair.second)))
    return found


def cpus(found: list[Pair]) -> list[int]:
    """The CPUs of these pairs, ascending."""
    return sorted({int(cpu) for pair in found for cpu in (pair.first, pair.second)})


def joined(found: list[Pair]) -> tuple[list[Pair], list[str]]:
    """The pairs as they are drawn, and the names of the rows: neighbours together where there are many CPUs.

    A cell of several pairs is their median; it is doubted when most of them are.
    """
    numbers = cpus(found)
    many = -(-len(numbers) // _MOST_PLACES)
    if many == 1:
        return found, [str(number) for number in numbers]
    groups = [numbers[start : start + many] for start in range(0, len(numbers), many)]
    names = {number: f"{group[0]}–{group[-1]}" for group in groups for number in group}
    cells: dict[tuple[str, str], list[Pair]] = {}
    for pair in found:
        cells.setdefault((names[int(pair.first)], names[int(pair.second)]), []).append(pair)
    drawn = [
        Pair(
            first,
            second,
            statistics.median(pair.value for pair in cell),
            min(pair.low for pair in cell),
            max(pair.high for pair in cell),
            sum(pair.samples for pair in cell),
            sum(pair.disturbed for pair in cell) * 2 > len(cell),
        )
        for (first, second), cell in cells.items()
    ]
    return drawn, list(dict.fromkeys(names.values()))


def _picture(found: Pairs) -> Drawing:
    parts = []
    for name, own in found.items():
        best, worst = (f(own, key=lambda pair: pair.value) for f in (min, max))
        middle = statistics.median(pair.value for pair in own)
        doubted = sum(pair.disturbed for pair in own)
        parts.append(
            f"{name}, {len(own)} pair{'' if len(own) == 1 else 's'} of {len(cpus(own))} CPUs:"
            f" {format_ns(best.value)} (CPU {best.first} and {best.second}) to {format_ns(worst.value)}"
            f" (CPU {worst.first} and {worst.second}), median {format_ns(middle)}"
            + (f"; {doubted} disturbed" if doubted else "")
        )
    about = "Map of pairs of CPUs: time of a cache line there and back."
    return Drawing(f"{about} {'. '.join(parts)}.", lambda: _drawn(found))


def _drawn(found: Pairs) -> AnyChart:
    """A map an operation: the stronger the colour, the longer the way; a cross on what to doubt."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    values = [pair.value for own in found.values() for pair in own]
    # Equal pairs look equal: the scale never stretches less than a factor of two.
    low, high = min(values), max(*values, 2 * min(values))
    panels = [_panel(name, own, low, high) for name, own in found.items()]
    return alt.hconcat(*panels, spacing=36)


def _panel(name: str, found: list[Pair], low: float, high: float) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import matrix  # noqa: PLC0415 - as above

    drawn, names = joined(found)
    rows = [
        {
            "a": pair.first,
            "b": pair.second,
            "ns": pair.value,
            "figure": f"{pair.value:,.0f}" if pair.value >= 100 else f"{pair.value:.3g}",  # noqa: PLR2004 - three digits
            "doubt": int(pair.disturbed),
        }
        for pair in drawn
    ]
    scale = alt.Scale(domain=[low, high], range=[0.1, 0.62], clamp=True)
    ends = [f(pair.value for pair in drawn) for f in (min, max)]
    return matrix.panel(
        rows,
        names,
        alt.FillOpacity("ns:Q", scale=scale, legend=None),
        title=f"{name}: {format_ns(ends[0])} to {format_ns(ends[1])}",
        ends=("CPU", "CPU"),
        tips={"a": "CPU", "b": "and CPU", "figure": "ns"},
        side=_SIDE,
    )


def _table(found: Pairs) -> Table:
    """Every pair, or every group of pairs as drawn where there are many."""
    return table_of(
        [(name, pair) for name, own in found.items() for pair in joined(own)[0]],
        ("exchange", "text", lambda at: at[0]),
        ("CPU", "text", lambda at: at[1].first),
        ("and CPU", "text", lambda at: at[1].second),
        ("there and back, median", "ns", lambda at: at[1].value),
        *of_range("ns", lambda at: at[1]),
        ("samples", "count", lambda at: at[1].samples),
        ("disturbed", "text", lambda at: yes_or_no(at[1].disturbed)),
    )


def prose(run: Run) -> Iterator[str]:
    """The first operation over all pairs."""
    for name, own in list(pairs(run).items())[:1]:
        values = [pair.value for pair in own]
        spread = f"; {format_ns(min(values))} to {format_ns(max(values))} over {len(values)} pairs"
        yield (
            f"A cache line goes from one CPU to another and back in {format_ns(statistics.median(values))}"
            f" ({name}{spread if len(values) > 1 else ''})."
        )


def _evidence(run: Run) -> Iterator[str]:
    """With which CPUs are near each other, as the map says."""
    for entry in findings(run, PROBE).sections("operations")[:1]:
        clusters = entry.sections("clusters")
        named = []
        for cluster in clusters[:_MOST_CLUSTERS]:
            within = positive(cluster, "within_ns")
            name = f"CPUs {format_cpus(cluster.integers('cpus'))}"
            named.append(f"{name} ({format_ns(within)} apart)" if within is not None else name)
        more = len(clusters) - len(named)
        between = positive(entry, "between_ns")
        if named:
            text = "Groups: " + "; ".join(named) + (f"; {more} more" if more > 0 else "")
            yield text + (f"; {format_ns(between)} between groups." if between is not None else ".")
        if entry.flag("sampled"):
            yield "There are too many pairs to measure all: these are a sample."
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="core_to_core",
        title="How long does a cache line take to another CPU and back?",
        caption="Both halves show the same pairs. A stronger colour is a longer time; a cross marks "
        "a disturbed pair.",
        probe=PROBE,
        measured=pairs,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
    evidence=_evidence,
)
