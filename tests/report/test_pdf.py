from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.some import some

from latlab import report
from latlab.errors import UserError
from latlab.report import pdf as typeset
from latlab.report.document import Document
from latlab.report.probes import Probes
from latlab.run.run import Run

pytest.importorskip("typst", reason="a PDF needs the extra latlab[export]")
pytest.importorskip("vl_convert", reason="a PDF needs the extra latlab[export]")


def text_of(pdf: bytes, folder: Path) -> str:
    tool = shutil.which("pdftotext")
    if tool is None:
        pytest.skip("pdftotext (poppler-utils) is not installed: the text of a PDF cannot be read")
    path = folder / "report.pdf"
    path.write_bytes(pdf)
    return subprocess.run([tool, "-layout", path, "-"], capture_output=True, check=True, text=True).stdout


#: Of these the report is typeset.
SHOWN = ("ladder", "hierarchy")


def test_the_pdf_holds_the_answers_and_the_charts_words(document: Document, tmp_path: Path) -> None:
    few = replace(document, sections=tuple(own for own in document.sections if own.id in SHOWN))
    assert len(few.sections) == len(SHOWN)
    pdf = typeset.render(few)
    assert pdf.startswith(b"%PDF")
    text = text_of(pdf, tmp_path)
    assert "What does one access cost at each level of this machine?" in text
    assert "4 KiB pages, page-local" in text
    assert "How was this measured?" in text


def test_hostile_strings_of_a_whole_report_are_text_for_the_typesetter_too(
    hostile_document: Document, tmp_path: Path
) -> None:
    # A chart without the file's own words is typeset like the ladder.
    sections = tuple(
        replace(own, figures=tuple(figure for figure in own.figures if "pwned" in repr(figure.spec)))
        for own in hostile_document.sections
    )
    assert 1 < sum(len(own.figures) for own in sections) < 25
    text = text_of(typeset.render(replace(hostile_document, sections=sections)), tmp_path)
    assert '#read("/etc/passwd")' in text.replace("\n", "")
    assert "root:" not in text
    for own in some(hostile_document.sections, 40):
        assert own.title[:30] in text


def test_a_missing_extra_is_one_line_with_the_command_that_adds_it(
    empty: Run, described: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "typst", None)
    with pytest.raises(UserError, match=r"pip install 'latlab\[export\]'"):
        report.render(empty, "pdf", described)
