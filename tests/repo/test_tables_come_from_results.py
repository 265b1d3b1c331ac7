"""A table of figures in a document is made from a CSV file of `benches/results`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import evidence, tables

DOCUMENT = "Before.\n\n<!-- table speed -->\nwhat was there\n<!-- /table -->\n\nAfter.\n"
ROWS = "what,took_us,command,commit,machine,date\n"
FIRST = 'a read,1.02 (0.98-1.05),bench | sort,abc,"EPYC, 2 CPUs",2026-11-23\n'


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(evidence, "RESULTS", tmp_path)
    return tmp_path


def test_a_table_has_the_columns_and_below_it_the_origin_of_its_rows_once(results: Path) -> None:
    (results / "speed.csv").write_text(
        f"{ROWS}{FIRST}{FIRST.replace('a read,1.02', 'a | b,1.03')}", encoding="utf-8"
    )
    filled = tables.filled(DOCUMENT)
    assert filled == (
        "Before.\n\n<!-- table speed -->\n"
        "| what | took us |\n| --- | --- |\n| a read | 1.02 (0.98-1.05) |\n| a \\| b | 1.03 (0.98-1.05) |\n\n"
        "*`bench | sort`, on EPYC, 2 CPUs, 2026-11-23, commit abc*\n\n"
        "<!-- /table -->\n\nAfter.\n"
    )
    assert tables.filled(filled) == filled


def test_what_every_row_says_is_a_line_and_no_column(results: Path) -> None:
    other = FIRST.replace("a read", "a write")
    (results / "speed.csv").write_text(f"{ROWS}{FIRST}{other}", encoding="utf-8")
    assert tables.table("speed").startswith(
        "| what |\n| --- |\n| a read |\n| a write |\n\nEvery row: took us 1.02 (0.98-1.05).\n\n*`bench"
    )


def test_each_origin_is_a_line(results: Path) -> None:
    (results / "speed.csv").write_text(f"{ROWS}{FIRST}{FIRST.replace('abc', 'def')}{FIRST}", encoding="utf-8")
    lines = tables.table("speed").splitlines()
    assert [line.partition("commit ")[2] for line in lines if line.startswith("*")] == ["abc*", "def*"]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (None, "benches/results/speed.csv is missing or has no rows"),
        (ROWS, "benches/results/speed.csv is missing or has no rows"),
        ("what,command,date\na,b,c\n", "benches/results/speed.csv has no column commit, machine"),
        (f"{ROWS}a read,1,bench\n", "a row has more or fewer cells than there are columns"),
        (ROWS + FIRST.replace('"', ""), "a row has more or fewer cells than there are columns"),
    ],
)
def test_a_file_that_makes_no_table_is_an_error(results: Path, rows: str | None, error: str) -> None:
    if rows is not None:
        (results / "speed.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(tables.TableError, match=error):
        tables.filled(DOCUMENT)


@pytest.mark.parametrize(
    "half", ["<!-- table speed -->\n", "<!-- /table -->\n", "<!-- table -->\n<!-- /table -->\n"]
)
def test_half_a_mark_is_an_error(results: Path, half: str) -> None:
    (results / "speed.csv").write_text(f"{ROWS}{FIRST}", encoding="utf-8")
    with pytest.raises(tables.TableError, match="a table begins with"):
        tables.filled(half + DOCUMENT)


def test_every_document_with_a_mark_is_found(tmp_path: Path) -> None:
    for name, text in [("A.md", DOCUMENT), ("docs/method/b.md", DOCUMENT), ("docs/c.md", "no table\n")]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert tables.documents(tmp_path) == ["A.md", "docs/method/b.md"]
