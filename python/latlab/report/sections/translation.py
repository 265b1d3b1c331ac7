"""Paired chains."""

from __future__ import annotations

from latlab.charts import translation as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.ladder import curve_findings
from latlab.run.run import Run
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.evidence import evidence

_CAPTION = (
    "Both chains visit the same number of cache lines; only the number of pages differs, so the"
    " gap between them is"
    " the price of translation. Shaded: where a translation buffer was found to end."
)


def section(run: Run, probes: Probes) -> Section:
    """What translation costs, and what a huge page is worth here."""
    return Section(
        id="translation",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE) if chart.lines(run) else (),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    lines = chart.lines(run)
    packed, spread = (lines.get(chart.SERIES["4k", order]) for order in ("packed", "spread"))
    sentences = []
    if packed and spread and packed[-1].x == spread[-1].x:
        cost = spread[-1].value - packed[-1].value
        if cost > 0:
            sentences.append(
                f"Visiting {format_count(spread[-1].x)} lines costs {format_ns(cost)} more a line"
                " when each is in a page"
                f" of its own: {format_ns(spread[-1].value)} against {format_ns(packed[-1].value)}."
            )
    page = curve_findings(run).get("effective_page_bytes")
    if isinstance(page, int | float) and page > 0:
        sentences.append(
            f"Where huge pages were asked for, the hardware translates pages of {format_bytes(page)}."
        )
    return tuple(sentences)
