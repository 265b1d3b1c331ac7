"""Prefetching by the hardware and by the program."""

from __future__ import annotations

from latlab.charts import prefetch as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_percent
from latlab.view.evidence import evidence

_CAPTION = (
    "Left: loads that wait for each other, at a fixed stride; dotted, the same in an order that nothing can"
    " foresee. Right: a program that asks for later nodes while it works on this one."
)


def section(run: Run, probes: Probes) -> Section:
    """By stride, then by distance."""
    return Section(
        id="prefetch",
        title=chart.TITLE,
        sentences=(*_hardware(run), *_software(run)),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _hardware(run: Run) -> tuple[str, ...]:
    curve, random = chart.strided(run), chart.at_random(run)
    if not curve or random is None:
        return ()
    first = curve[0]
    hidden = 1 - first.value / random.value
    text = (
        f"A walk with a load every {format_bytes(first.x)} costs {format_ns(first.value)} a load, in random"
        f" order {format_ns(random.value)}"
    )
    return (text + (f": the hardware hides {format_percent(hidden)}." if hidden > 0 else "."),)


def _software(run: Run) -> tuple[str, ...]:
    walks = [walk for name, walk in chart.distances(run).items() if name.startswith(chart.WALKS["list-walk"])]
    if not walks or walks[-1][0].x != 0:
        return ()
    without, best = walks[-1][0], min(walks[-1], key=lambda spot: spot.value)
    if best.value > 0.9 * without.value:
        return ("Asking for list nodes ahead of their use gains less than a tenth here.",)
    return (
        f"Asking for list nodes {best.x:.0f} ahead brings a node from {format_ns(without.value)} to"
        f" {format_ns(best.value)}.",
    )
