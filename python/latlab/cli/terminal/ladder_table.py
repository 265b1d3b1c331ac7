"""The ladder as a table: everything that matters in 80 columns, more where there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latlab import units
from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.run.rung import Rung, Tail, apart, flagged

_NONE = "–"
#: Between two columns; the second is used where everything fits with it.
_GAPS = (1, 2, 3)
#: A table that leaves this many columns free has the size in a column of its own.


@dataclass(frozen=True, slots=True)
class Column:
    """One column: two lines of heading, a cell of each rung, and how early it gives way to others.

    The first one of a table has `level`, `size` or `operation` as its second heading.
    """

    head: tuple[str, str]
    cell: Callable[[Rung], str]
    left: bool = False
    given_up: int = 0  # 0: never; else the higher, the earlier


def ladder_lines(rungs: Sequence[Rung], screen: Screen, *, textbook_year: int) -> list[Line]:
    """The table, its notes, and the details of each rung."""
    levels = [rung for rung in rungs if rung.group == "levels"]
    operations = [rung for rung in rungs if rung.group == "operations"]
    columns, gap = _fitting_columns(levels, screen, textbook_year)
    table = _table(levels, columns, gap, screen)
    if operations:
        table += [Line(), *_operations(operations, screen, textbook_year)]
    notes = _notes(rungs, screen)
    return [*table, *([Line(), *notes] if notes else []), *_behind(rungs, screen)]


# ---------------------------------------------------------------------------------------------------------
# columns


def _fitting_columns(rungs: Sequence[Rung], screen: Screen, year: int) -> tuple[list[Column], int]:
    """The richest set of columns, with the widest gap, that fits the screen."""
    for wide in (True, False):
        columns = _columns(year, wide=wide)
        for gap in reversed(_GAPS):
            if _width(rungs, columns, gap, screen) <= screen.width and (wide or gap == 1):
                return columns, gap
    while any(column.given_up for column in columns):
        columns.remove(max(columns, key=lambda column: column.given_up))
        if _width(rungs, columns, 1, screen) <= screen.width:
            break
    return columns, 1


def _columns(year: int, *, wide: bool) -> list[Column]:
    level = [Column(("", "level"), lambda rung: rung.name, left=True)]
    if wide:
        level = [
            Column(("", "level"), lambda rung: rung.level, left=True),
            Column(("", "size"), lambda rung: rung.size_text),
        ]
    return [
        *level,
        Column(("", "one access"), access, left=True),
        Column(("", "range"), span, left=True),
        Column(("worst in", "1,000"), _tail_cell),
        Column(("reading,", "1 thread"), lambda rung: units.format_rate(rung.bandwidth)),
        Column(("", "1 MiB"), lambda rung: _seconds(rung.seconds_1MiB), given_up=4),
        Column(("", "1 GiB"), lambda rung: _seconds(rung.seconds_1GiB), given_up=3),
        Column(("= L1", "hits"), _hits, given_up=2),
        Column(
            ("textbook", str(year)) if wide else ("text-", "book"),
            lambda rung: plain_ns(rung.textbook_ns),
            given_up=1,
        ),
    ]


def _operations(rungs: Sequence[Rung], screen: Screen, year: int) -> list[Line]:
    """The second group: what was measured as a table, what was not with each reason once."""
    columns = [
        Column(("", "operation"), lambda rung: rung.name, left=True),
        Column(("", "one"), access, left=True),
        Column(("", "range"), span, left=True),
        Column(("worst in", "1,000"), _tail_cell),
        Column(("= L1", "hits"), _hits, given_up=2),
        Column(("textbook", str(year)), lambda rung: plain_ns(rung.textbook_ns), given_up=1),
    ]
    lines = fitting([rung for rung in rungs if rung.measured], columns, screen)
    reasons: dict[str, list[str]] = {}
    for rung in rungs:
        if not rung.measured:
            reasons.setdefault(rung.note.removeprefix("not measured: "), []).append(rung.level)
    for reason, names in reasons.items():
        text = f"not measured: {'; '.join(names)}: {reason}"
        lines += screen.wrapped(text, first=" ", rest="   ", style="dim")
    return lines


def fitting(rungs: Sequence[Rung], columns: list[Column], screen: Screen) -> list[Line]:
    """Rungs that were measured as a table, without the columns that the screen has no room for."""
    if not rungs:
        return []
    gaps = (gap for gap in reversed(_GAPS) if _width(rungs, columns, gap, screen) <= screen.width)
    gap = next(gaps, 1)
    while any(column.given_up for column in columns) and _width(rungs, columns, gap, screen) > screen.width:
        columns.remove(max(columns, key=lambda column: column.given_up))
    return _table(rungs, columns, gap, screen)


def access(rung: Rung) -> str:
    """`1.05 ns`; a range where there is no single level."""
    if rung.is_range and rung.interval is not None:
        return units.format_span(*rung.interval)
    return units.format_ns(rung.latency_p50_ns)


def span(rung: Rung) -> str:
    """`1.05–1.07`, in the unit of the figure beside it; or why it has no interval."""
    if rung.latency_p50_ns is None or rung.is_range:
        return ""
    if rung.interval is None:
        return rung.why_no_interval
    span = units.format_span(*rung.interval)
    number, _, unit = span.partition(" ")
    return number if units.format_ns(rung.latency_p50_ns).endswith(f" {unit}") else span


def tail_value(tail: Tail) -> str:
    """`290 ns`; `≤290 ns` where the timer overhead's tail is as long."""
    return f"{'≤' if tail.is_bound else ''}{units.format_ns(tail.value_ns)}"


def _tail_cell(rung: Rung) -> str:
    """The quantile; one of window means or of another rank says so (`w90`, `p99`)."""
    if rung.tail is None:
        return _NONE
    number = tail_value(rung.tail)
    rank = rung.tail.quantile.removeprefix("p")
    if rung.tail.kind == "window means":
        return f"{number} w{rank}"
    return number if rank == "99.9" else f"{number} p{rank}"


def _seconds(seconds: float | None) -> str:
    return units.format_ns(seconds * 1e9, digits=2) if seconds is not None else _NONE


def _hits(rung: Rung) -> str:
    if rung.l1_hits is None:
        return _NONE
    two_digits = 1.05 <= rung.l1_hits < 9.95  # noqa: PLR2004 - where a decimal still says something
    if two_digits:
        return f"{rung.l1_hits:.1f}"
    # Three digits are more than either figure is worth.
    return units.format_count(float(f"{rung.l1_hits:.3g}"))


def plain_ns(ns: float | None) -> str:
    """A textbook's figure as it stands there: `0.5 ns`, `7 ns`, `150 µs`."""
    return _NONE if ns is None else f"{ns:.1f} ns" if ns < 1 else units.format_ns_as_asked(ns)


# -----------------------------------------------------------------------------------------------------------
# table


def _cells(rung: Rung, columns: Sequence[Column], screen: Screen) -> list[str]:
    return [screen.fit(column.cell(rung)) for column in columns]


def _widths(rungs: Sequence[Rung], columns: Sequence[Column], screen: Screen) -> list[int]:
    widths = [max(len(screen.fit(head)) for head in column.head) for column in columns]
    for rung in rungs:
        cells = _cells(rung, columns, screen)
        for index, cell in enumerate(cells):
            if rung.measured or (columns[index].left and index == 0) or columns[index].head[1] == "size":
                widths[index] = max(widths[index], len(cell))
    return widths


def _width(rungs: Sequence[Rung], columns: Sequence[Column], gap: int, screen: Screen) -> int:
    widths = _widths(rungs, columns, screen)
    return 1 + sum(widths) + gap * (len(widths) - 1)


def _table(rungs: Sequence[Rung], columns: Sequence[Column], gap: int, screen: Screen) -> list[Line]:
    widths = _widths(rungs, columns, screen)
    between = " " * gap

    def row(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column.left else cell.rjust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        ]
        return (" " + between.join(padded)).rstrip()

    lines = [styled(row([screen.fit(column.head[part]) for column in columns]), "dim") for part in (0, 1)]
    lines = [line for line in lines if line.text]
    before = sum(1 for column in columns if column.head[1] in {"level", "size", "operation"})
    for rung in rungs:
        cells = _cells(rung, columns, screen)
        if rung.measured:
            text = row(cells)
            start = 1 + sum(widths[:before]) + gap * before
            lines.append(Line(text).mark(start, start + len(cells[before]), "bold"))
            continue
        start = 1 + sum(widths[:before]) + gap * before
        first = row([*cells[:before], *[""] * (len(cells) - before)]).ljust(start)
        lines += screen.wrapped(rung.note, first=first, rest=" " * start, style="dim")
    return lines


# -----------------------------------------------------------------------------------------------------------
# notes


def _notes(rungs: Sequence[Rung], screen: Screen) -> list[Line]:
    """What the table's marks mean, and why a range is one. Only for marks that are there."""
    notes = []
    windows = [rung.tail for rung in rungs if rung.tail and rung.tail.kind == "window means"]
    if windows:
        sizes = sorted({tail.ops_per_sample for tail in windows})
        each = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        noun = "accesses" if all(rung.group == "levels" for rung in rungs) else "operations"
        ranks = sorted({tail.quantile.removeprefix("p") for tail in windows}, key=float)
        marks = " and ".join(f"w{rank}" for rank in ranks)
        notes.append(
            f"{marks}: {' and '.join(ranks)} % of the windows, each the mean of {each} {noun}, were faster. "
            f"Individual {noun} can be slower."
        )
    notes += _what_ranges_hold(rungs)
    notes += apart(rungs, lambda rung: rung.short)
    singles = [
        rung.tail for rung in rungs if rung.tail and rung.tail.kind == "single accesses" and rung.tail.note
    ]
    if singles:
        single = "accesses" if all(rung.group == "levels" for rung in rungs) else "operations"
        notes.append(f"Worst cases without a mark are of individual {single}; each {singles[0].note}.")
    notes += [f"{rung.short}: {rung.note}" for rung in rungs if rung.measured and rung.note]
    conventions = sorted(
        {
            rung.bandwidth_point.partition("; ")[2]
            for rung in rungs
            if rung.bandwidth is not None and rung.group == "levels"
        }
    )
    notes += [f"Reading: {convention}." for convention in conventions if convention]
    sources = sorted({rung.textbook_source for rung in rungs if rung.measured and rung.textbook_source})
    notes += [f"Textbook: {source}." for source in sources]
    notes += flagged(rungs, lambda rung: rung.short)
    lines = []
    for note in notes:
        lines += screen.wrapped(note, first=" · ", rest="   ", style="dim")
    return lines


def _what_ranges_hold(rungs: Sequence[Rung]) -> list[str]:
    """In one place, what a range promises of another run."""
    kinds = {rung.interval_kind for rung in rungs if rung.measured and rung.interval is not None}
    if not kinds:
        return []
    cache = ", for a cache also over its sizes" if "spread over its sizes" in kinds else ""
    return [
        f"Range: 95 % interval over the rounds of this run{cache}."
        " It includes drift during this run, not later drift."
    ]


def _behind(rungs: Sequence[Rung], screen: Screen) -> list[Line]:
    """What stands behind each rung: samples, path, interval, tail, bandwidth, checks."""
    lines = [Line(), styled(screen.fit(" details"), "bold")]
    for rung in rungs:
        if not rung.measured:
            continue
        lines.append(Line(screen.fit(f" {rung.level} {rung.size_text}".rstrip())))
        for text in _evidence(rung):
            lines += screen.wrapped(text, first="   ", rest="     ", style="dim")
    return lines


def _of_what(rung: Rung, tail: Tail) -> str:
    return tail.kind if rung.group == "levels" else tail.kind.replace("accesses", "operations")


def _evidence(rung: Rung) -> list[str]:
    facts = []
    if rung.samples:
        noun = "accesses" if rung.group == "levels" else "operations"
        each = f" of {rung.ops_per_sample:,} {noun}" if rung.ops_per_sample > 1 else ""
        facts.append(f"{rung.samples:,} {'windows' if each else f'single {noun}'}{each}: {rung.path}")
    if rung.interval is not None:
        span = units.format_span(*rung.interval)
        rounds = f" of {rung.rounds} rounds" if rung.rounds > 1 else ""
        facts.append(f"median{rounds} {units.format_ns(rung.latency_p50_ns)}, {rung.interval_kind} {span}")
    if rung.tail is not None:
        tail = rung.tail
        facts.append(
            f"{tail.quantile} of {tail.samples:,} {_of_what(rung, tail)}: {units.format_ns(tail.value_ns)} "
            f"({tail.source})" + (f"; {tail.note}" if tail.note else "")
        )
    if rung.refused:
        facts.append(rung.refused)
    if rung.bandwidth is not None:
        facts.append(f"{units.format_rate(rung.bandwidth)}: {rung.bandwidth_point}")
    if rung.textbook_source:
        facts.append(f"textbook: {rung.textbook_source}")
    facts += [f"check {'held' if held else 'FAILED'}: {name}: {detail}" for name, held, detail in rung.checks]
    return facts
