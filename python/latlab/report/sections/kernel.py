"""What the kernel's services cost."""

from __future__ import annotations

from latlab.charts import kernel as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.operations import operation_rungs
from latlab.run.run import Run
from latlab.text import listed
from latlab.units import format_ns, format_ns_as_asked
from latlab.view.evidence import evidence
from latlab.view.points import with_figures

_CAPTION = (
    "On the axis equal distances are equal ratios. What was timed one by one has a whisker to its slow end;"
    " the rest are means over windows, which have no tail. A row that goes there and back is two switches."
)


def section(run: Run, probes: Probes) -> Section:
    """Calls, switches, wake-ups, threads, timers, locks."""
    return Section(
        id="kernel",
        title=chart.TITLE,
        sentences=_sentences(run),
        figures=figure(run, chart.ID, _CAPTION),
        evidence=tuple(f"{probe}: {line}" for probe in sorted(chart.PROBES) for line in evidence(run, probe)),
        methods=probes.methods_of(*chart.PROBES),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    costs = {rung.key: rung.latency_p50_ns for rung in operation_rungs(run)}
    parts = [
        f"{name} costs {format_ns(cost)}" if key == "syscall" else f"{name} {format_ns(cost)}"
        for key, name in (
            ("syscall", "a system call"),
            ("context-switch", "a switch to another thread"),
            ("wakeup", "waking a sleeping thread"),
            ("thread", "a thread"),
            ("process", "a process"),
        )
        if (cost := costs.get(key)) is not None
    ]
    sentences = []
    if parts:
        sentences.append(f"Here {listed(parts)}.")
    late = [r for r in with_figures(run, "kernel.timer", "per_op") if r.point.sleep_ns]
    if late:
        shortest = min(late, key=lambda record: record.point.sleep_ns or 0)
        sentences.append(
            f"A sleep of {format_ns_as_asked(shortest.point.sleep_ns)} ({shortest.point.operation}) ends"
            f" {format_ns(shortest.value)} late (median)."
        )
    return tuple(sentences)
