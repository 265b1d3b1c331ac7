"""Order of access."""

from __future__ import annotations

from latlab.charts import stride as chart
from latlab.report.document import Section
from latlab.report.evidence import evidence
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns

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
    lines = chart.lines(run)
    sequential = lines.get("sequential")
    random = lines.get("random")
    if not sequential or not random or sequential[-1].x != random[-1].x:
        return ()
    fast, slow = sequential[-1].value, random[-1].value
    text = (
        f"Over {format_bytes(random[-1].x)}, one access costs {format_ns(fast)} in sequential order"
        f" and {format_ns(slow)} in random order"
    )
    return (text + (f": {slow / fast:.0f} times as much." if slow > 2 * fast else "."),)
