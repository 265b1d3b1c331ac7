"""Where the time went by function and by source line, as tables of plain lines."""

from __future__ import annotations

from typing import Final, Literal

from latlab.explain.answer import interval, percent
from latlab.explain.model import Explained, PythonCode, SourceLine, Symbol
from latlab.explain.table import counts_as
from latlab.text import aligned, clean

_ALWAYS: Final = 5
"""So many functions are shown without being asked for."""
_TORN: Final = 0.01
"""Share of reads that contradicted themselves, from which on it is said."""
_LONGEST_NAME: Final = 48
_LONGEST_FILE: Final = 40

Table = tuple[list[str], str]
"""Lines, and a sentence on how they came about."""


def places(explained: Explained, by: Literal["symbol", "line"] | None) -> list[Table]:
    """The tables that are asked for; by default the largest functions, of Python code where there is any."""
    tables = []
    python = explained.python
    if python is not None and python.reads:
        tables.append(_python(python, by))
    elif python is not None and python.refused:
        tables.append(([], f"Python code was not sampled: {python.refused}."))
    if by == "line":
        tables.append((_lines(explained.lines), explained.about_lines))
    elif explained.symbols and (by == "symbol" or not tables):
        rows = explained.symbols if by else _first(explained.symbols)
        about = explained.about_symbols if by else f"{explained.about_symbols} More: --by symbol, --by line."
        tables.append((_symbols(rows), about))
    elif by == "symbol":
        tables.append(([], explained.about_symbols))
    return [table for table in tables if table[0] or by or (python is not None and python.refused)]


def _first(rows: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    return tuple(row for row in rows if row.category or row.object)[:_ALWAYS]


def _symbols(rows: tuple[Symbol, ...]) -> list[str]:
    if not rows:
        return []
    cells = [("function", "share", "95 % interval", "of CPU time", "category", "in")]
    cells += [
        (
            clean(row.name, most=_LONGEST_NAME),
            percent(row.share),
            interval(row.low, row.high),
            percent(row.cpu_share),
            counts_as(row),
            clean(row.object, most=_LONGEST_FILE),
        )
        for row in rows
    ]
    return aligned(cells)


def _lines(rows: tuple[SourceLine, ...]) -> list[str]:
    if not any(row.line for row in rows):
        return []
    cells = [("line", "share", "95 % interval", "of CPU time", "category", "in")]
    for row in rows:
        where = _place(row.file, row.line) if row.file else row.function
        function = f"{clean(row.function, most=_LONGEST_NAME)} ({clean(row.object, most=24)})"
        cells.append(
            (
                where,
                percent(row.share),
                interval(row.low, row.high),
                percent(row.cpu_share),
                counts_as(row),
                function if row.file else clean(row.object, most=_LONGEST_FILE),
            )
        )
    return aligned(cells)


def _python(python: PythonCode, by: Literal["symbol", "line"] | None) -> Table:
    rows = python.lines if by == "line" else python.functions
    if by is None:
        rows = tuple(row for row in rows if row.file)[:_ALWAYS]
    head = "Python line" if by == "line" else "Python function"
    cells = [(head, "share", "95 % interval", "with callees", "of busy time", "in")]
    for row in rows:
        name = clean(row.name, most=_LONGEST_NAME)
        where = _place(row.file, row.line) if row.file else ""
        first, last = (where or name, name if where else "") if by == "line" else (name, where)
        cells.append(
            (
                first,
                percent(row.share),
                interval(row.low, row.high),
                percent(row.within),
                percent(row.busy_share),
                last,
            )
        )
    about = (
        f"Python {', '.join(python.versions)}: its frames were read {python.reads:,} times while it "
        f"ran; in {percent(python.nameless_share)} of the time there was no Python code to name."
    )
    if python.torn >= _TORN * python.reads:
        about += (
            f" {percent(python.torn / python.reads)} of the reads contradicted themselves and were left out."
        )
    if python.refused:
        about += f" Not all could be sampled: {python.refused}."
    if by is None:
        about += " More: --by symbol, --by line."
    return (aligned(cells) if len(cells) > 1 else [], about)


def _place(file: str | None, line: int | None) -> str:
    """The end of a path tells more than its beginning."""
    name = clean(file or "", most=4096)
    short = name if len(name) <= _LONGEST_FILE else f"…{name[1 - _LONGEST_FILE :]}"
    return f"{short}:{line}" if line else short
