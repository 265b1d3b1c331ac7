"""The first reading of a block against the second."""

from __future__ import annotations

from latlab.charts import storage_first_touch as chart
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, found, positive
from latlab.run.run import Run
from latlab.topics.disk import disk_evidence, notices, timed
from latlab.units import format_bytes, format_count
from latlab.view.prose import sentence
from latlab.view.table import Cell, Column, Listing, Table

_CAPTION = (
    "The same blocks, read for the first time in this run and again right after. Where the lines part, first"
    " readings waited for something that second ones found."
)
_COLUMNS = (
    Column("blocks of"),
    Column("first", "ns"),
    Column("p99", "ns"),
    Column("second", "ns"),
    Column("p99", "ns"),
    Column("total time, times", "number"),
    Column("95 % from", "number"),
    Column("95 % to", "number"),
)


def section(run: Run, probes: Probes) -> Section:
    """By size of block."""
    doubts = notices(run, chart.PROBE)
    rows = _rows(run)
    return Section(
        id="storage_first_touch",
        title=chart.TITLE,
        sentences=() if doubts else _sentences(run),
        listings=(Listing("First reading and second", Table(_COLUMNS, rows)),) if rows else (),
        figures=figure(run, chart.ID, _CAPTION),
        notices=doubts,
        evidence=(*_limits(run), *disk_evidence(run, chart.PROBE)),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    told = [entry.text("detail") for entry in findings(run, chart.PROBE).sections("ratios")]
    if not chart.readings(run):
        return ()
    lines = tuple(sentence(f"{text[:1].upper()}{text[1:]}") for text in told if text)
    return lines or ("Too little was read twice to compare.",)


def _rows(run: Run) -> tuple[tuple[Cell, ...], ...]:
    rows: list[tuple[Cell, ...]] = []
    for size, pair in chart.readings(run).items():
        cells: list[Cell] = [format_bytes(size)]
        for record in pair.values():
            cells += [record.value, record.summary.p99 if record.summary else None]
        own = found(pair["first"])
        ends = own.at("interval")
        low, high = ends if isinstance(ends, list | tuple) and len(ends) == 2 else (None, None)  # noqa: PLR2004 - both ends
        cells += [positive(own, "ratio"), *(e if isinstance(e, int | float) else None for e in (low, high))]
        rows.append(tuple(cells))
    return tuple(rows)


def _limits(run: Run) -> tuple[str, ...]:
    lines = []
    since = findings(run, chart.PROBE).text("since")
    if since:
        lines.append(sentence(f"{since[:1].upper()}{since[1:]}"))
    left = [found(record) for record in timed(run, chart.PROBE)]
    regions = [number for own in left if (number := own.number("left_regions")) is not None and number >= 0]
    sizes = [number for own in left if (number := own.number("left_bytes")) is not None and number >= 0]
    if regions and sizes:
        lines.append(
            f"What was read is used up; {format_count(min(regions))} regions ({format_bytes(min(sizes))})"
            " that could be read first are left."
        )
    return tuple(lines)
