"""Several runs in one picture: names, what may be compared, and what differs."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.charts.schema import against_its_schema
from tests.some import some

from latlab import compare
from latlab.charts import overlay
from latlab.charts.many import MOST, Difference, Figure, Machine, Part, comparable, differences, machines_of
from latlab.cli import main as command_line
from latlab.errors import UserError
from latlab.run import model
from latlab.run.run import Run
from latlab.run.samples import Key, Sample
from latlab.view import curves
from latlab.view.points import Spot
from latlab.view.theme import SHAPES


def changed(
    run: Run, number: int, times: float = 1.0, host: str | None = None, probe: str = "memory.bandwidth"
) -> Run:
    """The run as another machine would have it, all figures of a probe so many times as large."""
    plain = msgspec.to_builtins(run.header, enc_hook=model.from_machine)
    plain["id"] = f"{run.id}-{number}"
    plain["machine"]["os"]["host_name"] = host
    header = msgspec.convert(plain, model.Header, dec_hook=model.to_machine)
    return Run(header, [_scaled(record, times, probe) for record in run.records], run.footer)


def _scaled(record: model.Record, times: float, probe: str) -> model.Record:
    summary = record.summary
    if times == 1.0 or summary is None or record.probe != probe:
        return record
    figures = {name: getattr(summary, name) for name in ("min", "p50", "p90", "p99", "max", "mean")}
    own = {name: None if value is None else value * times for name, value in figures.items()}
    intervals = {name: (low * times, high * times) for name, (low, high) in summary.intervals.items()}
    return msgspec.structs.replace(
        record, summary=msgspec.structs.replace(summary, **own, intervals=intervals)
    )


@pytest.fixture(scope="module")
def three(run: Run) -> list[Machine]:
    """Two equal machines, and one that moves data half as fast."""
    return machines_of([changed(run, 1), changed(run, 2), changed(run, 3, times=0.5)])


@pytest.fixture(scope="module")
def kept(run: Run) -> list[Run]:
    """Runs of the first machine that are like its own."""
    return [changed(run, number) for number in range(4, 10)]


def test_a_machine_is_called_by_its_host_or_by_its_number(empty: Run) -> None:
    runs = [changed(empty, 1, host="lovelace"), changed(empty, 2), changed(empty, 3, host="host-1")]
    assert [m.name for m in machines_of(runs)] == ["lovelace", "machine 2", "machine 3"]
    assert [m.name for m in machines_of([each.anonymous() for each in runs])] == [
        "machine 1",
        "machine 2",
        "machine 3",
    ]
    again = [changed(empty, 1, host="lovelace"), changed(empty, 2, host="lovelace")]
    assert [m.name for m in machines_of(again)] == ["lovelace, run 1", "lovelace, run 2"]


def test_the_same_run_twice_and_too_many_runs_are_mistakes(empty: Run) -> None:
    with pytest.raises(UserError, match="given twice"):
        machines_of([empty, empty])
    with pytest.raises(UserError, match="30 at most"):
        machines_of([changed(empty, number) for number in range(MOST + 1)])


def figure(
    machine: str,
    value: float,
    share: float = 0.001,
    *,
    probe: str = "memory.poke",
    disturbed: bool = False,
    step: float = 0.0,
) -> Figure:
    """A machine's figure, its interval so large a share of it."""
    key = Key(probe, "point", "batch_mean", "p50")
    ends = (value / (1 + share), value * (1 + share))
    return Figure(machine, Sample(key, "ns", 1, value, ends, disturbed, step))


def near(value: float, count: int = 6) -> list[Sample]:
    """Kept runs of a machine, a percent apart."""
    return [figure("kept", value * 1.01**place).sample for place in range(count)]


def judged(own: list[Figure], kept: list[Sample] | None = None) -> Difference:
    return differences([own], [near(100.0) if kept is None else kept], together=True)[0]


def test_the_verdicts_on_machines_are_those_of_a_comparison() -> None:
    assert judged([figure("a", 100.0), figure("b", 100.5)]).words == "the same within 10 %"
    reported = judged([figure("b", 200.0), figure("a", 100.0)])
    assert reported.kind == "changed"
    assert reported.ratio == pytest.approx(2.0)
    assert re.fullmatch(r"2\.00 times \(1\.\d+–2\.\d+\), a to b", reported.words)
    assert re.fullmatch(r"cannot tell below \d+ %", judged([figure("a", 100.0), figure("b", 109.0)]).words)
    # Their own intervals say that this may be chance.
    assert judged([figure("a", 100.0), figure("b", 200.0, 0.9)]).kind == "cannot-tell"
    # Of one run of each machine, and none that is kept, only what is far beyond the usual spread is told.
    assert judged([figure("a", 100.0), figure("b", 150.0)], []).kind == "cannot-tell"
    assert judged([figure("a", 100.0), figure("b", 400.0)], []).kind == "changed"


def test_machines_are_the_same_only_where_the_least_precise_one_is() -> None:
    calm = [figure("a", 100.0), figure("b", 100.5)]
    assert judged(calm).kind == "same"
    assert judged([*calm, figure("c", 100.2, 0.5)]).kind == "cannot-tell"


def test_a_step_of_the_clock_is_no_difference() -> None:
    assert judged([figure("a", 10.0, step=5.0), figure("b", 14.0, step=5.0)]).kind == "cannot-tell"
    assert judged([figure("a", 10.0, step=0.1), figure("b", 14.0, step=0.1)]).kind == "changed"


def test_what_was_disturbed_is_not_judged() -> None:
    calm, disturbed = figure("a", 100.0), figure("b", 900.0, disturbed=True)
    assert judged([calm, disturbed]).words == "cannot tell: disturbed in all but a"
    assert judged([disturbed, disturbed]).words == "cannot tell: disturbed in all"
    assert judged([calm, figure("c", 100.1), disturbed]).kind == "same"


def test_of_thirty_equal_machines_chance_alone_makes_a_difference_at_most_once_in_twenty() -> None:
    chance = random.Random(8)
    found, rounds = 0, 200
    for _ in range(rounds):
        own = [figure(str(k), 100.0 * chance.lognormvariate(0, 0.1)) for k in range(30)]
        kept = [figure("kept", 100.0 * chance.lognormvariate(0, 0.1)).sample for _ in range(6)]
        found += judged(own, kept).kind == "changed"
    assert found / rounds < 0.05


@pytest.mark.parametrize("name", overlay.NAMES)
def test_every_picture_of_several_runs_has_all_machines_and_says_what_differs(
    name: str, three: list[Machine], kept: list[Run]
) -> None:
    found, notes = overlay.checked(name, three)
    assert not notes
    assert [machine.name for machine in found] == ["machine 1", "machine 2", "machine 3"]
    spec = json.dumps(against_its_schema(overlay.standalone(name, three, kept)))
    assert all(machine.name in spec for machine in found)
    for part in some(overlay.parts(name, found, kept)):
        differs = any(each.kind == "changed" for each in some(part.differences.values()))
        assert differs is (name == "bandwidth"), part.words
    table = overlay.table(name, overlay.parts(name, found))
    assert {row[2] for row in table.rows} == {machine.name for machine in found}


def test_runs_that_measured_nothing_in_common_are_refused_also_without_a_picture(run: Run) -> None:
    def only(number: int, operation: str) -> Run:
        whole = changed(run, number)
        kept = [record for record in whole.records if record.point.operation == operation]
        return Run(whole.header, kept, whole.footer)

    machines, _ = overlay.checked("bandwidth", machines_of([only(1, "read"), only(2, "write")]))
    with pytest.raises(UserError, match="no chart bandwidth of these runs: no two of them measured the same"):
        overlay.parts("bandwidth", machines)


def test_half_the_bandwidth_is_a_difference_and_equal_bandwidth_is_none(
    three: list[Machine], kept: list[Run]
) -> None:
    apart = overlay.parts("bandwidth", three, kept)
    assert all(re.search(r": 2\.00 times .*, machine 3 to machine 1", part.words) for part in some(apart))
    same = overlay.parts("bandwidth", three[:2], kept)
    assert all("the same within 10 %" in part.words for part in some(same))


def test_a_ladder_says_what_a_comparison_of_the_two_runs_says(run: Run) -> None:
    two = [changed(run, 1), changed(run, 2, times=9.0, probe="kernel.syscall")]
    found = compare.compare(compare.Side("a", (two[0],)), compare.Side("b", (two[1],)))
    own = {part.name: part for part in overlay.parts("ladder", machines_of(two))}
    assert [each.name for each in found.headline if each.kind == "changed"] == ["system call (getppid)"]
    apart = [part.name for part in own.values() if part.differences[""].kind == "changed"]
    assert apart == ["system call (getppid)"]
    assert own["RAM"].words.startswith("cannot tell below ")


def test_sizes_that_are_written_alike_are_compared_apart(
    three: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    outline = overlay.CURVES["bandwidth"]
    spots = [Spot(size, float(size), 1.0, 1e9, 9, disturbed=False) for size in (4096, 4100, 8192)]
    monkeypatch.setitem(
        overlay.CURVES, "bandwidth", dataclasses.replace(outline, lines=lambda _: {"read": spots})
    )
    (part,) = overlay.parts("bandwidth", three)
    assert list(part.figures) == ["4,096 B", "4,100 B", "8 KiB"]


def test_a_curve_says_its_largest_difference_and_at_how_many_places_there_is_one() -> None:
    within, unknown = (
        Difference("same", 1.0, "the same within 10 %"),
        Difference("cannot-tell", 1.1, "cannot tell"),
    )
    apart, most = Difference("changed", 2.0, "2 times"), Difference("changed", 3.0, "3 times")

    def said(*every: Difference) -> str:
        return Part("read", dict(zip("abcd", every, strict=False)), {}).words

    assert said(apart, most, within, unknown) == "b: 3 times; differs at 2 of 4"
    assert said(within, within) == "the same within 10 % at all 2"
    assert said(within, unknown, within) == "b: cannot tell; the same at 2 of 3"
    assert said(most) == "a: 3 times"
    assert said() == "not comparable: no point in common"


def test_thirty_machines_are_thirty_marks_that_differ(hierarchy: Run) -> None:
    machines = machines_of([changed(hierarchy, number) for number in range(MOST)])
    _, shape = curves.series_encodings([machine.name for machine in machines])
    shapes: Any = shape.to_dict()
    marks = {(place % len(SHAPES), drawn) for place, drawn in enumerate(shapes["scale"]["range"])}
    assert len(marks) == MOST
    assert "machine 30" in json.dumps(against_its_schema(overlay.standalone("ladder", machines)))


def test_other_methods_and_other_paths_are_left_out_and_named(run: Run) -> None:
    newer = Run(
        changed(run, 2).header,
        [
            msgspec.structs.replace(record, method=record.method + 1)
            if record.probe == "memory.bandwidth"
            else record
            for record in run.records
        ],
    )
    farther = changed(run, 3)
    settings = msgspec.structs.replace(farther.settings, delay_ms=99.0)
    farther = Run(msgspec.structs.replace(farther.header, settings=settings), farther.records)
    kept, notes = comparable(machines_of([changed(run, 1), newer, farther]))
    assert "memory.bandwidth" not in kept[1].run
    assert not any(probe.startswith("network.") for probe in kept[2].run.probes)
    assert any("machine 2: memory.bandwidth is not comparable: method version: " in note for note in notes)
    assert any("the network's path" in note for note in notes)
    with pytest.raises(UserError, match="fewer than two"):
        overlay.checked("bandwidth", machines_of([changed(run, 1), newer]))


def test_a_chart_of_one_machine_says_so(three: list[Machine]) -> None:
    with pytest.raises(UserError, match="one run only"):
        overlay.checked("noise_timeline", three)


@pytest.fixture(scope="module")
def hierarchy(run: Run) -> Run:
    """What the run has of caches and memory alone: that of many machines is drawn and read quickly."""
    probes = ("memory.load.dependent", "memory.bandwidth", "memory.poke")
    return Run(run.header, [record for record in run.records if record.probe in probes], run.footer)


@pytest.fixture(scope="module")
def files(hierarchy: Run, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("class")
    runs = [changed(hierarchy, 1, host="lovelace"), changed(hierarchy, 2, times=0.5)]
    return [str(each.save(place / f"{number}.latlab.jsonl")) for number, each in enumerate(runs)]


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The command, in this process."""
    code = command_line.run(words)
    reported = capsys.readouterr()
    return code, reported.out, reported.err


def test_ids_of_runs_without_a_chart_are_no_names_of_charts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "latlab" / "runs"
    folder.mkdir(parents=True)
    runs = [changed(run, number) for number in (1, 2)]
    for each in runs:
        each.save(folder / f"{each.id}.latlab.jsonl")
    code, _, reported = called(capsys, "chart", *(each.id for each in runs))
    assert code == 2
    assert f"latlab chart ladder {runs[0].id} ..." in reported
    assert "no chart 'laddr'; did you mean ladder?" in called(capsys, "chart", "laddr", runs[0].id)[2]


def test_the_command_takes_the_chart_first_or_last(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, first, _ = called(capsys, "chart", "ladder", *files)
    assert code == 0
    assert "lovelace: " in first
    assert "machine 2: " in first
    assert "RAM: cannot tell below " in first
    assert called(capsys, "chart", *files, "ladder")[1] == first
    assert "lovelace" not in called(capsys, "chart", "ladder", *files, "--anonymous")[1]


def test_the_command_writes_a_picture_and_a_table(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert called(capsys, "chart", "bandwidth", *files, "-o", str(tmp_path / "class.csv"))[0] == 0
    lines = (tmp_path / "class.csv").read_text(encoding="utf-8").splitlines()
    assert "2.00 times" in lines[1]
    pytest.importorskip("vl_convert", reason="pictures need the extra latlab[export]")
    assert called(capsys, "chart", "bandwidth", *files, "-o", str(tmp_path / "class.svg"))[0] == 0
    text = (tmp_path / "class.svg").read_text(encoding="utf-8")
    assert "lovelace" in text
    assert "machine 2" in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("noise_timeline", "0", "1"), "shows one run only"),
        (("ladder", "0", "0"), "given twice"),
        (("laddr", "0", "1"), "did you mean ladder"),
        (("0", "1"), "latlab chart ladder"),
        (("ladder",), "which run"),
    ],
)
def test_a_mistake_is_one_line(
    words: tuple[str, ...], why: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, reported = called(capsys, "chart", *(files[int(w)] if w.isdigit() else w for w in words))
    assert code == 2
    assert out == ""
    assert why in reported
    assert reported.count("\n") == 1


def test_the_page_for_teachers_works_as_it_is_written(
    root: Path,
    files: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("vl_convert", reason="pictures need the extra latlab[export]")
    monkeypatch.chdir(tmp_path)
    for number, file in enumerate(files):
        Path(f"machine-{number:02}.latlab.jsonl").write_bytes(Path(file).read_bytes())
    page = (root / "docs/how-to/thirty-laptops.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(("latlab chart", "latlab export"))]
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        globbed = [
            path
            for word in words
            for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        code, _, reported = called(capsys, *(files[0] if word == "last" else word for word in globbed))
        assert code == 0, f"{line}: {reported}"
    assert "lovelace" not in Path("mine.latlab.jsonl").read_text(encoding="utf-8")
