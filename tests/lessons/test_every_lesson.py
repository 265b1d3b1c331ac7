"""What holds for every lesson, at its smallest size."""

from __future__ import annotations

import fnmatch
import importlib
import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import jsonschema
import pytest
from markupsafe import escape
from tests.some import some

from latlab import _core, lessons
from latlab.cli.main import COMMANDS, run
from latlab.cli.terminal.lesson_view import lesson_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import UserError
from latlab.lessons import document, drawing
from latlab.lessons.display import Page, html
from latlab.lessons.folder import PREFIX
from latlab.lessons.ipynb import notebook
from latlab.lessons.model import Result
from latlab.report import html as page
from latlab.report import markdown as text
from latlab.report.document import Document

Found = Callable[[str], Result]
Made = Callable[[str], Document]
every_lesson = pytest.mark.parametrize("name", lessons.LESSONS)


@every_lesson
def test_every_figure_has_a_unit_and_a_spread_or_says_why_there_is_none(found: Found, name: str) -> None:
    for where, cell in some(found(name).cells.items()):
        if cell.value is None:
            assert cell.why, where
        elif cell.unit != "text":
            assert cell.number is not None, where
            assert math.isfinite(cell.number), where
            if cell.unit == "ratio":
                assert "ratio" in where or "saving" in where, where
                assert cell.number > 0, where
            if cell.low is not None and cell.high is not None:
                assert cell.low <= cell.number <= cell.high, where
                assert cell.repeats >= 1, where
            else:
                assert cell.why, f"{where}: one figure without spread says where it is from"
    assert any(cell.low is not None for cell in found(name).cells.values())


@every_lesson
def test_a_lesson_is_complete_at_its_smallest_size(found: Found, name: str) -> None:
    result = found(name)
    assert result.answer
    assert result.programs
    assert result.pictures
    assert result.reasons
    assert result.further
    assert result.run is not None, result.missing


@every_lesson
def test_its_json_fits_the_schema_and_has_every_cell_with_its_unit(
    found: Found, name: str, root: Path
) -> None:
    schema = json.loads((root / "schema/lesson.v1.json").read_text(encoding="utf-8"))
    body = json.loads(found(name).to_json())
    jsonschema.validate(body, schema)
    written = {
        f"{table['name']}.{row['name']}.{column}": cell["unit"]
        for table in body["tables"]
        for row in table["rows"]
        for column, cell in row["cells"].items()
    }
    assert written == {where: cell.unit for where, cell in found(name).cells.items()}


@every_lesson
def test_a_cell_belongs_to_a_column_of_its_table(found: Found, name: str) -> None:
    for table in some(found(name).tables):
        names = {column.name for column in table.columns}
        assert all(set(row.cells) <= names for row in table.rows), table.name
        assert len({row.name for row in table.rows}) == len(table.rows), table.name


@every_lesson
def test_nothing_is_left_in_the_folder_that_it_measured(found: Found, name: str, place: Path) -> None:
    found(name)
    assert not [path.name for path in place.iterdir() if path.name.startswith(PREFIX)]


@every_lesson
def test_its_page_shows_question_tables_programs_and_pictures(found: Found, made: Made, name: str) -> None:
    result = found(name)
    shown = page.render(made(name))
    for word in (result.question, *(table.title for table in result.tables)):
        assert escape(word) in shown
    figures = [figure.name for section in made(name).sections for figure in section.figures]
    assert [f"lesson_{picture.name}" for picture in result.pictures] == figures[: len(result.pictures)]
    assert len(shown) < 2_000_000
    for picture in result.pictures:
        drawing.chart(picture).to_dict()  # checks it against Vega-Lite's schema
        assert picture.words


@every_lesson
def test_its_other_renderings_show_the_same_figures(found: Found, made: Made, name: str) -> None:
    result = found(name)
    markdown = text.render(made(name))
    cell = next(cell for cell in result.cells.values() if cell.number is not None)
    assert cell.shown in re.sub(r"\\(.)", r"\1", markdown)
    assert cell.shown in html(result)


def test_a_lesson_is_typeset_as_pdf(found: Found) -> None:
    assert document.render(found(lessons.LESSONS[0]), "pdf").startswith(b"%PDF")


@every_lesson
def test_its_notebook_runs(found: Found, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = found(name)
    body = json.loads(notebook(result))
    assert (body["nbformat"], len({cell["id"] for cell in body["cells"]})) == (4, len(body["cells"]))
    calls: list[dict[str, object]] = []

    def again(_name: str, *_arguments: object, **options: object) -> Result:
        calls.append(options)
        return result

    monkeypatch.setattr(lessons, "run", again)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in body["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)
    asked = {} if lessons.named(name).GUESS is None else {"guess": None}
    assert calls == [{"size": "small"} | asked]


@pytest.mark.parametrize(
    ("form", "package"), [("pdf", "typst"), ("pdf", "vl_convert"), ("svg", "vl_convert")]
)
def test_a_form_whose_package_is_missing_is_refused_before_anything_is_measured(
    form: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(lessons, "run", lambda *_arguments, **_options: pytest.fail("it was measured"))
    assert run(["lesson", "small-files", "--out", str(tmp_path / f"page.{form}")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"latlab: .{form} needs the extra: pip install 'latlab[export]'"
    ]


def test_its_pictures_in_a_notebook_are_those_of_its_page_and_ask_no_server(found: Found) -> None:
    result = found(lessons.LESSONS[0])
    frame = Page(result)._repr_html_()
    inside = unescape(frame.partition(' srcdoc="')[2].removesuffix('"></iframe>'))
    assert inside == page.render(document.document(result))
    assert not re.search(r"<(?:script|link|img)[^>]* (?:src|href)=", inside)
    assert "Page(found)" in notebook(result)


@every_lesson
def test_who_asks_for_the_documents_sizes_is_shown_first_how_long_they_take(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_arguments: object, **_options: object) -> Result:
        raise UserError("not in a test")

    monkeypatch.setattr(lessons, "run", stopped)
    assert run(["lesson", name, "--original"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.match(r"about (a minute|\d+ minutes) with the published sizes ", said)
    assert lessons.named(name).ORIGINAL_TAKES.because in said


@every_lesson
def test_its_text_has_the_experiments_program_and_ends_with_the_answer(found: Found, name: str) -> None:
    result = found(name)
    lines = [line.text for line in lesson_lines(result, Screen(width=80), full=True)]
    first, *others = result.programs
    text = "\n".join(lines)
    assert all(line in text for line in first.text.splitlines() if len(line) < 70)
    assert all(each.name in text for each in others)
    end = " ".join(" ".join(lines[lines.index("In short") + 1 :]).split())
    assert end.replace("· ", "") == " ".join(" ".join(result.answer).split())
    assert len(lines) < 800


@every_lesson
def test_its_first_screen_has_the_answer_the_documents_figure_a_table_and_reasons(
    found: Found, name: str
) -> None:
    result = found(name)
    lines = [line.text for line in lesson_lines(result, Screen(width=80))]
    assert len(lines) <= 40
    said = " ".join(" ".join(lines).split())
    assert " ".join(" ".join(result.answer).split()) in said
    if result.asked is not None:
        assert f"Published, of other sizes: {result.asked.textbook}." in said
    assert result.leading[0].title in said
    assert result.pictures[0].title in said
    assert "Why" in lines
    assert "--full shows all tables" in said


@pytest.mark.slow
@every_lesson
def test_its_programs_run_by_themselves(name: str, tmp_path: Path) -> None:
    programs = [
        program for program in lessons.program_texts(lessons.named(name)) if program.language == "python"
    ]
    for program in some(program for program in programs if "__main__" in program.text):
        file = tmp_path / program.name
        file.write_text(program.text, encoding="utf-8")
        reported = subprocess.run(
            [sys.executable, "-I", file, "--small"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert reported.returncode == 0, f"{program.name}: {reported.stderr}"
        assert reported.stdout.strip(), program.name


@every_lesson
def test_its_page_in_the_docs_exists_and_names_the_command(name: str, root: Path) -> None:
    text = (root / f"docs/lessons/{name}.md").read_text(encoding="utf-8")
    assert f"latlab lesson {name}" in text
    assert lessons.named(name).QUESTION in text
    assert f"lessons/{name}" in (root / "docs/index.md").read_text(encoding="utf-8"), (
        "list it in docs/index.md"
    )


def test_every_folder_is_a_lesson_with_a_template(root: Path) -> None:
    folder = root / "python/latlab/lessons/experiments"
    folders = {path.parent.name.replace("_", "-") for path in folder.glob("*/__init__.py")}
    assert folders == set(lessons.LESSONS)


@every_lesson
def test_it_asks_two_things_that_a_command_answers_and_one_to_explain(found: Found, name: str) -> None:
    *predicted, explained = found(name).exercises
    assert len(predicted) == 2
    assert explained.question.startswith("Explain to somebody: ")
    for each in predicted:
        assert each.question.startswith("Predict, then run")
        assert each.question.endswith("?")
        _, command, *words = shlex.split(each.then.partition(": ")[0])
        assert command in COMMANDS or command.startswith("--"), each.then
        if command == "lesson":
            assert words[0] in lessons.LESSONS
        if command == "measure":
            wanted = words[words.index("--only") + 1].split(",")
            ids = [probe["id"] for probe in json.loads(_core.list_probes())]
            assert all(fnmatch.filter(ids, pattern) for pattern in wanted), each.then


@every_lesson
def test_it_says_where_it_could_be_wrong_here_by_what_the_doctor_found(found: Found, name: str) -> None:
    result = found(name)
    assert result.run is not None
    found_by_doctor = [each for each in result.run.header.doctor if each.id != "load"]
    grave = [each for each in found_by_doctor if each.severity != "note"]
    assert len(result.doubts) == len(grave)
    page = " ".join(text.render(document.document(result)).split())
    for each in grave:
        (said,) = [doubt for doubt in result.doubts if each.effect in doubt]
        assert said.lower().startswith(each.title.lower())
    assert ("Where could this be wrong here?" in page) is bool(grave)


@every_lesson
def test_a_reader_of_its_notebook_guesses_before_the_answer(found: Found, name: str) -> None:
    cells = ["".join(cell["source"]) for cell in json.loads(notebook(found(name)))["cells"]]
    guess = lessons.named(name).GUESS
    asked = next((at for at, text in enumerate(cells) if guess and guess.question in text), None)
    reported = next(at for at, text in enumerate(cells) if text.startswith("On the machine where"))
    assert (asked is None) is (guess is None)
    assert guess is None or (asked is not None and asked < reported and guess.textbook.text in cells[asked])


@every_lesson
def test_it_has_a_test_of_its_own(name: str, root: Path) -> None:
    assert (root / f"tests/lessons/test_{name.replace('-', '_')}.py").is_file()


def test_every_program_belongs_to_a_lesson(root: Path) -> None:
    folder = root / "python/latlab/lessons/programs"
    files = {path.name for path in folder.iterdir() if path.is_file()} - {"__init__.py"}
    assert files == {program for name in lessons.LESSONS for program in lessons.named(name).PROGRAMS}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("downloads", "for the rows of the published program: pip install 'latlab[lessons]'"),
        (
            "linked-list",
            "for the rows of other allocators (Debian): apt install"
            " libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0",
        ),
    ],
)
def test_what_is_not_installed_is_said_at_the_start_with_what_it_is_for(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = importlib.import_module(f"latlab.lessons.experiments.{name.replace('-', '_')}")
    monkeypatch.setattr(lesson, "library_of", lambda _name: None, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    heard: list[str] = []

    def ended(_bench: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lesson, "run", ended)
    with pytest.raises(KeyboardInterrupt):
        lessons.run(name, "small", say=heard.append)
    assert heard == [f"not installed, {said}"]
    monkeypatch.undo()
    monkeypatch.setattr(lesson, "library_of", lambda _name: Path("/lib"), raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    assert list(lesson.wanted()) == []
