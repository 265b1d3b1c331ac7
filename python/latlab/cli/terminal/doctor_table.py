"""The doctor's findings as a list: what it is, what it does to figures, how to fix it."""

from __future__ import annotations

from collections.abc import Sequence

from latlab.cli.terminal.screen import Line, Screen
from latlab.run.model import Finding

#: A sign and a word, so that colour is not needed.
_SIGNS = {"warning": ("!!", "red"), "caution": ("! ", "yellow"), "note": ("· ", "cyan")}


def doctor_lines(findings: Sequence[Finding], screen: Screen) -> list[Line]:
    """All findings, gravest first, with effect and remedy."""
    if not findings:
        return [Line(screen.fit("no known cause distorts figures on this machine"))]
    lines: list[Line] = []
    for finding in findings:
        sign, style = _SIGNS.get(finding.severity, _SIGNS["note"])
        title = screen.wrapped(finding.title, first=f" {sign} ", rest="    ")
        lines += [
            line.mark(0, len(line.text), f"bold {style}" if index == 0 else "bold")
            for index, line in enumerate(title)
        ]
        lines += screen.wrapped(finding.effect, first="    ", rest="    ")
        if finding.remedy:
            lines += screen.wrapped(f"→ {finding.remedy}", first="    ", rest="      ", style="green")
        lines.append(Line())
    counts = {kind: sum(finding.severity == kind for finding in findings) for kind in _SIGNS}
    legend = {
        "warning": "!! some figures are wrong or missing",
        "caution": "! some are less certain",
        "note": "· good to know",
    }
    summary = ", ".join(f"{count} × {legend[kind]}" for kind, count in counts.items() if count)
    return lines + screen.wrapped(summary, first=" ", rest=" ", style="dim")
