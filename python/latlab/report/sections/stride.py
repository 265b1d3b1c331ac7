"""Order of access."""

from __future__ import annotations

from latlab.charts import stride as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.evidence import evidence

_CAPTION = (
    "The same array, the same number of accesses; only their order differs. The gap is what"
    " prefetching hides."
)


def section(run: Run, probes: Probes) -> Section:
    """Sequential, strided, random."""
    return Section(
        id="stride",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found = list(chart.lines(run).items())
    if not found:
        return ()
    size, curve = found[-1]
    sequential, random = curve.get(chart.SEQUENTIAL), curve.get(chart.RANDOM)
    if sequential is None or random is None:
        return ()
    fast, slow = sequential.value, random.value
    text = (
        f"Over {size}, one access costs {format_ns(fast)} in sequential order and {format_ns(slow)} in"
        " random order"
    )
    return (text + (f": {slow / fast:.0f} times as much." if slow > 2 * fast else "."),)
