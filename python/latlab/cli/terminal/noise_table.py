"""What interrupted a CPU: one sentence, a row for each cause, the periodic ones, the evidence there was."""

from __future__ import annotations

from collections.abc import Sequence

from latlab import units
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.run import disturbances
from latlab.run.disturbances import UNEXPLAINED, cause_name, percent, rate, with_causes
from latlab.run.noise import CauseRow, Confusion, Noise, PeriodicInterference, Rung, Score, Stalls
from latlab.text import aligned, clean

#: Kinds of interrupts that are told, the most frequent.
_COUNTED = 5
#: Why a disturbance that was tried is none that could be found.
_NOT_MADE = {
    "still-away": "while the loop was still interrupted by the one before",
    "off-cpu": "due while the loop was interrupted",
    "nobody-listened": "while latlab was not recording",
    "not-interrupted": "while the CPU ran another program, which this interrupt does not reach",
    "same-gap": "in the same gap as another: the interrupt flag shows only one",
}


def noise_lines(noise: Noise, screen: Screen) -> list[Line]:
    """Everything that was found, the verdict first."""
    lines = screen.wrapped(disturbances.verdict(noise), style="bold")
    if noise.causes:
        lines += [Line(), *_causes(noise.causes, screen)]
    if noise.periodic:
        lines += [Line(), styled(screen.fit("found by their period alone"), "bold")]
        for source in noise.periodic:
            lines += screen.wrapped(_period(source), first="  ", rest="    ")
    lines.append(Line())
    for sentence in [*_shares(noise), *_doubts(noise)]:
        lines += screen.wrapped(sentence)
    return [*lines, Line(), *_levels(noise.levels, screen)]


def self_test_lines(found: Confusion, screen: Screen) -> list[Line]:
    """What was done, what of it was found, and what cannot be seen here."""
    seen = list(found.causes)
    worst = min((score.recall for score in found.causes.values()), default=None)
    if worst is None:
        verdict = f"With this permission, only periodic causes of gaps can be found on CPU {found.cpu}."
    else:
        found_of = "All" if worst == 1 else f"At least {percent(worst, down=True)}"
        verdict = (
            f"{found_of} of the disturbances made on CPU {found.cpu} were found with evidence of their cause"
            f" ({', '.join(cause_name(name) for name in seen)})."
        )
    rows = [("made", "", "found", "recall", "precision")]
    for name, score in found.causes.items():
        rows.append(
            (
                cause_name(name),
                f"{score.injected:,}",
                f"{score.found:,}",
                percent(score.recall, down=True),
                percent(score.precision, down=True),
            )
        )
    stalls = found.stalls
    rows.append(
        (
            cause_name("busy-stall"),
            f"{stalls.injected:,}",
            f"{stalls.unexplained:,}*",
            percent(stalls.recall) if stalls.injected else "–",
            "–",
        )
    )
    lines = [*screen.wrapped(verdict, style="bold"), Line(), *_table(rows, screen)]
    lines += screen.wrapped("* no evidence names a busy stall: these came out unexplained, as they must")
    made: dict[str, Score | Stalls] = {**found.causes, "busy-stall": found.stalls}
    for name, tried in made.items():
        if tried.not_injected:
            lines += screen.wrapped(_not_made(name, tried))
    lines += [Line(), styled(screen.fit("attributed to"), "bold")]
    for name, row in found.matrix.items():
        taken = ", ".join(
            f"{cause_name(cause)} {count:,}"
            for cause, count in sorted(row.items(), key=lambda each: -each[1])
        )
        lines += screen.wrapped(f"{cause_name(name)}: {taken or 'none was made'}", first="  ", rest="    ")
    for name in found.unseen:
        lines += screen.wrapped(f"not seen here: {cause_name(name)}: {found.unseen_because.get(name, '')}")
    if found.lost_records:
        lines += screen.wrapped(f"{found.lost_records:,} kernel records were lost because buffers were full")
    return [*lines, Line(), *_levels(found.levels, screen)]


def _not_made(name: str, tried: Score | Stalls) -> str:
    """What was tried in vain, so that nobody takes a busy machine's few for all."""
    vain = sum(tried.not_injected.values())
    reasons = ", ".join(
        f"{count:,} {_NOT_MADE.get(why) or clean(why, most=40)}"
        for why, count in sorted(tried.not_injected.items(), key=lambda each: -each[1])
    )
    return f"not made: {cause_name(name)}: {vain:,} of {vain + tried.injected:,} that were tried ({reasons})"


def _causes(rows: tuple[CauseRow, ...], screen: Screen) -> list[Line]:
    table = [("cause", "a second", "time a second", "median", "largest", "share", "evidence")]
    table += [
        (
            cause_name(row.cause),
            rate(row.per_s),
            units.format_ns(row.ns_per_s),
            units.format_ns(row.median_ns),
            units.format_ns(row.largest_ns),
            percent(row.share_time),
            disturbances.evidence_of(row),
        )
        for row in sorted(disturbances.with_unexplained(rows), key=lambda row: row.cause == UNEXPLAINED)
    ]
    wide = _table(table, screen)
    if max(len(line.text) for line in wide) > screen.width:
        wide = _table([row[:3] + row[4:] for row in table], screen)
    if max(len(line.text) for line in wide) > screen.width:
        wide = _table([row[:3] + row[4:6] for row in table], screen)
    if max(len(line.text) for line in wide) > screen.width:
        wide = _table([(row[0], row[1], row[5]) for row in table], screen)
    lines = wide
    for row in rows:
        if row.who:
            names = ", ".join(f"{name} {count:,}" for name, count in row.who)
            lines += screen.wrapped(f"{cause_name(row.cause)}: {names}", first="  ", rest="    ")
    return lines


def _period(source: PeriodicInterference) -> str:
    return (
        f"{cause_name(source.cause)}, {source.hz:.3f} Hz: every {source.period_ns / 1e6:.5f} ms from"
        f" {source.phase_ns / 1e6:.3f} ms on, {source.hit:,} of {source.ticks:,} expected ticks"
        f" ({source.by_chance:,.0f} by chance), usually {units.format_ns(source.typical_ns)},"
        f" {percent(source.share_time)} of the time in gaps; {source.reason}"
    )


def _shares(noise: Noise) -> list[str]:
    said = [reported] if (reported := with_causes(noise.explained)) else []
    if noise.unprivileged is not None:
        if reported := with_causes(noise.unprivileged.explained):
            said.append(f"for an ordinary user of this machine: {reported}")
        ticks = noise.unprivileged.timer_ticks
        if ticks is not None:
            said.append(
                f"timer ticks by their period alone, against tracepoints: {percent(ticks.recall, down=True)}"
                f" of {ticks.truly:,} found, {percent(ticks.precision, down=True)} of "
                f"{ticks.found:,} correct"
            )
    causes = {row.cause for row in noise.causes}
    if "interrupt" in causes and noise.counted.interrupts:
        said.append(_counted(noise))
    if "outside" in causes:
        said.append(
            "outside this kernel: the kernel was not entered and the loop only reads the clock; the "
            "host, the firmware or the hardware took that time"
        )
    return said


def _counted(noise: Noise) -> str:
    """What the kernel counted, where gaps are known to be some interrupt but not which."""
    most = ", ".join(
        f"{clean(one.what, most=40)} {rate(one.count / noise.seconds)}"
        for one in noise.counted.interrupts[:_COUNTED]
    )
    return f"counted on this CPU, per second: {most}; it is unknown which of these caused the gaps"


def _doubts(noise: Noise) -> list[str]:
    doubts = []
    if not noise.pinned:
        doubts.append(
            "the thread could not be pinned to one CPU: its migrations are among the unexplained gaps"
        )
    if noise.lost_records:
        doubts.append(
            f"{noise.lost_records:,} kernel records were lost because buffers were full: some causes "
            "are missing"
        )
    if noise.dropped_gaps:
        doubts.append(
            f"{noise.dropped_gaps:,} gaps did not fit into memory and are missing: use a higher --threshold"
        )
    if noise.stopped_by == "interrupted":
        doubts.append(f"interrupted after {units.format_seconds(noise.seconds)}")
    return doubts


def _levels(rungs: Sequence[Rung], screen: Screen) -> list[Line]:
    lines = screen.wrapped(f"evidence: {disturbances.seen_by(rungs)}", style="dim")
    for rung in rungs:
        if rung.reason is not None:
            state = "not all of" if rung.available else "without"
            lines += screen.wrapped(f"{state} {rung.level}: {rung.reason}", rest="  ", style="dim")
    return lines


def _table(rows: Sequence[tuple[str, ...]], screen: Screen) -> list[Line]:
    """The first column and the last of words to the left, numbers to the right."""
    words = (0, -1) if rows[0][-1] == "evidence" else (0,)
    heads, *lines = aligned([[screen.fit(cell) for cell in row] for row in rows], words)
    return [styled(heads, "bold"), *map(Line, lines)]
