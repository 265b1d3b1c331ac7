from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from latlab.report import markdown
from latlab.report.document import Document


def test_the_whole_report_reads_as_it_did(document: Document, snapshot: SnapshotAssertion) -> None:
    assert markdown.render(document) == snapshot


def test_hostile_strings_of_a_run_file_are_text(hostile_document: Document) -> None:
    text = markdown.render(hostile_document)
    assert "<img" not in text.replace("\\<img", "")
    assert "[a](javascript" not in text
    assert "\x1b" not in text


def test_a_table_keeps_its_columns_whatever_its_cells_hold(hostile_document: Document) -> None:
    text = markdown.render(hostile_document)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {line.replace("\\\\", "").replace("\\|", "").count("|") for line in rows}
    assert min(widths) >= 3
    headings = [number for number, line in enumerate(rows) if set(line) <= set("|-: ")]
    for number in headings:
        columns = rows[number].count("|")
        assert rows[number - 1].replace("\\|", "").count("|") == columns
        assert rows[number + 1].replace("\\|", "").count("|") == columns
