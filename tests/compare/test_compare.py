"""Two sides: what is compared, what is not and why, and what nobody may be told."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.calling import called
from tests.compare.conftest import Made, kept, scaled
from tests.golden.cases import FILES

from latlab.compare import Comparison, Figure, Side, compare, side, stored, words
from latlab.compare.sides import both
from latlab.errors import UserError
from latlab.run.fold import keeping
from latlab.run.model import Machine, Record
from latlab.run.run import Run, load
from latlab.run.store import Store


def sides(a: list[Run], b: list[Run]) -> tuple[Side, Side]:
    return Side("A", tuple(a)), Side("B", tuple(b))


def of(found: Comparison, name: str) -> Figure:
    return next(each for each in found.figures if each.name == name)


def in_ram(record: Record) -> bool:
    return record.probe == "memory.load.dependent" and (record.point.working_set_bytes or 0) >= 64 << 20


def test_five_runs_a_side_find_thirty_per_cent_in_one_level_and_name_nothing_else(made: Made) -> None:
    before = [made(seed) for seed in range(5)]
    after = [made(seed, change=lambda record: 1.3 if in_ram(record) else 1.0) for seed in range(5, 10)]
    found = compare(*sides(before, after))
    assert found.kind == "changed"
    assert [each.name for each in found.headline if each.kind == "changed"] == ["RAM"]
    assert of(found, "RAM").ratio == pytest.approx(1.3, rel=0.05)
    assert all(each.probe == "memory.load.dependent" for each in found.changed)


def test_a_tail_that_grew_is_found_where_the_median_did_not(made: Made) -> None:
    def longer(record: Record) -> Record:
        summary = record.summary
        if record.probe != "storage.read.random" or summary is None or summary.p99 is None:
            return record
        return msgspec.structs.replace(record, summary=msgspec.structs.replace(summary, p99=summary.p99 * 3))

    a = [made(seed) for seed in range(5)]
    b = [changed_records(made(seed), longer) for seed in range(5, 10)]
    found = compare(*sides(a, b))
    assert {(each.probe, each.quantile) for each in found.changed} == {("storage.read.random", "p99")}
    assert all(each.name.startswith("p99 of block ") for each in found.changed)


def test_the_same_machine_is_called_the_same_where_that_can_be_said(made: Made) -> None:
    found = compare(*sides([made(seed) for seed in range(5)], [made(seed) for seed in range(5, 10)]))
    assert not found.changed
    assert [each.kind for each in found.headline].count("same") >= len(found.headline) / 2


def test_one_run_a_side_tells_no_small_change_and_says_what_it_goes_by(made: Made) -> None:
    alone = compare(*sides([made(1)], [made(2, change=lambda _: 1.2)]))
    assert not alone.changed
    assert "the usual variation between runs of one machine" in alone.known_from(alone.a, alone.b)
    assert all(each.kind == "cannot-tell" for each in alone.headline)
    # Kept runs of this machine, which lie near one another, show it.
    near = [made(seed) for seed in range(10, 16)]
    known = compare(*sides([made(1)], [made(2, change=lambda _: 1.2)]), kept=near)
    assert len([each for each in known.headline if each.kind == "changed"]) >= len(known.headline) / 2
    assert known.known_from(known.a, known.b).endswith("and 6 kept runs of this machine")


def test_changes_that_nobody_expects_are_no_figure_to_print(made: Made) -> None:
    found = compare(*sides([made(1)], [made(2)]))
    assert found.visible is not None
    assert found.visible[1] > 9
    said = words.verdict(found)
    assert said.endswith("in some only one above 10 times; one run per side shows little: measure three.")
    figures = {words.of_figure(each) for each in found.figures if each.verdict}
    assert "cannot tell: too few measurements" in figures
    assert not any(re.search(r"\d{3,} times", text) for text in (said, *figures))
    assert words.would_show((20.0, 30.0), "them", 2) == (
        "changes below 10 times would have been missed in most of them"
    )
    assert (
        words.would_show((0.1, 0.1), "them", 1) == "a change of 10 % would have been detected in half of them"
    )


def test_two_runs_a_side_are_no_more_precise_than_each_says_of_itself_and_five_show_it(made: Made) -> None:
    def wide(run: Run) -> Run:
        def own(record: Record) -> Record:
            if record.value is None or record.summary is None:
                return record
            ends = {"p50": (record.value / 2, record.value * 2)}
            return msgspec.structs.replace(
                record, summary=msgspec.structs.replace(record.summary, intervals=ends)
            )

        return Run(run.header, [own(record) for record in run.records], run.footer)

    a = [wide(made(seed, 0.001)) for seed in range(5)]
    b = [wide(made(seed, 0.001, lambda _: 1.2)) for seed in range(5, 10)]
    assert {each.kind for each in compare(*sides(a[:2], b[:2])).headline} == {"cannot-tell"}
    assert {each.kind for each in compare(*sides(a, b)).headline} == {"changed"}


def with_machine(run: Run, path: str, value: object) -> Run:
    fields: dict[str, Any] = json.loads(msgspec.json.encode(dict(run.header.machine)))
    *outer, last = path.split(".")
    place = fields
    for name in outer:
        place = place[name]
    place[last] = value
    return Run(msgspec.structs.replace(run.header, machine=Machine(fields)), run.records, run.footer)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("cpu.model_name", "Another CPU", "CPU: AMD EPYC against Another CPU"),
        ("cpu.logical_cpus", 64, "number of CPUs: 2 against 64"),
        ("memory.page_bytes", 65536, "page size: 4 KiB against 64 KiB"),
        ("limits.cgroup.memory_limit_bytes", 1 << 30, "cgroup's memory limit: none against 1 GiB"),
        ("limits.cgroup.cpu_quota", 50000, "cgroup's CPU quota: none against 50000"),
        ("cpu.power_source", "battery", "power source: unknown against battery"),
    ],
)
def test_machines_that_differ_are_not_compared_and_the_field_is_named(
    made: Made, path: str, value: object, named: str
) -> None:
    other = with_machine(made(2), path, value)
    found = compare(*sides([made(1)], [other]))
    assert found.kind == "not-comparable"
    assert {each.why for each in found.figures} == {named}
    assert {each.ratio for each in found.figures} == {None}
    assert found.machines == (named,)
    asked = compare(*sides([made(1)], [other]), across=True)
    assert asked.kind != "not-comparable"
    assert asked.machines == ()


def test_another_file_system_keeps_the_disk_from_being_compared_and_nothing_else(made: Made) -> None:
    found = compare(*sides([made(1)], [with_machine(made(2), "dir.file_system.kind", "xfs")]))
    disk = [each for each in found.figures if each.probe.startswith("storage.")]
    assert disk
    assert {each.why for each in disk} == {"file system: ext4 against xfs"}
    assert all(each.kind != "not-comparable" for each in found.figures if each not in disk)


def changed_records(run: Run, change: Callable[[Record], Record | None]) -> Run:
    records = [new for record in run.records if (new := change(record)) is not None]
    return Run(run.header, records, run.footer)


def test_another_version_of_a_method_and_a_point_of_one_side_alone_are_named(made: Made) -> None:
    def other(record: Record) -> Record | None:
        if record.probe == "kernel.syscall":
            return msgspec.structs.replace(record, method=record.method + 1)
        return None if record.probe == "storage.sync" else record

    found = compare(*sides([made(1)], [changed_records(made(2), other)]))
    assert of(found, "system call (getppid)").why == "method version: 2 and 3" or of(
        found, "system call (getppid)"
    ).why.startswith("method version: ")
    sync = [each for each in found.figures if each.probe == "storage.sync"]
    assert {each.why for each in sync} == {"point: only in A"}
    assert all(each.b is None for each in sync)


def test_a_figure_that_was_disturbed_in_every_run_of_a_side_is_not_called_changed(made: Made) -> None:
    def slow(record: Record) -> Record:
        return msgspec.structs.replace(scaled(record, 2.0), flags=["disturbed"]) if in_ram(record) else record

    a, b = [made(seed) for seed in range(5)], [changed_records(made(seed), slow) for seed in range(5, 10)]
    found = compare(*sides(a, b))
    assert of(found, "RAM").kind == "cannot-tell"
    assert of(found, "RAM").why == "disturbed in B"
    # Of a neighbour in one run the others say what is so without it.
    one = compare(*sides(a, [*(made(seed) for seed in range(5, 9)), b[0]]))
    assert of(one, "RAM").kind == "same"
    assert of(one, "RAM").b is not None
    assert of(one, "RAM").b.runs == 4  # type: ignore[union-attr]


def test_what_most_runs_of_both_sides_have_is_how_the_machine_is(made: Made) -> None:
    def disturbed(record: Record) -> Record:
        return msgspec.structs.replace(record, flags=["disturbed"]) if in_ram(record) else record

    def ran(seed: int, factor: float = 1.0) -> Run:
        return made(seed, change=lambda record: factor if in_ram(record) else 1.0)

    def noisy(seeds: range, factor: float = 1.0) -> list[Run]:
        return [changed_records(ran(seed, factor), disturbed) for seed in seeds]

    a = [*noisy(range(4)), ran(4)]
    same = compare(*sides(a, noisy(range(5, 10))))
    assert of(same, "RAM").kind == "same"
    assert [own and own.runs for own in (of(same, "RAM").a, of(same, "RAM").b)] == [5, 5]
    assert of(compare(*sides(a, noisy(range(5, 10), 1.3))), "RAM").kind == "changed"
    # Two runs do not say how far such runs lie apart.
    few = of(compare(*sides(noisy(range(2)), noisy(range(5, 7)))), "RAM")
    assert (few.kind, few.why) == ("cannot-tell", "disturbed in A and B")


def test_headlines_of_one_name_at_different_points_are_distinguished(made: Made) -> None:
    def elsewhere(record: Record) -> Record:
        if record.probe != "memory.load.dependent" or record.point.working_set_bytes != 256 << 20:
            return record
        return msgspec.structs.replace(
            record, point=msgspec.structs.replace(record.point, working_set_bytes=255 << 20)
        )

    found = compare(*sides([made(1)], [changed_records(made(2), elsewhere)]))
    names = [each.title for each in found.headline if each.name == "RAM"]
    assert sorted(names) == ["RAM, 255 MiB, 4k pages, page-local", "RAM, 256 MiB, 4k pages, page-local"]
    titles = [each.title for each in found.figures]
    assert len(set(titles)) == len(titles)


def test_one_point_that_was_timed_in_two_ways_has_two_names(made: Made) -> None:
    def twice(run: Run) -> Run:
        again = [
            msgspec.structs.replace(record, kind="batch_mean")
            for record in run.records
            if record.probe == "kernel.spawn"
        ]
        return Run(run.header, [*run.records, *again], run.footer)

    found = compare(*sides([twice(made(1))], [twice(made(2))]))
    titles = [each.title for each in found.figures if each.probe == "kernel.spawn" and each.quantile == "p50"]
    assert any(title.endswith(", in windows") for title in titles)
    assert len(set(titles)) == len(titles)


def test_what_else_differs_is_said(made: Made) -> None:
    found = compare(*sides([made(1)], [with_machine(made(2), "os.kernel_release", "7.0.1")]))
    assert found.environment == ("kernel: 6.18.44-fc-v669 against 7.0.1",)
    assert found.kind != "not-comparable"


def test_json_says_all_of_it_in_the_form_that_is_promised(made: Made) -> None:
    found = compare(*sides([made(seed) for seed in range(3)], [made(seed) for seed in range(3, 6)])).as_json()
    text = json.loads(json.dumps(found, allow_nan=False))
    assert set(text) == {
        "same",
        "sides",
        "figures",
        "verdict",
        "known_from",
        "environment",
        "machines",
        "tails",
    }
    assert [set(own) for own in text["sides"]] == [{"label", "runs", "machine"}] * 2
    for figure in text["figures"]:
        assert figure["verdict"] in {"changed", "same", "cannot-tell", "not-comparable"}
        assert figure["ratio_low"] <= figure["ratio"] <= figure["ratio_high"]
        assert set(figure["a"]) == {figure["quantile"], "low", "high", "runs"}
        assert math.isfinite(figure["smallest_visible"])


# --------------------------------------------------------------------------------------- naming sides


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = Path(__file__).resolve().parents[1] / "data/run-small.latlab.jsonl"
    (tmp_path / "old").mkdir()
    header, rest = source.read_text(encoding="utf-8").split("\n", 1)
    whole = json.loads(header)
    for number in range(3):
        whole |= {"id": f"run-{number}", "started": f"2026-11-2{number}T00:30:12Z"}
        (tmp_path / f"old/run-{number}.latlab.jsonl").write_text(
            f"{json.dumps(whole)}\n{rest}", encoding="utf-8"
        )
    return tmp_path


def ids(own: Side) -> list[str]:
    return [run.id for run in own.runs]


def test_a_side_is_a_run_a_folder_a_glob_or_a_label_with_any_of_these(folder: Path) -> None:
    store = Store(folder / "old")
    assert ids(side("last", store)) == ["run-2"]
    assert ids(side("last~1", store)) == ["run-1"]
    assert ids(side("run-0", store)) == ["run-0"]
    assert ids(side(str(folder / "old"), store)) == ["run-0", "run-1", "run-2"]
    assert ids(side(f"{folder}/old/run-[01]*", store)) == ["run-0", "run-1"]
    named = side(f"before=last,{folder}/old/run-0.latlab.jsonl", store)
    assert (named.label, ids(named)) == ("before", ["run-2", "run-0"])


def test_kept_runs_are_those_of_the_same_machine_and_profile_on_neither_side(folder: Path) -> None:
    store = Store(folder / "old")
    one, two = side("run-0", store), side("run-1", store)
    assert [run.id for run in stored(one, two, store=store)] == ["run-2"]
    file = folder / "old/run-2.latlab.jsonl"
    text = file.read_text(encoding="utf-8")
    for before, after in (
        ('"profile": "standard"', '"profile": "quick"'),
        ('"logical_cpus": 4', '"logical_cpus": 8'),
        ('"only": []', '"only": ["vm.*"]'),
    ):
        assert text.count(before) >= 1
        file.write_text(text.replace(before, after), encoding="utf-8")
        assert stored(one, two, store=store) == ()


def test_figures_of_footers_compare_as_those_of_whole_files(tmp_path: Path) -> None:
    """Also what a p99 that grew is made of, which no footer has."""
    quick = load(FILES["quick"])
    for number, factor in enumerate((1.0, 1.02, 0.98, 8.0, 8.2, 7.8)):
        lines = [
            scaled(line, factor) if line.probe == "storage.read.random" else line for line in quick.lines
        ]
        run = Run.of_lines(msgspec.structs.replace(quick.header, id=f"{number}"), lines, quick.footer)
        assert run.footer is not None
        footer = keeping(run.footer, run.records)
        file = tmp_path / ("a" if number < 3 else "b") / f"{number}.latlab.jsonl"
        file.parent.mkdir(exist_ok=True)
        Run(run.header, run.records, footer, lines=lines).save(file)
    short = both(str(tmp_path / "a"), str(tmp_path / "b"))
    whole = [own.whole() for own in short]
    assert [bool(run.lines) for own in (*short, *whole) for run in own.runs] == [False] * 6 + [True] * 6
    found = compare(*short)
    assert found.tails
    assert found.as_json() == compare(*whole).as_json()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("last~9", "there are only 3 runs in "),
        ("nothing*", "no run in 'nothing*'"),
        ("label=", "no run in 'label='"),
        ("unknown-run", "no run 'unknown-run'"),
    ],
)
def test_a_side_that_is_not_there_is_one_clear_line(folder: Path, words: str, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("*", r"\*")):
        side(words, Store(folder / "old"))


def test_the_command_says_its_verdict_first_and_all_of_it_as_json(folder: Path) -> None:
    one, two = (str(folder / f"old/run-{number}.latlab.jsonl") for number in (0, 1))
    plain = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    reported = called(["compare", one, two], folder, plain)
    assert reported.returncode == 0
    assert reported.stdout.startswith("Nothing demonstrably changed in ")
    assert len(reported.stdout.splitlines()) <= 40
    whole = called(["compare", one, two, "--json"], folder, plain)
    assert json.loads(whole.stdout)["verdict"] == "cannot-tell"
    again = called(["compare", one, one], folder, plain)
    assert (again.returncode, again.stdout) == (2, "")
    assert "the run run-0 is on both sides" in again.stderr
    assert called(["compare", one, two, "--same", "lots"], folder, plain).returncode == 2


def test_the_kept_run_is_the_one_that_the_tests_speak_of() -> None:
    assert kept().machine.text("cpu.model_name") == "AMD EPYC"
