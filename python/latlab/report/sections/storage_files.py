"""Many small files against one large one."""

from __future__ import annotations

from latlab.charts import storage_files as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.run import Run
from latlab.topics.disk import commands, disk_evidence, notices, sound, timed
from latlab.units import format_digits, format_ns
from latlab.view.table import Cell, Column, Listing, Table

_CAPTION = (
    "The same 10 MB, one file after the other. A bar is the sum of its phases, each a mean of all repeats"
    " (the table has the median repeat); each panel has its own axis. Written files are not flushed: the disk"
    " is reached later."
)
_COLUMNS = (
    Column("operation"),
    Column("files"),
    Column("all files, median repeat", "ns"),
    Column("a file, mean of all repeats", "ns"),
    Column("a file, median", "ns"),
    Column("a file, p99", "ns"),
    Column("times one file", "number"),
    Column("later over earlier", "number"),
    Column("phases of wall", "share"),
)
_OWN = (
    Column("operation"),
    Column("native, median repeat", "ns"),
    Column("Python, median repeat", "ns"),
    Column("Python's own", "ns"),
    Column("of Python's time", "share"),
)
_TITLES = {"psync": "Native", "python": "Python, as the lesson does it"}


def section(run: Run, probes: Probes) -> Section:
    """Both arms, and what of a file's time is Python's own."""
    passes = chart.passes(run)
    trusted = sound(run, [each.record for each in passes])
    kept = [each for each in passes if each.record in trusted]
    listings = []
    for engine in dict.fromkeys(each.engine for each in passes):
        rows = tuple(_row(run, each) for each in passes if each.engine == engine)
        listings.append(Listing(_TITLES.get(engine, engine), Table(_COLUMNS, rows)))
    own = _pythons_own(run, kept)
    if own:
        listings.append(Listing("Python's own share of a small file, a file each", Table(_OWN, tuple(own))))
    return Section(
        id="storage_files",
        title=chart.TITLE,
        sentences=_sentences(run, kept),
        listings=tuple(listings),
        figures=figure(run, chart.ID, _CAPTION),
        notices=notices(run, chart.PROBE),
        evidence=(*_drift(passes), *disk_evidence(run, chart.PROBE), *_fio(run)),
        methods=probes.methods_of(chart.PROBE),
        absence="" if passes else chart.absence(run) or "",
    )


def _row(run: Run, each: chart.Pass) -> tuple[Cell, ...]:
    return (
        chart.OPERATIONS.get(each.operation, each.operation),
        each.name.rpartition(",")[0],
        each.total_ns,
        each.file_ns,
        each.median_ns,
        each.p99_ns,
        _ratio(run, each),
        each.drift,
        each.share_of_wall,
    )


def _ratio(run: Run, each: chart.Pass) -> float | None:
    """As it was concluded: all these files over one file of the same bytes."""
    for entry in findings(run, chart.PROBE).sections("ratios"):
        same = entry.text("operation") == each.operation and entry.text("engine") == each.engine
        files = entry.integer("many.files") or entry.integer("many")
        if same and files == each.files:
            return positive(entry, "ratio")
    return None


def _undecided(run: Run) -> set[str]:
    """Operations whose two arms lie no farther apart than the file system's own ups and downs."""
    return {
        entry.text("operation") or ""
        for entry in findings(run, chart.PROBE).sections("python_shares")
        if entry.integer("files") == chart.MANY and entry.flag("decided") is False
    }


def _pythons_own(run: Run, passes: list[chart.Pass]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for python in passes:
        if python.engine != "python" or python.files != chart.MANY:
            continue
        for native in passes:
            if (native.engine, native.files, native.operation) == ("psync", python.files, python.operation):
                # Of whole passes, as the probe concludes it: a phase's mean leaves out what lies between.
                with_python, without = python.total_ns / python.files, native.total_ns / native.files
                more = with_python - without
                name = chart.OPERATIONS.get(python.operation, python.operation)
                seen = more > 0 and python.operation not in _undecided(run)
                share = more / with_python if seen else None
                rows.append((name, without, with_python, more if seen else "within ups and downs", share))
    return rows


def _sentences(run: Run, passes: list[chart.Pass]) -> tuple[str, ...]:
    out = []
    for operation, verb in (("write", "Writing"), ("read-cold", "Reading"), ("read-warm", "Reading")):
        for each in passes:
            # Of one large file the rule may be broken as well.
            one = next((other for other in passes if other.twin_of(each)), None)
            ratio = _ratio(run, each) if one else None
            if each.operation == operation and each.engine == "psync" and each.files == chart.MANY and ratio:
                how = {"read-cold": " from the disk", "read-warm": " from the page cache"}.get(operation, "")
                phase, ns = max(each.phases.items(), key=lambda item: item[1], default=("", 0.0))
                most = f"; most of it is {phase}, {format_ns(ns)} a file on average" if phase else ""
                out.append(
                    f"{verb} 10 MB{how} as a thousand files takes {format_digits(ratio, 3)} times as long"
                    f" as one file{_ends(each, one)}{most}."
                )
    return tuple(out[:2])


def _ends(many: chart.Pass, one: chart.Pass | None) -> str:
    """How far the ratio goes between the repeats of both, ` (55 to 90 between repeats)`, if it does."""
    if one is None or not many.repeats_ns or not one.repeats_ns:
        return ""
    low = many.files * min(many.repeats_ns) / max(one.repeats_ns)
    high = many.files * max(many.repeats_ns) / min(one.repeats_ns)
    shown = format_digits(low, 2), format_digits(high, 2)
    return f" ({shown[0]} to {shown[1]} between repeats)" if shown[0] != shown[1] else ""


def _drift(passes: list[chart.Pass]) -> tuple[str, ...]:
    worst = max((each for each in passes if each.drift), key=lambda each: each.drift or 0.0, default=None)
    if worst is None or worst.drift is None:
        return ()
    name = chart.OPERATIONS.get(worst.operation, worst.operation)
    return (
        f"Drift: later blocks took at most {worst.drift:.2f} times as long as earlier ones ({name},"
        f" {worst.name});"
        " a benchmark that deletes and creates again would slow itself down.",
    )


def _fio(run: Run) -> tuple[str, ...]:
    own = [
        record
        for record in timed(run, chart.PROBE)
        if record.point.files == chart.MANY and record.point.operation in {"write", "read-cold"}
    ]
    lines = commands(own)
    return (
        (*lines, "fio's latencies leave out create, open and close: compare its run time.") if lines else ()
    )
