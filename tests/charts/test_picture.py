"""Charts as files, without a browser."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from latlab.charts import named, picture
from latlab.errors import UserError
from latlab.run.run import Run

pytest.importorskip("vl_convert", reason="pictures need the extra latlab[export]")


@pytest.mark.parametrize(("form", "beginning"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_chart_is_written_in_the_form_that_the_files_name_asks_for(
    form: str, beginning: bytes, run: Run, tmp_path: Path
) -> None:
    target = picture.write("bandwidth", run, tmp_path / f"chart.{form}")
    assert target.read_bytes().startswith(beginning)


def test_a_picture_alone_has_its_question_as_its_title(run: Run, tmp_path: Path) -> None:
    text = picture.write("stride", run, tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert "How much does the order of accesses matter?" in text


def test_an_unknown_form_is_a_users_mistake(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="svg, png, pdf"):
        picture.write("stride", run, tmp_path / "chart.gif")


def test_a_folder_that_is_not_there_is_one_clear_line(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        picture.write("stride", run, tmp_path / "nowhere" / "chart.svg")


def test_an_older_file_of_that_name_is_replaced_and_nothing_else_is_left(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "chart.svg"
    target.write_text("old", encoding="utf-8")
    picture.write("stride", run, target)
    assert "old" not in target.read_text(encoding="utf-8")[:10]
    assert list(tmp_path.iterdir()) == [target]


def test_a_slide_is_16_by_9_and_names_machine_date_and_profile(run: Run) -> None:
    slide = picture.render(run, "hierarchy", "svg", slide=True).decode()
    outer, inner = re.findall(r"<svg [^>]*>", slide)
    assert 'width="1920" height="1080"' in outer
    assert 'width="1800" height="830" viewBox="0 0 ' in inner
    title, line = re.findall(r"<text[^>]*>([^<]*)</text>", slide)[:2]
    assert title == named("hierarchy").title
    for part in ("AMD EPYC (Zen 5)", "2026-11-21 00:30", "profile standard"):
        assert part in line
    assert picture.render(run, "hierarchy", "png", slide=True)[16:24] == struct.pack(">II", 1920, 1080)
    assert picture.render(run, "hierarchy", "pdf", slide=True).startswith(b"%PDF")


def test_a_hostile_machine_is_text_on_a_slide(run: Run) -> None:
    bad = picture._slide(
        '<svg width="1" height="1" viewBox="0 0 1 1"></svg>', "</text><script>", "\x1b]0;a\x07<b>"
    )
    assert "<script" not in bad
    assert "&lt;b&gt;" in bad
    assert "\x1b" not in bad
