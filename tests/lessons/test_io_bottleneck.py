"""Is I/O the bottleneck: shares of the times shown, counts that are checked, what is missing named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.explain.in_process import explain
from tests.some import some

from latlab import lessons
from latlab.errors import UserError
from latlab.lessons import memory
from latlab.lessons.bench import Arms, Bench, Cannot, Times
from latlab.lessons.experiments import io_bottleneck as lesson
from latlab.lessons.experiments.io_bottleneck import workshop
from latlab.lessons.experiments.io_bottleneck.figures import STAGES, Heard, Ledger, Ran
from latlab.lessons.experiments.io_bottleneck.workshop import (
    ALL,
    ARMS,
    CACHED,
    COLD,
    PLANS,
    Arm,
    Runs,
    Text,
    Workshop,
)
from latlab.lessons.figures import Table
from latlab.lessons.folder import sweep
from latlab.lessons.model import Result
from latlab.lessons.programs import block_size, words_text
from latlab.run.run import Run, load

Found = Callable[[str], Result]
PROGRAMS = Path(words_text.__file__).parent


def test_the_total_is_the_sum_of_the_stages_and_the_shares_are_of_it(result: Result) -> None:
    checked = []
    for table in ("original", "others"):
        for column in result.table(table).columns:
            stages = [result[f"{table}.{stage}.{column.name}"].number for stage in STAGES]
            total = result[f"{table}.total.{column.name}"].number
            if total is None:
                continue
            checked.append(column.name)
            assert total == pytest.approx(sum(value or 0.0 for value in stages))
            assert (
                result[f"{table}.process.{column.name}"].number or 0.0
            ) >= total or column.name == "python_lines"
            reading, _, _, outputting = (value or 0.0 for value in stages)
            share = result[f"share.{column.name}.io"].number
            assert share == pytest.approx((reading + outputting) / total)
            assert result[f"share.{column.name}.reading"].number == pytest.approx(reading / total)
    assert checked


def test_the_published_figures_are_as_printed(result: Result) -> None:
    def published(cell: str) -> str | None:
        found = result[cell].published
        return None if found is None else found.text

    printed = {
        "python_simple": ["0.384 s", "7.980 s", "0.005 s", "0.010 s", "8.386 s"],
        "go_simple": ["0.499 s", "3.492 s", "0.002 s", "0.009 s", "4.000 s"],
        "go_optimised": ["0.154 s", "2.249 s", "0.002 s", "0.010 s", "2.414 s"],
    }
    for name, column in printed.items():
        rows = ("reading_reckoned", "processing_reckoned", "sorting", "outputting", "total_reckoned")
        assert [published(f"original.{row}.{name}") for row in rows] == column
    assert [
        published(f"disk.{row}.python") for row in ("read_cold", "read_cached", "write_sync", "write")
    ] == [
        "1.7 GB/s",
        "10.8 GB/s",
        "1.2 GB/s",
        "1.6 GB/s",
    ]
    assert [published(f"share.{name}.reading") for name in ("go_simple", "go_optimised")] == ["14%", "7%"]
    said = " ".join(each.found for each in result.misled)
    assert "12.5 %" in said
    assert round(0.499 / 4.000, 3) == 0.125
    assert round((0.499 + 0.009) / 4.000, 3) == 0.127
    assert round(0.154 / 2.414, 3) == 0.064
    assert "2.7 GB/s" in said


@pytest.mark.parametrize("name", ARMS)
def test_each_program_whose_language_is_there_was_timed(result: Result, name: str) -> None:
    language = ARMS[name].language
    needed = {"go": ("go",), "rust": ("rustc",), "c": ("cc", "gcc", "clang")}.get(language, ())
    cell = result[f"share.{name}.io"]
    if needed and not any(map(shutil.which, needed)):
        assert cell.value is None
        assert needed[0] in cell.why
    else:
        assert cell.number, result.missing


def test_the_text_is_what_its_maker_says_and_the_same_every_time() -> None:
    copy, tally = words_text.one_copy(300_000)
    assert len(copy) == 300_000
    assert Counter(copy.decode().lower().split()) == tally
    assert words_text.one_copy(300_000) == (copy, tally)


def test_a_whole_copy_has_as_many_words_as_a_very_long_book() -> None:
    copy, tally = words_text.one_copy()
    assert 100 * len(copy) == 413_000_000
    assert 750_000 < tally.total() < 900_000
    assert 28_000 < len(tally) < 38_000


# ------------------------------------------------------------------------------------------- wrong programs


@pytest.fixture(scope="module")
def one_copy() -> Callable[..., tuple[bytes, Counter[str]]]:
    """The text in memory, which is always the same, made once for all who count it."""
    return cache(words_text.one_copy)


@pytest.fixture
def shop(
    tmp_path: Path,
    one_copy: Callable[..., tuple[bytes, Counter[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Workshop]:
    monkeypatch.setattr(words_text, "one_copy", one_copy)
    with Bench("small", plain=True, directory=tmp_path) as bench, Workshop(bench) as made:
        yield made


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("counts.popitem()", "counts are wrong"),
        ("counts[next(iter(counts))] += 1", "counts are wrong"),
        (
            "counts = Counter(dict(counts.most_common()[::-1])); Counter.most_common = Counter.items",
            "do not come first",
        ),
        ("sys.exit('it broke')", "it broke"),
    ],
)
def test_a_wrong_program_gets_no_figure(shop: Workshop, fault: str, said: str) -> None:
    text = shop.make_text()
    program = (PROGRAMS / "words.py").read_text(encoding="utf-8")
    broken = shop.folder / "broken.py"
    broken.write_text(
        program.replace("    counts = WAYS[way]()\n", f"    counts = WAYS[way]()\n    {fault}\n"),
        encoding="utf-8",
    )
    assert broken.read_text(encoding="utf-8") != program
    runs = shop.count({"python_simple": [sys.executable, str(broken), "simple"]}, text)
    assert runs == {}
    assert said in shop.bench.why("Python, cached")
    table = table_of("original", text, runs, why=lambda name="", state="": "it miscounts")
    assert all(cell.value is None and cell.why for row in some(table.rows) for cell in row.cells.values())


def test_a_program_that_never_ends_is_ended_with_all_that_it_started(shop: Workshop) -> None:
    text = shop.make_text()
    shop.plan = replace(shop.plan, longest_s=0.5)
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)", str(shop.folder)]
    with pytest.raises(subprocess.TimeoutExpired):
        shop.once(ARMS["python_simple"], sleeper, text, CACHED)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(shop.folder) not in left


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="asks Linux's page cache")
def test_a_file_that_stays_in_the_cache_is_not_called_cold(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shop.make_text()
    workshop.prepare(text.path, CACHED)
    monkeypatch.setattr(block_size, "forget", lambda path: None)
    with pytest.raises(Cannot, match="did not drop 100 %"):
        workshop.prepare(text.path, COLD)


@pytest.mark.slow
def test_every_language_agrees_on_words_that_are_hard_to_split(
    compiled_once: Callable[[], AbstractContextManager[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long words, many kinds of white space, capitals, no end of line, bytes that are not ASCII."""
    own = tmp_path / "own.txt"
    own.write_bytes(
        b"A a\tb\r\nB\x0bC\x1cc \xc3\x84 " + b"Long" * 50_000 + b" x\x00y\n\n the " * 3000 + b"end"
    )
    monkeypatch.setitem(PLANS, "small", replace(PLANS["small"], rounds=1))
    bench = Bench("small", directory=tmp_path, file=own)
    with compiled_once(), bench, Workshop(bench) as made:
        text = replace(made.make_text(), cold_why="one state is enough")
        assert (text.words, text.distinct) == (6009, 8)
        assert "2 non-ASCII bytes" in text.note
        programs = made.build()
        runs = made.count(programs, text)
        assert {name for name, _ in runs} == set(programs), bench.missing


# ------------------------------------------------------------------------------------------- what is missing


def test_a_text_that_a_program_cannot_sort_is_named_once_and_its_cells_say_why(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(arm: Arm, command: list[str], text: Text, state: str) -> Heard:
        if arm.language == "go" and text.distinct > 100:
            raise Cannot("no memory for so many")
        return heard(1, 2, 3, 4)

    monkeypatch.setattr(shop, "once", once)
    sorting = shop.sort({"python_simple": ["python"], "go_optimised": ["go"]})
    why = partial(lesson._why, shop.bench, lesson._SORT)
    few, many = table_of("sorting", sorting=sorting, why_sorting=why).rows
    assert few.cells["go_optimised_sorting"].value == 3
    assert many.cells["python_simple_sorting"].value == 3
    for part in ("processing", "sorting", "share"):
        assert many.cells[f"go_optimised_{part}"].why == "no memory for so many"
    assert len(shop.bench.missing) == 1


def test_where_there_is_no_room_for_texts_to_sort_the_table_says_so(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_needed: int) -> None:
        raise Cannot("the disk has no room")

    monkeypatch.setattr(shop, "_room", full)
    assert shop.bench.attempt(lesson._SORT, lambda: shop.sort({})) is None
    table = table_of("sorting", why_sorting=partial(lesson._why, shop.bench, lesson._SORT))
    assert [cell.why for row in table.rows for cell in row.cells.values()] == ["the disk has no room"]


def test_a_language_that_is_not_there_is_named_and_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with Bench("small", directory=tmp_path) as bench, Workshop(bench) as made:
        programs = made.build()
        missing = {each.what: each.why for each in bench.missing}
    assert all(ALL[name].title.startswith("Python") for name in programs)
    assert "there is no go here" in missing["Go (simple)"]
    assert "there is no rustc here" in missing["Rust"]
    assert "there is no cc or gcc or clang here" in missing["C"]


def test_a_compiler_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'words.c:1: error: no header' >&2\nexit 1\n", encoding="ascii")
    compiler.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(compiler))
    with Bench("small", directory=tmp_path) as bench, Workshop(bench) as made:
        made.build()
        assert "could not build it: words.c:1: error: no header" in bench.why("C")
        assert "it needs Rust 1.82 or newer" in bench.why("Rust")


@pytest.mark.slow
def test_where_the_directory_cannot_be_written_the_text_is_counted_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLANS, "small", replace(PLANS["small"], rounds=1))
    result = lessons.run("io-bottleneck", "small", plain=True, directory=tmp_path / "gone")
    assert result["share.python_simple.io"].number
    assert result["share.python_simple.cold"].value is None
    assert "temporary directory" in result["share.python_simple.cold"].why
    assert result["disk.read_cold.python"].value is None
    assert {"the speed of the disk", "reading past the cache"} <= {each.what for each in result.missing}


def test_where_the_disk_has_no_room_the_text_is_counted_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_bench: Bench, _needed: int) -> None:
        raise Cannot("the disk has no room")

    monkeypatch.setattr(Bench, "room", full)
    with Bench("small", plain=True, directory=tmp_path) as bench, Workshop(bench) as made:
        text = made.make_text()
        assert tmp_path not in made.folder.parents
        assert text.cold_why.endswith("the disk has no room")
        sweep(made.folder.parent)
        assert made.folder.is_dir(), "no other lesson takes it away"
        elsewhere = made.folder
    assert not elsewhere.exists()


def test_too_little_memory_is_said_before_it_is_taken(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shop.make_text()
    monkeypatch.setattr(memory, "available_memory", lambda: 1_000_000)
    with pytest.raises(Cannot, match=r"it needs .* of memory"):
        shop.once(ARMS["python_simple"], ["true"], text, CACHED)


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("io-bottleneck", "nowhere.txt", "no file"),
        ("io-bottleneck", ".", "no file"),
        ("io-bottleneck", "empty", "is empty"),
        ("list-cost", "full", "makes its own files"),
    ],
)
def test_a_file_that_cannot_be_counted_is_a_mistake(name: str, file: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "full").write_text("words", encoding="ascii")
    with pytest.raises(UserError, match=said):
        lessons.run(name, "small", plain=True, directory=tmp_path, file=tmp_path / file)


# ------------------------------------------------------------------------------------------- what is told


TEXT = Text(Path("text"), 1000, 100, 10, 5, (10, 0))


def heard(*stages: float) -> Heard:
    return Heard(sum(stages) + 0.1, dict(zip(STAGES, stages, strict=True)))


def table_of(
    name: str,
    text: Text | None = TEXT,
    runs: Runs | None = None,
    **more: Any,  # noqa: ANN401 - what `say` takes
) -> Table:
    """A table of what the lesson says of such figures."""
    said = lesson.say(more.pop("size", "small"), text, runs, **more)
    return next(table for table in said.tables if table.name == name)


@pytest.mark.parametrize(
    ("level", "samples", "reported"), [(1, 50, True), (1, 40, False), (2, 50, False), (3, 50, False)]
)
def test_what_reading_is_made_of_is_reported_by_samples_in_it_and_without_waits_for_a_cpu(
    level: int, samples: int, *, reported: bool
) -> None:
    shares = {"file-io-cpu": 0.02, "page-faults": 0.05, "memory-copy": 0.01, "run-queue-wait": 0.6}
    parts = [{"name": name, "share": share, "low": share, "high": share} for name, share in shares.items()]
    ledger = {
        "level": level,
        "observer": {"samples": samples},
        "categories": parts,
        "stages": [{"name": "reading", "share": 0.68, "categories": parts}],
    }
    ledgers = {"go_simple": Ledger(COLD, ledger)}
    said = lesson.say("small", TEXT, ledgers=ledgers).misled[-1]
    assert ("It equates the stage of reading" in said.says) is reported
    assert not reported or ("25 % is I/O here" in said.found and "75 % is memory" in said.found)
    cell = table_of("ledger", ledgers=ledgers).cell("go_simple_reading", "cpu")
    assert f"level {level}, {samples} samples" in cell.why


def test_work_of_the_kernel_that_is_left_whole_is_no_share_of_nothing() -> None:
    within = [{"name": "file-io-cpu", "share": 0.2, "low": 0.1, "high": 0.5}]
    kernel = {"name": "kernel-cpu", "share": 0.6, "low": 0.5, "high": 0.7, "within": within}
    parts = [kernel, {"name": "compute", "share": 0.4, "low": 0.3, "high": 0.5}]
    ledger = {"level": 2, "observer": {"samples": 50}, "categories": parts, "stages": []}
    ledgers = {"go_simple": Ledger(COLD, ledger)}
    cpu = table_of("share", ledgers=ledgers).cell("go_simple", "cpu")
    assert (cpu.value, cpu.low, cpu.high) == (0.2, 0.1, 0.5)
    row = table_of("ledger", ledgers=ledgers).rows[0].cells
    assert row["cpu"].value is None
    assert "not divided" in row["cpu"].why
    assert row["unexplained"].number == pytest.approx(0.6)


def test_a_native_rate_of_other_blocks_than_pythons_says_so(root: Path) -> None:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    whole = table_of("disk", size="default", native=run)
    assert "native: blocks of" not in whole.note
    assert whole.cell("write", "native").number
    kept = [each for each in run.select("storage.write.sequential") if (each.point.block_bytes or 0) <= 4096]
    fewer = SimpleNamespace(
        select=lambda probe, **_: kept if "write" in probe else run.select(probe), absent=()
    )
    table = table_of("disk", size="default", native=cast("Run", fewer))
    (record,) = [each for each in kept if (each.point.path, each.point.block_bytes) == ("buffered", 4096)]
    assert table.cell("write", "native").value == record.finding("bytes_per_s")
    assert "Write (not incl. sync), native: blocks of 4 KiB." in table.note


def test_the_verdict_is_beyond_what_the_runs_differ() -> None:
    assert Ran((heard(1, 9, 0, 0), heard(2, 8, 0, 0))).verdict == "is not"
    assert Ran((heard(9, 1, 0, 0), heard(7, 2, 0, 1))).verdict == "is"
    assert Ran((heard(4, 6, 0, 0), heard(6, 4, 0, 0))).verdict == "may be"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((heard(2, 9, 0, 0), heard(2, 9, 0, 0)), "it is slower: line by line takes 1.1 times"),
        ((heard(1, 8, 0, 0), heard(1, 8.5, 0, 0)), "it is faster: line by line takes 0.90 times"),
        ((heard(1, 9, 0, 0), heard(3, 9, 0, 0)), "neither is faster in every round: "),
    ],
)
def test_line_by_line_is_slower_or_faster_only_in_every_round(lines: tuple[Heard, ...], said: str) -> None:
    whole = tuple(replace(heard(1, 9, 0, 0), seconds=seconds, peak_bytes=1 << 20) for seconds in (10, 11))
    runs = {("python_simple", CACHED): whole, ("python_lines", CACHED): lines}
    said_all = lesson.say("small", TEXT, runs).answers
    answer = next(each.answer for each in said_all if "line by line" in each.question)
    assert said in answer
    assert answer.endswith("1 MiB of memory, line by line less than the interpreter that starts it.")


@pytest.mark.parametrize(
    ("light", "said"),
    [
        ((heard(9, 1, 0, 0), heard(8, 2, 0, 0)), "Each is"),
        ((heard(2, 8, 0, 0), heard(3, 7, 0, 0)), "For one program at a time the article is"),
        ((heard(4, 6, 0, 0), heard(6, 4, 0, 0)), "It depends"),
    ],
)
def test_which_document_is_right_follows_from_the_shares_beside_it(
    light: tuple[Heard, ...], said: str
) -> None:
    runs: Runs = {
        ("newlines", COLD): light,
        ("python_simple", COLD): (heard(1, 9, 0, 0), heard(2, 8, 0, 0)),
        ("python_simple", CACHED): (heard(1, 9, 0, 0),),
    }
    (answer,) = [
        each.answer for each in lesson.say("small", TEXT, runs).answers if "Which of them" in each.question
    ]
    assert answer.startswith(said)


def test_the_figures_are_those_of_the_fastest_run_and_the_spread_that_of_all() -> None:
    runs: Runs = {("go_simple", CACHED): (heard(1, 9, 1, 1), heard(2, 5, 1, 1), heard(3, 9, 1, 1))}
    size = PLANS["small"].disk_bytes
    said = {"why": lambda name="", state="": "not there", "disk": Arms({"read_cold": Times((size / 1000,))})}
    table = table_of("original", TEXT, runs, **said)
    reading = table.cell("reading", "go_simple")
    assert (reading.value, reading.low, reading.high, reading.repeats) == (2, 1, 3, 3)
    assert table.cell("total", "go_simple").value == 9
    assert table.cell("total", "python_simple").why == "not there"
    moved = table_of("movement", TEXT, runs, **said)
    assert moved.cell("go_simple", "rate").value == 200
    assert moved.cell("go_simple", "disk_ratio").value == 5


@pytest.mark.parametrize("size", [41_300_000, 413_000_000])
def test_published_figures_stand_beside_figures_of_as_large_a_text(size: int) -> None:
    runs: Runs = {("go_simple", CACHED): (heard(1, 9, 5, 0), heard(2, 9.5, 1, 1))}
    said = lesson.say("default", replace(TEXT, size=size), runs)
    table = next(table for table in said.tables if table.name == "original")
    reckoned = "" if size == 413_000_000 else "_reckoned"
    for row in ("reading", "processing", "total"):
        for name in dict.fromkeys((row, row + reckoned)):
            assert (table.cell(name, "go_simple").published is not None) is (name == row + reckoned), name
    if not reckoned:
        assert not any("reckoned" in row.name for row in table.rows)
        assert not any("calculated" in text for text in (table.note, *said.answer))
        return
    # Of the run that was measured as the fastest, though the other would be so with ten times the text.
    assert table.cell("reading_reckoned", "go_simple").value == 20
    assert table.cell("processing_reckoned", "go_simple").value == 95
    total = table.cell("total_reckoned", "go_simple")
    assert (total.value, total.low, total.high) == (117, 105, 117)
    assert "calculated, not measured" in table.note
    share = next(table for table in said.tables if table.name == "share")
    assert "reading takes" not in share.note, "of optimised Go nothing is known"


def test_the_answer_says_what_weighs_more_in_a_text_of_few_copies() -> None:
    runs: Runs = {
        ("go_simple", CACHED): (heard(1, 8, 1, 0),),
        ("rust", CACHED): (heard(1, 6, 2, 1),),
    }
    text = replace(TEXT, size=4_130_000)
    answer = lesson.say("default", text, runs).answer[-1]
    assert "this one is 3 copies of 4.13 MB" in answer
    assert "they take 10 % to 30 % of the time here" in answer
    assert "they would take about 0.11 % to 0.43 % (calculated, not measured)." in answer
    own = lesson.say("default", replace(text, note="Your own file."), runs).answer
    assert "copies" not in " ".join(own), "what a file of the user's is made of is not known"


def test_line_by_line_reading_is_what_only_reading_takes() -> None:
    runs: Runs = {
        ("python_lines", CACHED): (heard(0, 5, 1, 1), heard(0, 6, 1, 1)),
        ("only_read", CACHED): (heard(1, 0, 0, 0), heard(2, 0, 0, 0)),
    }
    apart = lesson.with_lines_apart(runs)
    assert [run.of("reading") for run in apart["python_lines", CACHED]] == [1, 2]
    assert [run.of("processing") for run in apart["python_lines", CACHED]] == [4, 4]
    assert [run.total for run in apart["python_lines", CACHED]] == [7, 8]
    assert ("only_read", CACHED) not in apart


def test_reading_alone_that_took_longer_than_with_counting_divides_nothing() -> None:
    disturbed: Runs = {
        ("python_lines", CACHED): (heard(0, 5, 1, 1), heard(0, 6, 1, 1)),
        ("only_read", CACHED): (heard(5, 0, 0, 0), heard(2, 0, 0, 0)),
    }
    assert len(lesson.with_lines_apart(disturbed)["python_lines", CACHED]) == 1
    disturbed["only_read", CACHED] = (heard(9, 0, 0, 0),)
    assert ("python_lines", CACHED) not in lesson.with_lines_apart(disturbed)


def test_the_page_that_reconciles_both_claims_has_this_runs_figures(result: Result) -> None:
    said = next(each.answer for each in result.answers if "Which of them" in each.question)
    assert "counting only its lines" in said
    assert result["movement.newlines.rate"].number
    rate, mine = result["disk.read_cold.python"].number, result["movement.python_simple.rate"].number
    ratio = result["movement.python_simple.disk_ratio"].number
    if rate and mine:
        assert ratio == pytest.approx(rate / mine)


@pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")
def test_the_ledger_of_explain_stands_beside_the_stages(result: Result) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go here, whose program is explained")
    assert result["share.go_optimised.cpu"].number, result.missing
    rows = {row.name: row.cells for row in result.table("ledger").rows}
    parts = [cells for name, cells in rows.items() if not name.endswith("_all")]
    assert sum(cells["share"].number or 0.0 for cells in parts) == pytest.approx(1.0, abs=0.01)
    for cells in some(rows.values()):
        others = sum(cells[column].number or 0.0 for column in cells if column != "share")
        assert others == pytest.approx(cells["share"].number, abs=0.01)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")
def test_explain_shows_the_stages_of_the_fastest_of_three_runs(tmp_path: Path) -> None:
    copy, tally = words_text.one_copy(200_000)
    (tmp_path / "text").write_bytes(copy)
    file, program = tmp_path / "a.json", [sys.executable, str(PROGRAMS / "words.py")]
    with (tmp_path / "text").open("rb") as source:
        words = ["--no-limits", "--level", "3", "--best-of", "3", "--json", str(file), "--", *program]
        reported = explain(*words, stdin=source.fileno())
    assert reported.returncode == 0, reported.stderr
    body = json.loads(file.read_text(encoding="utf-8"))
    assert len(body["best_of_s"]) == 3
    assert body["wall_s"] == min(body["best_of_s"])
    assert {stage["name"] for stage in body["stages"]} == {*STAGES, ""}
    assert "(best of 3 runs: " in " ".join(reported.stderr.split())
    assert len(reported.stdout.splitlines()) == len(tally)


@pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")
def test_a_run_that_fails_is_the_last_and_a_pipe_is_refused(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    second_fails = f"echo x >> '{runs}'; test $(wc -l < '{runs}') -lt 2 || exit 3"
    words = ["--no-limits", "--level", "3", "--best-of", "5", "--", "sh", "-c", second_fails]
    assert explain(*words).returncode == 3
    assert runs.read_text(encoding="ascii") == "x\nx\n"
    reading, writing = os.pipe()
    os.close(writing)
    reported = explain(*words, stdin=reading)
    os.close(reading)
    assert (reported.returncode, runs.read_text(encoding="ascii")) == (2, "x\nx\n")
    assert "only once" in reported.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")
@pytest.mark.parametrize(
    "wrong", ["--best-of 0", "--best-of x", "--best-of 2 --runs 2", "--best-of 2 --pid 1"]
)
def test_a_wrong_number_of_runs_is_one_line(wrong: str) -> None:
    reported = explain(*wrong.split(), "--", "true")
    assert (reported.returncode, len(reported.stderr.splitlines())) == (2, 1), reported.stderr
