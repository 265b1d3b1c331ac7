"""Tables of evidence in the documents, made from the CSV files of `benches/results`.

In a document a line `<!-- table NAME -->` and a line `<!-- /table -->` hold the table of
`benches/results/NAME.csv` between them. It has the file's columns, but for those that say where a row comes
from (`evidence.ORIGIN`): each origin is a line below the table. So is what every row says alike.
`tools/generate.py` fills the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools import evidence

MARK = re.compile(r"^<!-- /?table\b.*$", re.MULTILINE)
TABLE = re.compile(r"^<!-- table (\S+) -->\n(?:(?!<!-- /?table\b).*\n)*?<!-- /table -->$", re.MULTILINE)


class TableError(Exception):
    """A mark without its other half, or a CSV file that no table can be made of."""


def documents(root: Path) -> list[str]:
    """The documents that hold tables, by their names from the project's folder."""
    pages = [*root.glob("*.md"), *(page for page in root.glob("docs/**/*.md") if "_build" not in page.parts)]
    return sorted(
        str(page.relative_to(root)) for page in pages if MARK.search(page.read_text(encoding="utf-8"))
    )


def filled(text: str) -> str:
    """The document with each table as its CSV file has it now.

    Raises TableError.
    """
    if len(MARK.findall(text)) != 2 * len(TABLE.findall(text)):
        raise TableError("a table begins with <!-- table NAME --> and ends with <!-- /table -->")
    return TABLE.sub(lambda found: f"<!-- table {found[1]} -->\n{table(found[1])}\n<!-- /table -->", text)


def table(name: str) -> str:
    """The rows of `benches/results/NAME.csv` as Markdown, and below them what they come from.

    Raises TableError.
    """
    rows = evidence.read(f"{name}.csv")
    if not rows:
        raise TableError(f"benches/results/{name}.csv is missing or has no rows")
    if missing := [column for column in evidence.ORIGIN if column not in rows[0]]:
        raise TableError(f"benches/results/{name}.csv has no column {', '.join(missing)}")
    # csv.DictReader says with None that a cell has no column or a column no cell.
    if any(None in row or None in row.values() for row in rows):
        raise TableError(f"benches/results/{name}.csv: a row has more or fewer cells than there are columns")
    origins = dict.fromkeys(
        f"*`{row['command']}`, on {row['machine']}, {row['date']}, commit {row['commit']}*" for row in rows
    )
    alike = _alike(rows)
    note = (
        [f"Every row: {', '.join(f'{_heading(column)} {rows[0][column]}' for column in alike)}."]
        if alike
        else []
    )
    different = [{column: cell for column, cell in row.items() if column not in alike} for row in rows]
    return "\n\n".join([markdown(different), *note, *origins]) + "\n"


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """One row or more as Markdown: what they say, not what they come from."""
    columns = [column for column in rows[0] if column not in evidence.ORIGIN]
    lines = [_line(map(_heading, columns)), _line("---" for _ in columns)]
    return "\n".join([*lines, *(_line(row[column] for column in columns) for row in rows)])


def _alike(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The columns that say the same in every row; none where all do, as in a table of one row."""
    columns = [column for column in rows[0] if column not in evidence.ORIGIN]
    alike = [column for column in columns if len({row[column] for row in rows}) == 1]
    return [] if alike == columns else alike


def _heading(column: str) -> str:
    return column.replace("_", " ")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
