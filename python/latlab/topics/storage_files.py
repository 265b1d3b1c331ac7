"""Where the time goes when the same bytes are in many files instead of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from latlab.run.findings import findings, found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_bytes, format_count, format_digits, format_ns
from latlab.view.figure import Absent
from latlab.view.plot import Bar, Bars
from latlab.view.points import drawable, place_in, quantile
from latlab.view.table import Cell, Listing, Table, listed, table_of
from latlab.view.topic import Chart, Topic

PROBE: Final = "storage.files"
#: The two ends that are compared; what lies between is in the table.
ONE, MANY = 1, 1000
_OPERATIONS: Final = {"write": "write", "read-warm": "read, warm cache", "read-cold": "read, cold data"}
_ENGINES: Final = {"psync": "native", "python": "Python"}
_TITLES: Final = {"psync": "Native", "python": "Python, as the lesson does it"}
_PHASES: Final = ("create", "open", "write", "read", "fsync", "close", "stat", "rename", "unlink")
#: What is told first, and from where it reads.
_REPORTED: Final = {
    "write": ("Writing", ""),
    "read-cold": ("Reading", " from the disk"),
    "read-warm": ("Reading", " from the page cache"),
}


@dataclass(frozen=True, slots=True)
class Pass:
    """All files of a point, one pass.

    Attributes:
        operation: What was done to each file, with how it was made durable.
        engine: `psync` or `python`.
        files: How many.
        file_bytes: Size of each.
        file_ns: One file, mean: what its phases add up to.
        total_ns: All files together.
        phases: ns a file by phase, in the order in which they were done.
        record: What all of that was taken from.
    """

    operation: str
    engine: str
    files: int
    file_bytes: int
    file_ns: float
    total_ns: float
    phases: Mapping[str, float]
    record: Record

    def twin_of(self, many: Pass) -> bool:
        """Whether it is the one large file that those many are compared with."""
        return (self.files, self.operation, self.engine) == (ONE, many.operation, many.engine)

    @property
    def done(self) -> str:
        """`read, warm cache`."""
        return _OPERATIONS.get(self.operation, self.operation)

    @property
    def size(self) -> str:
        """`1,000 × 10 KB`."""
        size = format_bytes(self.file_bytes, decimal=self.file_bytes % 1000 == 0)
        return f"{format_count(self.files)} × {size}"

    @property
    def name(self) -> str:
        """`1,000 × 10 KB, Python`."""
        return f"{self.size}, {_ENGINES.get(self.engine, self.engine)}"

    @property
    def drift(self) -> float | None:
        """Later blocks over earlier ones; absent when unknown."""
        return positive(found(self.record), "drift")

    @property
    def repeats_ns(self) -> tuple[float, ...]:
        """One file, mean of each repeat."""
        return tuple(filter(drawable, found(self.record).numbers("block_means_ns")))


def passes(run: Run) -> list[Pass]:
    """Every point with a figure, grouped by operation, many files first."""
    own = [each for record in disk.timed(run, PROBE) if (each := _pass(record)) is not None]
    return sorted(
        own,
        key=lambda each: (
            place_in(_OPERATIONS, each.operation),
            each.operation,
            -each.files,
            each.engine != "psync",
        ),
    )


def _pass(record: Record) -> Pass | None:
    point = record.point
    if not point.files or point.file_bytes is None or record.summary is None:
        return None
    phases = {
        channel.name: channel.summary.mean * channel.samples / record.samples
        for channel in record.channels
        if drawable(channel.summary.mean) and record.samples
    }
    mean = sum(phases.values()) or record.summary.mean or record.value or 0.0
    total_s = positive(found(record), "total_s")
    return Pass(
        operation=" ".join(part for part in (point.operation, point.sync) if part),
        engine=point.engine or "psync",
        files=point.files,
        file_bytes=point.file_bytes,
        file_ns=mean,
        total_ns=total_s * 1e9 if total_s is not None else mean * point.files,
        phases=phases,
        record=record,
    )


def compared(passes: Sequence[Pass]) -> dict[str, list[Pass]]:
    """One large file against a thousand, by operation; only what has both."""
    out: dict[str, list[Pass]] = {}
    for each in passes:
        if each.operation in _OPERATIONS and each.files in {ONE, MANY} and each.phases:
            out.setdefault(each.operation, []).append(each)
    return {name: own for name, own in out.items() if {each.files for each in own} == {ONE, MANY}}


def _measured(run: Run) -> Sequence[Pass] | Absent:
    own = passes(run)
    return Absent("one file and many files were not both measured") if own and not compared(own) else own


def _bars(passes: Sequence[Pass]) -> Bars:
    """One panel an operation with its own axis; a bar is all files together, its parts are the phases."""
    panels = compared(passes)
    drawn = [each for own in panels.values() for each in own]
    seen = {phase for each in drawn for phase in each.phases}
    return Bars(
        {_OPERATIONS[operation]: list(map(_bar, own)) for operation, own in panels.items()},
        parts=[phase for phase in _PHASES if phase in seen] + sorted(seen - set(_PHASES)),
        x="all files together",
        words="Stacked bars: the same bytes in one file and in many, by phase."
        f" {'; '.join(map(_spoken, drawn))}.",
    )


def _spoken(each: Pass) -> str:
    phases = ", ".join(f"{name} {format_ns(ns)}" for name, ns in each.phases.items())
    return f"{each.done}, {each.name}: {format_ns(each.file_ns * each.files)} ({phases} a file)"


def _bar(each: Pass) -> Bar:
    def says(phase: str, ns: float) -> str:
        return f"{each.name}: {phase} {format_ns(ns)}, {format_ns(ns / each.files)} a file"

    parts = {phase: ns * each.files for phase, ns in each.phases.items()}
    return Bar(each.name, parts, says)


def _table(passes: Sequence[Pass]) -> Table:
    """Every phase of every pass, also of those between and beyond."""
    return table_of(
        [(each, phase, ns) for each in passes for phase, ns in each.phases.items()],
        ("operation", "text", lambda at: at[0].done),
        ("files", "text", lambda at: at[0].name),
        ("phase", "text", lambda at: at[1]),
        ("a file, mean of all repeats", "ns", lambda at: at[2]),
        ("all files at that mean", "ns", lambda at: at[2] * at[0].files),
    )


def _ratio(run: Run, each: Pass) -> float | None:
    """As it was concluded: all these files over one file of the same bytes."""
    for entry in findings(run, PROBE).sections("ratios"):
        same = entry.text("operation") == each.operation and entry.text("engine") == each.engine
        if same and (entry.integer("many.files") or entry.integer("many")) == each.files:
            return positive(entry, "ratio")
    return None


def prose(run: Run) -> list[str]:
    """A thousand files against one, written and read; of what breaks no rule."""
    trusted = _trusted(run)
    out = []
    for operation, (verb, where) in _REPORTED.items():
        for each in trusted:
            # Of one large file the rule may be broken as well.
            one = next((other for other in trusted if other.twin_of(each)), None)
            ratio = _ratio(run, each) if one else None
            if one and ratio and (each.operation, each.engine, each.files) == (operation, "psync", MANY):
                phase, ns = max(each.phases.items(), key=lambda item: item[1], default=("", 0.0))
                most = f"; most of it is {phase}, {format_ns(ns)} a file on average" if phase else ""
                out.append(
                    f"{verb} 10 MB{where} as a thousand files takes {format_digits(ratio, 3)} times as long"
                    f" as one file{_ends(each, one)}{most}."
                )
    return out[:2]


def _trusted(run: Run) -> list[Pass]:
    own = passes(run)
    kept = disk.sound(run, [each.record for each in own])
    return [each for each in own if each.record in kept]


def _ends(many: Pass, one: Pass) -> str:
    """How far the ratio goes between the repeats of both, ` (55 to 90 between repeats)`, if it does."""
    if not many.repeats_ns or not one.repeats_ns:
        return ""
    low = many.files * min(many.repeats_ns) / max(one.repeats_ns)
    high = many.files * max(many.repeats_ns) / min(one.repeats_ns)
    shown = format_digits(low, 2), format_digits(high, 2)
    return f" ({shown[0]} to {shown[1]} between repeats)" if shown[0] != shown[1] else ""


def _listings(run: Run) -> Iterator[Listing]:
    """Both arms, and what of a file's time is Python's own."""
    own = passes(run)
    for engine in dict.fromkeys(each.engine for each in own):
        yield from listed(
            _TITLES.get(engine, engine),
            [each for each in own if each.engine == engine],
            ("operation", "text", lambda each: each.done),
            ("files", "text", lambda each: each.size),
            ("all files, median repeat", "ns", lambda each: each.total_ns),
            ("a file, mean of all repeats", "ns", lambda each: each.file_ns),
            ("a file, median", "ns", lambda each: each.record.value),
            ("a file, p99", "ns", lambda each: quantile(each.record, "p99")),
            ("times one file", "number", lambda each: _ratio(run, each)),
            ("later over earlier", "number", lambda each: each.drift),
            ("phases of wall", "share", lambda each: positive(found(each.record), "phases_share_of_wall")),
        )
    yield from listed(
        "Python's own share of a small file, a file each",
        list(_pythons_own(run)),
        ("operation", "text", itemgetter(0)),
        ("native, median repeat", "ns", itemgetter(1)),
        ("Python, median repeat", "ns", itemgetter(2)),
        ("Python's own", "ns", itemgetter(3)),
        ("of Python's time", "share", itemgetter(4)),
    )


def _pythons_own(run: Run) -> Iterator[tuple[Cell, ...]]:
    """Of whole passes, as the probe concludes it: a phase's mean leaves out what lies between."""
    many = [each for each in _trusted(run) if each.files == MANY]
    native = {each.operation: each for each in many if each.engine == "psync"}
    # Where the two arms lie no farther apart than the file system's own ups and downs.
    undecided = {
        entry.text("operation")
        for entry in findings(run, PROBE).sections("python_shares")
        if entry.integer("files") == MANY and entry.flag("decided") is False
    }
    for each in many:
        if each.engine == "python" and each.operation in native:
            python, without = each.total_ns / MANY, native[each.operation].total_ns / MANY
            seen = python > without and each.operation not in undecided
            own = (python - without, (python - without) / python) if seen else ("within variation", None)
            yield (each.done, without, python, *own)


def _evidence(run: Run) -> Iterator[str]:
    worst = max(passes(run), key=lambda each: each.drift or 0.0, default=None)
    if worst is not None and worst.drift is not None:
        yield (
            f"Drift: later blocks took at most {worst.drift:.2f} times as long as earlier ones ({worst.done},"
            f" {worst.name}); a benchmark that deletes and recreates files would slow itself down."
        )
    yield from disk.evidence(run, PROBE)
    lines = disk.commands(
        record
        for record in disk.timed(run, PROBE)
        if record.point.files == MANY and record.point.operation in {"write", "read-cold"}
    )
    if lines:
        yield from (*lines, "fio's latencies leave out create, open and close: compare its run time.")


TOPIC: Final = Topic(
    Chart(
        id="storage_files",
        title="Why are many small files slower than one large one?",
        caption="The same 10 MB, one file after the other. A bar is the sum of its phases, each a "
        "mean of all repeats (the table has the median repeat); each panel has its own axis. Written "
        "files are not flushed: their data reaches the disk later.",
        probe=PROBE,
        measured=_measured,
        picture=_bars,
        table=_table,
    ),
    shown=passes,
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, PROBE),
    evidence=_evidence,
)
