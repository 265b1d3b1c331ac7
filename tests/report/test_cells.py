from __future__ import annotations

import csv
import io

import pytest

from latlab.report.cells import as_csv, figure_and_spread, shown
from latlab.view.table import Cell, Column, Quantity, Table


@pytest.mark.parametrize(
    ("cell", "quantity", "text"),
    [
        (None, "ns", "–"),
        ("", "text", "–"),
        (1.0634, "ns", "1.06 ns"),
        (49152, "bytes", "48 KiB"),
        (3.9e10, "bytes_per_s", "39.0 GB/s"),
        (0.0277, "seconds", "27.7 ms"),
        (0.76, "share", "76 %"),
        (0.005, "share", "0.50 %"),
        (6e-5, "share", "1 in 16,667"),
        (0.0, "share", "0"),
        (14.549, "number", "14.5"),
        (52000.0, "number", "52,000"),
    ],
)
def test_a_cell_is_written_by_what_it_holds(cell: Cell, quantity: Quantity, text: str) -> None:
    assert shown(cell, quantity) == text


def test_csv_has_units_in_its_headings_and_plain_numbers() -> None:
    table = Table((Column("size", "bytes"), Column("median", "ns")), ((4096, 1.25), (8192, None)))
    assert as_csv(table) == "size (bytes),median (ns)\r\n4096,1.25\r\n8192,\r\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "\r=1"])
def test_text_that_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    row = list(csv.reader(io.StringIO(as_csv(Table((Column(text),), ((text,),))), newline="")))
    assert row[0][0].startswith("'")
    assert row[1][0].startswith("'")


def test_a_negative_number_is_no_formula() -> None:
    assert as_csv(Table((Column("x", "number"),), ((-1.5,),))) == "x\r\n-1.5\r\n"


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("1.06 s (1.05 s – 1.07 s)", ("1.06\u00a0s", "(1.05 s – 1.07 s)")),
        ("1.06 s (1.05–1.07 s)", ("1.06\u00a0s", "(1.05–1.07 s)")),
        ("1.06 s", None),
        ("undecided (one disk was measured)", None),
        (None, None),
        (3, None),
    ],
)
def test_a_figure_and_its_spread_are_two_parts(cell: Cell, parts: tuple[str, str] | None) -> None:
    assert figure_and_spread(cell) == parts
