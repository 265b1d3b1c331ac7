"""Page faults."""

from __future__ import annotations

from latlab.charts import faults as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns, format_percent
from latlab.view.evidence import evidence

_PAGE = 4096
#: A mode of fewer faults is a tail.
_WORTH_SAYING = 0.1
_CAPTION = (
    "One hill a kind of fault: high where many faults took that long. A diamond marks each mode with its"
    " share; a stroke, the slow end."
)


def section(run: Run, probes: Probes) -> Section:
    """Every kind of fault."""
    return Section(
        id="faults",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=evidence(run, chart.PROBE),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    found = {(kind.record.point.operation, kind.record.point.pages): kind for kind in chart.kinds(run)}
    first = found.get(("first-write", "4k"))
    if first is None or not first.record.value:
        return ()
    value = first.record.value
    text = (
        f"The first write to a page of 4 KiB costs {format_ns(value)}: a program gets new memory at"
        f" {format_ns(value * 2**20 / _PAGE)} a MiB."
    )
    humps = sorted((mode for mode in first.modes if mode.share >= _WORTH_SAYING), key=lambda mode: mode.at)
    if len(humps) > 1:
        several = f"{format_percent(humps[-1].share)} of these faults take {format_ns(humps[-1].at)}"
        return (text, several + (f": likely {humps[-1].likely}." if humps[-1].likely else "."))
    huge = found.get(("first-write", "huge"))
    if huge is not None and huge.record.value and huge.record.point.size_bytes:
        size, cost = huge.record.point.size_bytes, huge.record.value
        each = cost * _PAGE / size
        return (
            text,
            f"One of {format_bytes(size)} costs {format_ns(cost)}, which is {format_ns(each)} for 4 KiB.",
        )
    return (text,)
