"""Results of a class: who stands apart and why, what cannot be compared, files of somebody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from latlab.errors import UserError
from latlab.lessons import classroom
from latlab.lessons.figures import Cell, Column, Published, Row, Table
from latlab.lessons.model import Asked, Result

Write = Callable[..., Path]


def result(ratio: float, *, spread: float = 0.05, **about: Any) -> Result:  # noqa: ANN401 - fields of a result
    """A result of small-files with that figure."""
    cell = Cell("ratio", ratio, ratio * (1 - spread), ratio * (1 + spread), 5, Published("75.1 slower", 75.1))
    row = Row("write_ratio", "many over one", {"python": cell})
    return replace(
        Result(
            name="small-files",
            question="Why?",
            origin="a lesson",
            size="small",
            plain=False,
            tool="0.1.0",
            started="2026-11-27T12:00:00Z",
            seconds=ratio,
            machine={"processor": "Alpha", "cpus": "8", "file_system": "ext4"},
            answer=("So it is.",),
            programs=(),
            tables=(Table("original", "The same bytes", "files", (Column("python", "Python"),), (row,)),),
        ),
        **about,
    )


@pytest.fixture(name="written")
def _written(tmp_path: Path) -> Write:
    """Writes results as `--out` does; returns their files' folder."""

    def write(*results: Result) -> Path:
        for number, each in enumerate(results):
            (tmp_path / f"student-{number:02d}.json").write_text(each.to_json(), encoding="utf-8")
        return tmp_path

    return write


def test_the_machine_that_stands_apart_is_named_with_what_only_it_has() -> None:
    odd = {"processor": "Beta", "cpus": "8", "file_system": "overlay"}
    doubts = ("The battery is in use: the CPU may be slower.",)
    class_ = [result(ratio) for ratio in (30, 33, 36, 31)] + [result(140, machine=odd, doubts=doubts)]
    said = classroom.together(class_)
    assert "From 30.0x (machine 1) to 140x (machine 5); the median is 33.0x." in said.answer[0]
    assert said.answer[-1] == "1 outlier: machine 5."
    (why,) = said.reasons
    assert why.startswith("Machine 5: 4.2 times the median.")
    assert "its processor is Beta; 4 of 4 others have Alpha" in why
    assert "its file system is overlay" in why
    assert "The battery is in use" in why
    assert "CPUs" not in why, "it has as many as the others"
    (drawn,) = [each for each in said.pictures if each.name == "class"]
    assert [mark.label for mark in drawn.marks if mark.series == "an outlier"] == ["machine 5"]
    assert drawn.marks[0].value == 75.1


@pytest.mark.parametrize(
    ("ratios", "spread"),
    [
        ((30, 30.1, 30.2, 30.1, 36), 0.01),
        ((30, 33, 36, 31, 140), 0.9),
        ((10, 20, 40, 80, 160), 0.01),
        ((30, 140), 0.01),
    ],
    ids=["equal laptops", "its own repeats reach the median", "all differ", "two machines"],
)
def test_nobody_stands_apart_by_noise_or_among_machines_that_all_differ(
    ratios: tuple[float, ...], spread: float
) -> None:
    said = classroom.together([result(ratio, spread=spread) for ratio in ratios])
    assert not said.reasons
    assert not [line for line in said.answer if " apart: " in line]


def test_a_machine_with_nothing_unusual_is_to_be_measured_again() -> None:
    said = classroom.together([result(ratio) for ratio in (30, 33, 36, 31, 140)])
    assert "rerun the lesson there" in said.reasons[0]


def test_guesses_stand_beside_the_figures() -> None:
    asked = Asked("How many times?", "40", "30x", "75.1 slower")
    said = classroom.together([result(30, asked=asked), result(33)])
    table = said.table("class")
    assert [row.cells["guess"].value for row in table.rows] == ["40", None]
    assert "guess" not in {
        column.name for column in classroom.together([result(3), result(4)]).table("class").columns
    }


def test_the_same_file_twice_counts_once_and_another_size_is_left_out(written: Write) -> None:
    folder = written(result(30), result(33), result(33), result(9, size="default"))
    said = classroom.compared("small-files", sorted(folder.iterdir()))
    assert len(said.table("class").rows) == 2
    assert any("1 file was the same as another" in line for line in said.reasons)
    assert any("another size than small" in line for line in said.reasons)


def test_nothing_of_files_names_is_shown(written: Write) -> None:
    folder = written(result(30), result(33))
    text = classroom.compared("small-files", sorted(folder.iterdir())).to_json()
    assert "student" not in text
    assert str(folder) not in text


def test_what_is_no_result_of_the_lesson_is_one_clear_line(written: Write, tmp_path: Path) -> None:
    folder = written(result(30), result(33, name="list-cost"), result(34, schema="latlab.lesson/9"))
    good, other, newer = sorted(folder.iterdir())
    (broken := tmp_path / "broken.json").write_text("{", encoding="utf-8")
    wrong = json.loads(good.read_text(encoding="utf-8"))
    wrong["tables"][0]["rows"][0]["cells"]["python"]["value"] = [1]
    (typed := tmp_path / "typed.json").write_text(json.dumps(wrong), encoding="utf-8")
    (deep := tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    for path, said in (
        (other, "of the lesson list-cost"),
        (newer, "not a lesson result of this version"),
        (broken, "not a lesson result"),
        (typed, "not a lesson result"),
        (deep, "not a lesson result"),
        (tmp_path / "gone.json", "No such file"),
        (good, "and found 1"),
    ):
        with pytest.raises(UserError, match=said):
            classroom.compared("small-files", [good, path])


def test_a_hostile_result_changes_no_table_and_runs_nothing(written: Write) -> None:
    row = Row("write_ratio", "a | b\n## Why\n- nonsense", {"python": Cell("ratio", 500.0)})
    bad = result(
        500,
        machine={
            "processor": "A\x01999\x02\x00",
            "cpus": "x\n## Tables\nfoo",
            "file_system": "\x1b]0;owned\x07",
        },
        tool="0\n## Pictures\n### x: y",
        doubts=("| a | b\n## Why\n- nonsense",),
        asked=Asked("?", "4\n## Tables", "5", "6"),
    )
    first = bad.tables[0]
    bad = replace(bad, tables=(first, replace(first, name="other", rows=(row,))))
    folder = written(bad, *map(result, (30, 33, 36, 31)))
    file, *_ = files = sorted(folder.iterdir())
    taken = json.loads(file.read_text(encoding="utf-8")) | {"run": {"x": 1}, "charts": ["ladder"]}
    file.write_text(json.dumps(taken), encoding="utf-8")
    said = classroom.compared("small-files", files)
    assert said.run is None
    assert not said.charts
    assert len(said.reasons) == 1
    assert said.reasons[0].startswith("Machine 1: 15 times the median.")
    assert "x ## Tables foo" in said.reasons[0]
    assert [table.name for table in said.tables] == ["class", "machines", "figures"]
    assert not set("\0\1\2\x1b").intersection(said.to_json().replace("\\u001b", "\x1b"))


def test_half_of_the_others_are_not_most_of_them() -> None:
    odd, other = ({"processor": name, "cpus": "8"} for name in ("Beta", "Gamma"))
    said = classroom.together([result(30), result(31, machine=other), result(140, machine=odd)])
    assert "its processor" not in said.reasons[0]


def test_a_comparison_is_no_result_of_a_machine(written: Write, tmp_path: Path) -> None:
    files = sorted(written(result(30), result(33)).iterdir())
    (made := tmp_path / "class.json").write_text(classroom.compared("small-files", files).to_json(), "utf-8")
    with pytest.raises(UserError, match="is itself a comparison"):
        classroom.compared("small-files", [*files, made])


def test_a_lesson_without_published_figures_at_its_size_is_compared_by_all(
    written: Write, tmp_path: Path
) -> None:
    cells = [Cell("s", value, value * 0.9, value * 1.1, 5) for value in (1.0e-7, 1.1e-7, 9.0e-8)]
    each = [
        replace(
            result(1.0, seconds=float(place)),
            tables=(
                Table(
                    "create",
                    "Lists",
                    "way",
                    (Column("n10", "n = 10"),),
                    (Row("copy", "old[:]", {"n10": cell}),),
                ),
            ),
        )
        for place, cell in enumerate(cells)
    ]
    written(*each)
    found = classroom.compared("small-files", sorted(tmp_path.glob("*.json")))
    assert found.answer[0].startswith("3 results of this lesson. old[:]: from 90.0 ns (machine 3) to 110 ns")
