"""The page, as a document of the report's."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from types import ModuleType
from typing import Final

import altair as alt
from altair.utils import schemapi

from latlab.explain.beside import bounds_cells, proof_cells, proof_lines, sentences
from latlab.explain.judge import Judgement
from latlab.explain.model import Explained
from latlab.explain.page import bar, course, flame, lanes, roofline, tables
from latlab.explain.page.measured import newest
from latlab.explain.page.series import Series
from latlab.explain.prove import Proof
from latlab.explain.table import facts
from latlab.explain.verdict import signal_name
from latlab.installed import version
from latlab.report.document import Document, Figure, Section, cleaned
from latlab.run.core import describe
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_ns
from latlab.view.drawing import plain_spec
from latlab.view.prose import Notice
from latlab.view.table import Column, Listing, Table

_UNJUDGED: Final = Judgement()
_ABOUT_PAUSES: Final = {
    "Java": "Java: numbers and sums are those of jstat. The longest is that of the pauses that had "
    "ended at a scan; scans are 5 ms apart or more. Stops of all threads include the collector's.",
    "Go": "Go: numbers and sums are those of runtime.MemStats (NumGC, PauseTotalNs). All stops of one"
    " collection count as one pause. The counters go with their process: “at least” marks one that"
    " has ended. Pauses after the last scan are not counted; scans are 5 ms apart or more.",
    "V8": "V8: from a breakpoint at each of the two functions that Node calls when a pause begins "
    "and ends, in all threads. These are the pauses that --trace-gc lists. “At least” marks a process"
    " that was started under watch: pauses in its first milliseconds are not counted.",
}
"""What the pauses of each runtime are."""


def render(explained: Explained, judgement: Judgement = _UNJUDGED, proof: Proof | None = None) -> bytes:
    """The whole page."""
    from latlab.report import html  # noqa: PLC0415 - takes some time to import

    machine = describe().machine
    runs = newest(roofline.PROBES, machine)
    return html.render(document(explained, machine, runs, judgement, proof)).encode("utf-8")


def document(
    explained: Explained,
    machine: Machine,
    runs: Mapping[str, Run],
    judgement: Judgement = _UNJUDGED,
    proof: Proof | None = None,
) -> Document:
    """The page, ready for a renderer.

    Args:
        explained: What was found.
        machine: On what.
        runs: The newest runs of this machine by probe, for its measured curves.
        judgement: It beside this machine's limits.
        proof: What experiments have shown.
    """
    series = Series(explained)
    with schemapi.debug_mode(False):
        sections = (
            _answer(explained, series, sentences(explained, judgement, proof)),
            _ledger(explained),
            _savings(judgement, proof),
            _course(explained, series),
            _functions(explained, series),
            _lines(explained),
            _stages(explained),
            _files(explained),
            _roofline(explained, runs, judgement),
            _processes(explained),
            _path(explained),
            _locks(explained),
            _pauses(explained),
            _calls(explained),
            Section(id="seen", title="How was this measured?", statements=_seen(explained)),
        )
    name = _name(explained)
    return cleaned(
        Document(
            title=f"Where the time of {name} went",
            facts=tuple(fact for fact in _facts(explained, machine) if fact),
            notices=_notices(explained),
            sections=tuple(section for section in sections if section is not None),
            colophon=f"latlab {version()} · explain, rules {explained.rules_version}",
        )
    )


def _name(explained: Explained) -> str:
    arguments = explained.program.arguments
    if arguments:
        return clean(PurePath(arguments[0]).name or arguments[0], most=40)
    names = [each.name for each in explained.processes if each.pid == explained.program.pid]
    return clean(names[0] if names else "process", most=40) + f" ({explained.program.pid})"


def _facts(explained: Explained, machine: Machine) -> tuple[str, ...]:
    program = explained.program
    ended = (
        f"ended by {signal_name(program.signal)}"
        if program.signal is not None
        else f"exit code {program.exit_code}"
        if program.exit_code is not None
        else "still running"
    )
    cpus = machine.integer("cpu.logical_cpus")
    return (
        clean(shlex.join(program.arguments), most=160) if program.arguments else f"process {program.pid}",
        format_ns(1e9 * explained.wall_s),
        f"{explained.runs:,} runs" if explained.runs > 1 else "",
        ended,
        f"seen at level {explained.level} of 3",
        machine.text("cpu.model_name") or "",
        f"{cpus} CPUs" if cpus else "",
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
    )


def _notices(explained: Explained) -> tuple[Notice, ...]:
    found = []
    if not explained.closure.holds:
        found.append(
            Notice(
                "warning",
                "Accounting error",
                f"Categories sum to {100 * explained.closure.sum:.1f} % of wall time: distrust every share.",
            )
        )
    if explained.level > 1:
        reasons = [rung.reason for rung in explained.levels if rung.level < explained.level and rung.reason]
        found.append(
            Notice(
                "caution" if explained.level == 3 else "note",  # noqa: PLR2004 - the least
                f"Seen at level {explained.level} of 3",
                "; ".join(dict.fromkeys(map(str, reasons))),
                explained.raise_ or "",
            )
        )
    found += [Notice("caution", note, "") for note in explained.notes]
    return tuple(found)


def _figure(
    name: str, title: str, chart: alt.LayerChart | None, words: str, caption: str, table: Table
) -> tuple[Figure, ...]:
    if chart is None:
        return ()
    return (Figure(f"explain_{name}", title, plain_spec(chart), words, caption, table),)


def _drawn(name: str, page: ModuleType, explained: Explained, series: Series) -> tuple[Figure, ...]:
    """The picture of a module of this package."""
    chart, words = page.chart(explained, series), page.alt_text(explained)
    return _figure(name, page.TITLE, chart, words, page.caption(explained), page.table(explained))


def _answer(explained: Explained, series: Series, lines: Sequence[str]) -> Section:
    return Section(
        id="answer",
        title="Where does the time go?",
        sentences=tuple(lines),
        figures=_figure(
            "bar",
            bar.TITLE,
            bar.chart(explained, series),
            bar.alt_text(explained),
            bar.CAPTION + bar.others(explained, series),
            bar.table(explained),
        ),
    )


def _listed(name: str, title: str, listings: Iterable[tuple[str, Table]], *statements: str) -> Section | None:
    """A section of those tables that have rows; None where none has."""
    shown = tuple(Listing(head, table) for head, table in listings if table.rows)
    return Section(id=name, title=title, listings=shown, statements=statements) if shown else None


def _ledger(explained: Explained) -> Section | None:
    ledger = ("Shares of wall time; they sum to all of it", tables.ledger(explained))
    return _listed("ledger", "What are the exact shares?", [ledger])


def _seen(explained: Explained) -> tuple[str, ...]:
    """The facts without the notes, which stand above all else."""
    return tuple(fact for fact in facts(explained) if fact not in explained.notes)


def _savings(judgement: Judgement, proof: Proof | None) -> Section | None:
    bounds = bounds_cells(judgement)
    tried = proof_cells(proof) if proof is not None else []
    listings = [
        ("Bounds: the most that each change could save", _plain(bounds)),
        ("Experiments: the program run again with one thing changed", _plain(tried)),
    ]
    return _listed("savings", "What could be saved?", listings, *(proof_lines(proof) if proof else ()))


def _plain(cells: Sequence[tuple[str, ...]]) -> Table:
    """Rows of text below their headings, where there are any."""
    heads, *rows = cells or [()]
    return Table(tuple(Column(title or "note") for title in heads), tuple(rows))


def _course(explained: Explained, series: Series) -> Section | None:
    over_time = _drawn("timeline", course, explained, series)
    threads = _drawn("threads", lanes, explained, series)
    if not over_time and not threads:
        return None
    return Section(id="timeline", title="What happened over time?", figures=(*over_time, *threads))


def _functions(explained: Explained, series: Series) -> Section | None:
    figures = _drawn("flame", flame, explained, series)
    code = _figure(
        "python",
        flame.PYTHON_TITLE,
        flame.python_chart(explained),
        flame.python_words(explained),
        flame.PYTHON_CAPTION,
        flame.python_table(explained),
    )
    if not figures and not code:
        return None
    return Section(id="functions", title=flame.TITLE, figures=(*figures, *code))


def _lines(explained: Explained) -> Section | None:
    about = filter(None, (explained.about_symbols, explained.about_lines))
    return _listed("lines", "Which functions and lines?", tables.places(explained), *about)


def _stages(explained: Explained) -> Section | None:
    if not explained.stages:
        return None
    figures = _figure(
        "stages",
        lanes.STAGES_TITLE,
        lanes.stages_chart(explained),
        f"A lane for each of {len(lanes.stage_names(explained))} stages over time.",
        "The fainter a stretch, the less of it was spent in the stage. Stages may be nested.",
        lanes.stages_table(explained),
    )
    return Section(
        id="stages",
        title="Which stages?",
        listings=(
            Listing(
                "Stages that the program marks: shares of wall time as the innermost stage",
                tables.stages(explained),
            ),
        ),
        figures=figures,
    )


def _files(explained: Explained) -> Section:
    if not any(row.read or row.written for row in explained.files.rows):
        reason = (
            "its descriptors could not be read"
            if explained.files.refused
            else "no file, pipe or socket was open long enough to be seen"
        )
        return Section(
            id="files", title="Which files?", absence=reason, statements=tables.files_statements(explained)
        )
    return Section(
        id="files",
        title="Which files?",
        sentences=(tables.files_sentence(explained),),
        listings=(Listing("What it read and wrote, in one run", tables.files(explained)),),
        statements=tables.files_statements(explained),
    )


def _roofline(explained: Explained, runs: Mapping[str, Run], judgement: Judgement) -> Section:
    figures = _figure(
        "roofline",
        roofline.TITLE,
        roofline.chart(explained, runs),
        roofline.alt_text(explained, runs),
        roofline.caption(runs),
        roofline.table(explained, runs),
    )
    absence = (
        "" if figures else "the program spent too little time on files, or the size of its calls is not known"
    )
    said = [each.says for each in judgement.judged if each.name in ("reading", "writing")]
    missing = roofline.missing(runs) if figures else ""
    return Section(
        id="roofline",
        title=roofline.TITLE,
        sentences=tuple(text for text in (*said, missing) if text),
        figures=figures,
        absence=absence,
    )


def _processes(explained: Explained) -> Section | None:
    if len(explained.processes) < 2:  # noqa: PLR2004 - one is the program itself
        return None
    processes = ("Its processes, the busiest first; shares of their own time", tables.processes(explained))
    return _listed("processes", "Which process?", [processes])


def _path(explained: Explained) -> Section | None:
    listings = [
        ("The critical path; shares of what was recorded", tables.critical_path(explained)),
        ("Waits that are over, by who ended them", tables.ended_waits(explained)),
    ]
    return _listed("path", "What determined its end?", listings, explained.about_path)


def _pauses(explained: Explained) -> Section | None:
    runtimes = {each.runtime for each in explained.pauses}
    about = (text for runtime, text in _ABOUT_PAUSES.items() if runtime in runtimes)
    pauses = ("Pauses of one run", tables.pauses(explained))
    return _listed("pauses", "How long did garbage collection stop it?", [pauses], *about)


def _calls(explained: Explained) -> Section | None:
    if explained.calls is None or not explained.calls.of:
        return None
    listings = [
        ("System calls of one run", tables.calls(explained)),
        ("The same by file, pipe, socket or device", tables.calls_on(explained)),
    ]
    about = [
        "Each call was recorded when it began and when it returned; its time includes waiting and is "
        "summed over all threads. Calls that had not returned at the end are not counted."
    ]
    if left_out := explained.calls.left_out:
        about.append(f"Calls on {left_out:,} more files are not listed.")
    if explained.calls.has_narrow:
        about.append("Calls of 32-bit programs are not counted.")
    if restarts := explained.calls.restarts:
        about.append(f"Recording restarted {restarts:,} times: calls in between are missing.")
    if lost := explained.calls.lost:
        about.append(f"{lost:,} records were lost: up to as many more calls may have begun or returned.")
    return _listed("calls", "Which system calls did it make?", listings, " ".join(about))


def _locks(explained: Explained) -> Section | None:
    locks = ("Locks that threads were seen waiting for, in one run", tables.locks(explained))
    about = (
        "Samples of what threads wait for (futex), each counted for the time since the sample "
        "before; times are summed over all threads. The holder of a lock is known for mutexes of "
        "the C library and for those with priority inheritance. Condition variables and joins are "
        "not locks and are not listed."
    )
    return _listed("locks", "Which locks?", [locks], about)
