"""The probes as a table, and a plan as one line or as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from latlab import units
from latlab.cli.terminal.screen import Line, Screen, styled


def probe_lines(probes: Sequence[Mapping[str, Any]], screen: Screen) -> list[Line]:
    """Every probe: its id, the question that it answers, what it touches and needs."""
    lines: list[Line] = []
    for probe in probes:
        name = screen.fit(probe["id"])
        first = f"{name}  "
        title = screen.wrapped(probe["title"], first=first, rest=" " * 4)
        title[0].mark(0, len(name), "bold")
        lines += title
        lines += screen.wrapped(probe["question"], first="    ", rest="    ")
        for label, key in (("touches", "touches"), ("needs", "needs")):
            if probe.get(key):
                words = f"{label}: {', '.join(probe[key])}"
                lines += [
                    styled(line.text, "dim") for line in screen.wrapped(words, first="    ", rest="      ")
                ]
        if probe.get("saturates"):
            note = "saturates what other programs share: left out by --gentle"
            lines += [styled(line.text, "dim") for line in screen.wrapped(note, first="    ", rest="      ")]
    return lines


def plan_line(plan: Mapping[str, Any], screen: Screen) -> list[Line]:
    """`about 20 s · up to 4 CPUs · up to 3.0 GiB of memory · writes 0 B, reads no file`."""
    cpus = int(plan.get("cpus") or 1)
    parts = [
        f"about {units.format_seconds(float(plan.get('seconds') or 0.0))}",
        "1 CPU" if cpus == 1 else f"up to {cpus} CPUs",
        f"up to {units.format_bytes(int(plan.get('memory_bytes') or 0))} of memory",
        f"files: reads {units.format_bytes(int(plan.get('read_bytes') or 0))}, "
        f"writes {units.format_bytes(int(plan.get('written_bytes') or 0))}",
    ]
    return screen.wrapped(" · ".join(parts), first="will take: ", rest="  ")


def plan_lines(plan: Mapping[str, Any], screen: Screen) -> list[Line]:
    """What each probe of a plan would do."""
    rows = [("probe", "points", "time", "CPUs", "memory", "writes")]
    rows += [
        (
            screen.fit(probe["id"]),
            units.format_count(probe["points"]),
            units.format_seconds(probe["seconds"]),
            str(probe["cpus"]),
            units.format_bytes(probe["memory_bytes"]),
            units.format_bytes(probe["written_bytes"]),
        )
        for probe in plan.get("probes") or []
    ]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
        ]
        text = screen.fit(" " + "  ".join(cells))
        lines.append(styled(text, "dim") if number == 0 else Line(text))
    return lines
