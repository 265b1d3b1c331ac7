"""The probes as a table, and a plan as one line or as a table."""

from __future__ import annotations

from collections.abc import Sequence

from latlab import units
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.run.core import Plan, ProbeInfo
from latlab.text import aligned


def probe_lines(probes: Sequence[ProbeInfo], screen: Screen) -> list[Line]:
    """Every probe: its id, the question that it answers, what it touches and needs."""
    lines: list[Line] = []
    for probe in probes:
        name = screen.fit(probe.id)
        first = f"{name}  "
        title = screen.wrapped(probe.title, first=first, rest=" " * 4)
        title[0].mark(0, len(name), "bold")
        lines += title
        lines += screen.wrapped(probe.question, first="    ", rest="    ")
        for label, words_of in (("touches", probe.touches), ("needs", probe.needs)):
            if words_of:
                words = f"{label}: {', '.join(words_of)}"
                lines += screen.wrapped(words, first="    ", rest="      ", style="dim")
        if probe.saturates:
            note = "saturates shared resources: left out by --gentle"
            lines += screen.wrapped(note, first="    ", rest="      ", style="dim")
    return lines


def plan_line(plan: Plan, screen: Screen) -> list[Line]:
    """`will take: about 30 s · up to 4 CPUs · up to 3 GiB of memory · reads and writes no file`."""
    seconds = units.format_seconds(plan.seconds)
    parts = [
        f"at most {seconds}, less where figures agree sooner" if plan.passes > 1 else f"about {seconds}",
        "1 CPU" if plan.cpus <= 1 else f"up to {plan.cpus} CPUs",
        f"up to {units.format_bytes(plan.memory_bytes)} of memory" if plan.memory_bytes else "little memory",
        f"writes at most {units.format_bytes(plan.written_bytes)}"
        if plan.written_bytes
        else "reads and writes no file",
    ]
    return screen.wrapped(" · ".join(parts), first="will take: ", rest="  ")


def plan_lines(plan: Plan, screen: Screen) -> list[Line]:
    """What each probe of a plan would do in one pass of rounds."""
    rows = [("probe", "points", "time", "CPUs", "memory", "writes")]
    rows += [
        (
            probe.id,
            units.format_count(probe.points),
            units.format_seconds(probe.seconds),
            str(probe.cpus),
            units.format_bytes(probe.memory_bytes),
            units.format_bytes(probe.written_bytes),
        )
        for probe in plan.probes
    ]
    if plan.layout is not None:
        seconds, written = plan.layout.seconds, plan.layout.written_bytes
        rows.append(
            ("the disk's test file", "", units.format_seconds(seconds), "1", "", units.format_bytes(written))
        )
    fitted = [[screen.fit(cell) for cell in row] for row in rows]
    heads, *lines = (f" {line}" for line in aligned(fitted, [0]))
    return [styled(heads, "dim"), *map(Line, lines)]
