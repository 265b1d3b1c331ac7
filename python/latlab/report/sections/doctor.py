"""What distorts figures on this machine."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.run.run import Run
from latlab.view.prose import Notice, sentence

_ORDER = ("warning", "caution", "note")


def section(run: Run) -> Section:
    """The doctor's findings at the time of the run, the gravest first."""
    findings = sorted(run.header.doctor, key=lambda finding: _ORDER.index(finding.severity))
    notices = tuple(Notice(f.severity, f.title, sentence(f.effect), f.remedy or "") for f in findings)
    return Section(
        id="doctor",
        title="What distorts these figures on this machine?",
        sentences=() if notices else ("Nothing was found that distorts them.",),
        notices=notices,
    )
