"""`latlab history`: what is shown of runs whose changes are known, and how little of their files is read."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.compare.conftest import kept, scaled
from tests.pages import ROOT, shell_blocks
from tests.some import some

from latlab.compare.history import Change, Figure, History, Moment, Point, history
from latlab.compare.history_words import changed
from latlab.compare.picture import _ends, panel
from latlab.report.history_page import MOST, document
from latlab.run import brief, reader
from latlab.run.fold import keeping
from latlab.run.model import ENCODER, Record, Unit
from latlab.run.run import Run
from latlab.run.store import head
from latlab.view.theme import LIGHT

Command = Callable[..., CompletedProcess[str]]
Json = dict[str, Any]
#: Probes of which the runs here have figures.
PROBES = ("memory.load.dependent", "kernel.syscall", "storage.read.random")


@cache
def small() -> Run:
    whole = kept()
    assert whole.footer is not None
    return Run(whole.header, [each for each in whole.records if each.probe in PROBES], whole.footer)


def write(
    folder: Path,
    number: int,
    factor: Callable[[Record], float] = lambda _: 1.0,
    *,
    change: Callable[[Json], object] = lambda _: None,
    records: Callable[[Record], Record] = lambda record: record,
    middle: str = "",
) -> Path:
    """A kept run of its own day, as its file is written: its figures differ by 2 % from those of others."""
    dice = random.Random(number)
    run = small()
    figures = [
        records(scaled(record, factor(record) * dice.lognormvariate(0, 0.02))) for record in run.records
    ]
    header = json.loads(ENCODER.encode(run.header))
    header |= {"id": f"run-{number:02}", "started": f"2026-11-{1 + number:02}T10:00:00+00:00"}
    change(header)
    assert run.footer is not None
    footer = ENCODER.encode(keeping(run.footer, figures)).decode()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"run-{number:02}.latlab.jsonl"
    file.write_text(f"{json.dumps(header)}\n{middle}{footer}\n", encoding="utf-8")
    return file


@pytest.fixture
def folder(own_home: Path) -> Path:
    return own_home / "data/latlab/runs"


def reported(answer: CompletedProcess[str]) -> Json:
    assert answer.returncode == 0, answer.stderr
    found: Json = json.loads(answer.stdout)
    return found


def figure(found: Json, name: str) -> Json:
    return next(each for each in found["figures"] if each["name"].startswith(name))


def syscall(record: Record) -> bool:
    return record.probe == "kernel.syscall"


def after_the_kernel(folder: Path, count: int = 16) -> None:
    """System calls take 30 % longer from the tenth run on, which has a new kernel; RAM has one spike."""
    for number in range(count):

        def factor(record: Record, number: int = number) -> float:
            if record.probe == "memory.load.dependent" and number == 5:
                return 3.0
            return 1.3 if syscall(record) and number >= 9 else 1.0

        def change(header: Json, number: int = number) -> None:
            header["machine"]["os"]["kernel_release"] = "6.18.1" if number >= 9 else "6.1.2"

        write(folder, number, factor, change=change)


def test_a_change_is_shown_with_its_date_its_factor_and_the_new_kernel(called: Command, folder: Path) -> None:
    after_the_kernel(folder)
    answer = called("history")
    assert answer.returncode == 0, answer.stderr
    text = answer.stdout
    assert re.match(r"1 of \d figures changed by more than 10 % in 16 runs, 2026-11-01 10:00 to", text)
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith(" system call"))
    assert re.search(r"[▁▂▃▄▅▆▇█]{16}  \d+ ns → \d+ ns$", lines[at])
    detail = " ".join(line.strip() for line in lines[at + 1 : at + 3])
    assert re.match(r"2026-11-10 10:00 1\.\d+ times slower \(1\.2\d*–1\.3\d*\); kernel: 6\.1\.2 to", detail)
    assert text.count(" times ") == 1
    assert "  1  2026-11-10 10:00 kernel: 6.1.2 to 6.18.1" in text
    # Below the tenth run.
    (axis,) = [line for line in lines if line.startswith(" environment")]
    sparkline = re.search(r"[▁▂▃▄▅▆▇█]{16}", lines[at])
    assert sparkline is not None
    assert axis.index("1") == sparkline.start() + 9
    ram = next(line for line in lines if line.startswith(" RAM"))
    assert ram.partition("  ")[2].lstrip()[5] == "^"
    assert "spike: 2026-11-06 10:00 (" in text
    assert "Marks: ^ v spike, not a change." in text
    plain = called("history", LC_ALL="C").stdout
    assert plain.isascii()
    assert "#" in plain


@pytest.mark.parametrize(
    ("factor", "unit", "words"),
    [
        (1.25, "ns", "1.25 times slower (1.20–1.33)"),
        (0.8, "ns", "1.25 times faster (1.20–1.33)"),
        (0.8, "bytes_per_s", "1.25 times slower (1.20–1.33)"),
    ],
)
def test_a_change_is_slower_or_faster(factor: float, unit: Unit, words: str) -> None:
    low, high = (1.2, 4 / 3) if factor > 1 else (0.75, 1 / 1.2)
    assert changed(Change(0, factor, low, high, ()), unit) == words


def test_json_has_all_points_with_their_ranges(called: Command, folder: Path) -> None:
    after_the_kernel(folder)
    found = reported(called("history", "--json"))
    assert [run["id"] for run in found["runs"]] == [f"run-{number:02}" for number in range(16)]
    assert [run["id"] for run in found["runs"] if run["environment"]] == ["run-09"]
    call = figure(found, "system call")
    (change,) = call["changes"]
    assert change["run"] == "run-09"
    assert change["low"] < 1.3 < change["high"]
    assert change["environment"] == ["kernel: 6.1.2 to 6.18.1"]
    for point in some(call["points"], 16):
        assert point["low"] <= point["value"] <= point["high"]
    ram = figure(found, "RAM")
    assert ram["changes"] == []
    assert [point["run"] for point in ram["points"] if point["kind"] == "spike"] == ["run-05"]


def test_a_picture_has_a_panel_a_figure_and_a_line_a_change(
    called: Command, folder: Path, place: Path
) -> None:
    pytest.importorskip("vl_convert", reason="needs latlab[export]")
    after_the_kernel(folder)
    answer = called("history", "-o", "history.svg")
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stderr
    picture = (place / "history.svg").read_text(encoding="utf-8")
    for name in ("RAM", "system call", "disk, random 4 KiB read"):
        assert f">{name}" in picture
    assert picture.count(LIGHT.s2) >= 1
    assert "2026-11-01" in picture
    answer = called("history", "-o", "history.html")
    assert (answer.returncode, answer.stderr) == (
        2,
        "latlab: -o 'history.html': name the file .svg, .png or .pdf\n",
    )


def test_a_panel_draws_spikes_disturbed_runs_and_the_environment_apart(folder: Path) -> None:
    def disturbed(record: Record) -> Record:
        return msgspec.structs.replace(record, flags=["disturbed"]) if syscall(record) else record

    after_the_kernel(folder)
    write(folder, 16, records=disturbed)
    found = history(sorted(folder.iterdir()))
    ram, call = (
        next(each for each in found.figures if each.name.startswith(name)) for name in ("RAM", "system call")
    )
    rows = [row for layer in panel(ram, found)["layer"] for row in layer["data"]["values"]]
    assert {row["text"] for row in rows if row.get("sign") == "1"} == {
        "2026-11-10 10:00 kernel: 6.1.2 to 6.18.1"
    }
    assert {row["run"] for row in rows if row.get("sign") == "1"} == {8.5}
    stem, point = _marks(ram, found, "spike")
    assert stem["encoding"]["y"]["field"] == "level"
    assert stem["encoding"]["y2"]["field"] == "value"
    assert point["mark"]["shape"] == "triangle-up"
    assert _marks(ram, found, "change") == []
    (line,) = _marks(call, found, "change")
    assert [row["run"] for row in line["data"]["values"]] == [8.5]
    crosses = [layer for layer in panel(call, found)["layer"] if layer["mark"].get("shape") == "cross"]
    assert [[row["run"] for row in layer["data"]["values"]] for layer in crosses] == [[16]]


def _marks(figure: Figure, found: History, role: str) -> list[Json]:
    return [
        layer
        for layer in panel(figure, found)["layer"]
        if layer["encoding"].get("color", {}).get("datum") == role
    ]


def test_a_page_has_what_changed_first_and_what_changed_around_it(
    called: Command, folder: Path, place: Path
) -> None:
    after_the_kernel(folder)
    answer = called("history", "--html", "history.html")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == called("history").stdout, "the page comes beside the lines"
    page = (place / "history.html").read_text(encoding="utf-8")
    order = [page.index(text) for text in ("What changed?", "system call", "What did not?", ">RAM")]
    assert order == sorted(order)
    assert "2026-11-10 10:00 1." in page
    assert "2026-11-10 10:00 kernel: 6.1.2 to 6.18.1" in page
    assert "spike: 2026-11-06 10:00" in page
    assert "default-src &#39;none&#39;" in page
    answer = called("history", "--html", "nowhere/history.html")
    assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)


def test_a_page_of_a_thousand_runs_is_shown_whole() -> None:
    point = Point(0, 100.0, (99.0, 101.0), "measured")
    runs = tuple(Moment(f"run-{number}", "2026-11-01T10:00:00", ()) for number in range(1000))
    points = tuple(dataclasses.replace(point, run=number) for number in range(1000))
    figure = Figure("kernel.syscall", "getppid", "ns", "system call", points, (), ())
    found = History(runs, (figure,) * 70, 0.1, ())
    page = document(found)
    assert len(page.figures) == MOST
    assert "60 of 70 figures" in page.notices[0].text
    # What is cut is no specification any more.
    assert page.figures[0].spec == panel(figure, found)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (155.0, 236.0, [160, 180, 200, 220]),
        (40.0, 41.0, [40.0, 40.5, 41.0]),
        (1.0, 30.0, [1, 2, 5, 10, 20]),
        (1.0, 1e6, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
        (7.0, 7.0, [6.95, 7.0, 7.05]),
    ],
)
def test_an_axis_has_round_ticks_between_its_ends(low: float, high: float, ticks: list[float]) -> None:
    points = tuple(Point(run, value, None, "measured") for run, value in enumerate((low, high)))
    first, last, found = _ends(Figure("kernel.syscall", "getppid", "ns", "", points, (), ()))
    assert first < low
    assert last > high
    assert found == pytest.approx(ticks)


def test_unchanged_runs_have_no_change(called: Command, folder: Path) -> None:
    for number in range(12):
        write(folder, number)
    answer = called("history")
    assert re.match(r"0 of \d figures changed", answer.stdout)
    assert "Environment" not in answer.stdout
    assert not any(each["changes"] for each in some(reported(called("history", "--json"))["figures"]))


def test_another_method_version_starts_a_new_segment(called: Command, folder: Path) -> None:
    def other(record: Record) -> Record:
        return msgspec.structs.replace(record, method=record.method + 1) if syscall(record) else record

    for number in range(6):
        write(folder, number)
    for number in range(6, 12):
        write(folder, number, lambda record: 2.0 if syscall(record) else 1.0, records=other)
    call = figure(reported(called("history", "--json")), "system call")
    assert call["changes"] == []
    (found,) = call["breaks"]
    assert found["run"] == "run-06"
    assert found["why"].startswith("method version: ")
    assert "2026-11-07 10:00 not comparable with earlier runs: method version:" in called("history").stdout


def test_disturbed_runs_are_shown_and_not_judged(called: Command, folder: Path) -> None:
    def disturbed(record: Record) -> Record:
        return msgspec.structs.replace(record, flags=["disturbed"]) if syscall(record) else record

    for number in range(4):
        write(folder, number, records=disturbed)
        write(folder, number + 4, lambda _: 2.0, records=disturbed)
    call = figure(reported(called("history", "--json")), "system call")
    assert call["changes"] == []
    assert {point["kind"] for point in call["points"]} == {"disturbed"}
    assert [change["run"] for change in figure(reported(called("history", "--json")), "RAM")["changes"]] == [
        "run-04"
    ]
    text = called("history").stdout
    assert "not judged: 0 undisturbed runs, at least 6 needed" in text
    assert "xxxxxxxx" in text


def test_figures_are_chosen_by_probe_and_point(called: Command, folder: Path) -> None:
    after_the_kernel(folder, 4)
    found = reported(called("history", "--json", "--figure", "storage.*:*depth 1*"))
    assert {each["probe"] for each in some(found["figures"])} == {"storage.read.random"}
    assert all("depth 1" in each["point"] for each in found["figures"])
    answer = called("history", "--figure", "nothing:*")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "no run has a figure 'nothing:*'" in answer.stderr


def test_runs_are_those_of_this_machine_or_those_that_are_named(
    called: Command, folder: Path, place: Path
) -> None:
    def other(header: Json) -> None:
        header["machine"]["cpu"]["model_name"] = "Other One"

    write(folder, 0, change=other)
    for number in range(1, 4):
        write(folder, number)
    (place / "named").mkdir()
    write(place / "named", 9, change=other)
    called("runs", "label", "run-02", "nightly")

    def runs(*names: str) -> list[str]:
        return [run["id"] for run in reported(called("history", "--json", *names))["runs"]]

    assert runs() == ["run-01", "run-02", "run-03"]
    assert runs("run-03", "run-01") == ["run-01", "run-03"]
    assert runs("named/", "@nightly", "run-02") == ["run-02", "run-09"]
    breaks = figure(reported(called("history", "--json", "named", "last")), "RAM")["breaks"]
    assert "to Other One" in breaks[0]["why"]
    answer = called("history", "@nothing")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)


def test_without_runs_that_is_said(called: Command) -> None:
    answer = called("history")
    assert (answer.returncode, answer.stderr) == (
        2,
        "latlab: there are no kept runs yet: `latlab measure` makes one\n",
    )


def test_a_file_that_is_no_run_is_said_and_left_out(called: Command, folder: Path, place: Path) -> None:
    write(place, 1)
    (place / "other.latlab.jsonl").write_text("{}\n", encoding="utf-8")
    answer = called("history", "--json", ".")
    assert len(reported(answer)["runs"]) == 1
    assert answer.stderr == "latlab: other.latlab.jsonl does not begin like a run file\n"


def test_only_the_newest_run_is_read_whole(called: Command, folder: Path) -> None:
    # What stands between the first and the last line is no JSON: whoever read it would say so.
    for number in range(10):
        write(folder, number, middle="no JSON\n" * 100)
    write(folder, 10)
    with mock.patch.object(reader, "read", wraps=reader.read) as whole:
        found = reported(called("history", "--json"))
    assert len(found["runs"]) == 11
    assert found["notes"] == []
    assert [call.args[0].name for call in whole.call_args_list] == ["run-10.latlab.jsonl"]


def test_figures_of_some_probes_are_read_as_when_all_are(folder: Path) -> None:
    file = write(folder, 0)
    own, some_of = head(file), frozenset({"kernel.syscall", "storage.read.random", "never.was"})

    def wanted(probe: str, _point: str) -> bool:
        return probe in some_of

    whole = brief.brief(file, own, wanted)
    assert {each.key.probe for each in whole.medians} == some_of - {"never.was"}
    with mock.patch.object(brief, "_FOOTER", None):
        assert brief.brief(file, own, wanted, some_of) == whole
    # A line that another program wrote is read in full.
    first, last = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{first}\n{json.dumps(json.loads(last))}\n", encoding="utf-8")
    assert brief.brief(file, own, wanted, some_of) == whole


def test_a_run_without_its_end_is_read_whole(called: Command, folder: Path, rounds: str) -> None:
    first, *lines, _ = Path(rounds).read_text(encoding="utf-8").splitlines(keepends=True)
    folder.mkdir(parents=True)
    (folder / "short.latlab.jsonl").write_text(first + "".join(lines), encoding="utf-8")
    found = reported(called("history", "--json"))
    assert len(figure(found, "RAM")["points"]) == 1


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_figures_that_no_machine_has_are_shown_nevertheless(
    called: Command, folder: Path, factor: float
) -> None:
    for number in range(12):
        by = factor if number >= 6 else 1.0
        write(folder, number, functools.partial(lambda by, record: by if syscall(record) else 1.0, by))
    call = figure(reported(called("history", "--json")), "system call")
    assert [change["run"] for change in call["changes"]] == ["run-06"]
    assert called("history").returncode == 0


@pytest.mark.parametrize("length", [0, 1, 5, 1000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_is_found_from_the_end(tmp_path: Path, length: int, end: str) -> None:
    file = tmp_path / "file"
    with mock.patch.object(brief, "_BLOCK", 4):
        for before in ("", "one\ntwo\n"):
            file.write_text(f"{before}{'x' * length}{end}", encoding="utf-8")
            if length:
                assert brief.last_line(file).rstrip(b"\n") == b"x" * length
        file.write_bytes(b"")
        assert brief.last_line(file) == b""


def test_every_command_of_the_page_on_histories_runs(called: Command, folder: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs latlab[export]")
    page = ROOT / "docs/how-to/keep-a-history.md"
    measured = 0
    for line in some("".join(shell_blocks(page)).splitlines(), 9):
        program, *words = shlex.split(line)
        assert program == "latlab"
        if words[0] == "measure":
            write(folder, measured)
            measured += 1
            continue
        answer = called(*words)
        assert answer.returncode == 0, f"{line}: {answer.stderr}"
    assert measured == 2
