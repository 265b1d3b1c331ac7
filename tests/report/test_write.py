from __future__ import annotations

from pathlib import Path

import pytest

from latlab import report
from latlab.errors import UserError
from latlab.report.probes import Probes
from latlab.run.run import Run


def test_a_form_that_there_is_not_is_a_users_mistake(run: Run, described: Probes) -> None:
    with pytest.raises(UserError, match="html, md, pdf"):
        report.render(run, "docx", described)


def test_the_ending_of_the_files_name_says_which_form(empty: Run, described: Probes, tmp_path: Path) -> None:
    page = report.write(empty, tmp_path / "report.HTML", described)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    text = report.write(empty, tmp_path / "report.md", described)
    assert text.read_text(encoding="utf-8").startswith("# How long memory")


def test_a_report_is_as_readable_as_any_new_file(empty: Run, described: Probes, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    page = report.write(empty, tmp_path / "report.md", described)
    assert page.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_place_that_cannot_be_written_is_one_clear_line(
    empty: Run, described: Probes, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="cannot write"):
        report.write(empty, tmp_path / "nowhere" / "report.md", described)
