"""A cache line on its way between CPUs."""

from __future__ import annotations

import statistics

from latlab.charts import core_to_core as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.units import format_cpus, format_ns
from latlab.view.evidence import evidence

_CAPTION = (
    "Both halves are the same pairs. The stronger the colour, the longer the way; a cross marks a pair that"
    " was disturbed."
)
_MOST_CLUSTERS = 6


def section(run: Run, probes: Probes) -> Section:
    """The map of pairs."""
    return Section(
        id="core_to_core",
        title=chart.TITLE,
        sentences=_pairs(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=(*_clusters(run), *evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _pairs(run: Run) -> tuple[str, ...]:
    found = chart.pairs(run)
    if not found:
        return ()
    name, own = next(iter(found.items()))
    values = [pair.value for pair in own]
    middle, low, high = statistics.median(values), min(values), max(values)
    text = f"A cache line goes from one CPU to another and back in {format_ns(middle)} ({name}"
    if len(values) > 1:
        text += f"; {format_ns(low)} to {format_ns(high)} over {len(values)} pairs"
    return (text + ").",)


def _clusters(run: Run) -> tuple[str, ...]:
    """Which CPUs are near each other, as the map says."""
    lines = []
    for entry in findings(run, chart.PROBE).sections("operations")[:1]:
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
            lines.append(text + (f"; {format_ns(between)} between groups." if between is not None else "."))
        if entry.flag("sampled"):
            lines.append("There are too many pairs to measure all: these are a sample of them.")
    return tuple(lines)
