"""The linked list: proofs that fail, shares that sum, what a level may say, figures as printed."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

import msgspec
import pytest
from tests.some import some

from latlab import lessons
from latlab.explain.model import Explained, Function, Within
from latlab.lessons import compiled, memory
from latlab.lessons.bench import Bench, Cannot, Times, interval
from latlab.lessons.experiments import linked_list as lesson
from latlab.lessons.experiments.linked_list import profile, ways
from latlab.lessons.model import Result
from latlab.lessons.programs import linked_list
from latlab.run.run import load
from latlab.units import format_ns

needs_a_compiler = pytest.mark.skipif(
    all(shutil.which(name) is None for name in compiled.COMPILERS), reason="needs a C compiler"
)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> compiled.Compiler:
    return compiled.Compiler(tmp_path_factory.mktemp("compiled"))


def test_the_published_figures_are_as_printed(result: Result) -> None:
    published = result["original.creation.c"].published
    assert published is not None
    assert published.text == "29473 us"
    quoted = {
        row.name: each.text for row in result.table("symbols").rows if (each := row.cells["share"].published)
    }
    assert quoted == {
        "malloc": "24.62%",
        "int_malloc": "23.70%",
        "clear_page": "17.14%",
        "get_page_from_freelist": "5.77%",
        "unmap_page_range": "4.01%",
        "free_unref_page_list": "3.34%",
        "main": "2.03%",
    }
    for share in profile.SHARES.values():
        assert float(share.text.rstrip("%")) / 100 == pytest.approx(share.value)
    assert sum(share.value for share in profile.SHARES.values()) == pytest.approx(0.8061)


@needs_a_compiler
def test_the_gain_is_that_of_the_times_shown(result: Result) -> None:
    malloc = result["ways.malloc.created"].number or 0
    rows = [row for row in result.table("ways").rows if "gain_ratio" in row.cells]
    assert {"malloc", "linear", "pool", "aligned", "across", "again"} <= {row.name for row in rows}
    for row in rows:
        assert row.cells["gain_ratio"].number == pytest.approx(malloc / (row.cells["created"].number or 1))


@needs_a_compiler
def test_new_memory_has_page_faults_and_old_memory_has_none(result: Result) -> None:
    nodes = ways.PLANS["small"].nodes
    linear = result["ways.linear.faults"].number or 0
    assert linear >= 0.9 * 32 * nodes / os.sysconf("SC_PAGE_SIZE")
    for name in ("pool", "touched"):
        assert (result[f"ways.{name}.faults"].number or 0) < linear / 4


@needs_a_compiler
def test_what_the_document_copies_is_shown(result: Result) -> None:
    assert [result[f"overflow.{name}"].number for name in ("field", "copied", "end", "node")] == [
        20,
        21,
        28,
        32,
    ]
    assert result["overflow.behind"].value == "'t'"
    assert result["overflow.zero"].value == "no"
    assert result["overflow.freed"].number == 999
    exact = result["overflow.exact"]
    if exact.value is None:
        assert "AddressSanitizer" in exact.why
    else:
        assert result["overflow.sanitized"].value == "no error"
        assert "heap-buffer-overflow" in str(exact.value)


def explained(level: int) -> Explained:
    """A ledger as the engine writes it, of a program that is two thirds allocator."""
    row = {"low": 0.0, "high": 1.0, "seconds": 0.1, "method": "sampled"}

    def functions(*named: tuple[str, str, float]) -> list[dict[str, object]]:
        return [
            {"name": name, "object": where, "share": share, "low": 0.9 * share, "high": 1.1 * share}
            for name, where, share in named
        ]

    own = (
        [
            row
            | {
                "name": "user-cpu",
                "share": 0.6,
                "within": [{"name": "allocator", "low": 0.1, "high": 0.6}],
            }
        ]
        if level == 3
        else [
            row
            | {
                "name": "allocator",
                "share": 0.5,
                "functions": functions(("malloc", "libc.so.6", 0.3), ("_int_malloc", "libc.so.6", 0.2)),
            },
            row | {"name": "compute", "share": 0.1, "functions": functions(("main", "linked_list", 0.1))},
        ]
    )
    kernel = functions(("clear_page_erms", "[kernel]", 0.2)) if level == 1 else []
    body = {
        "version": 1,
        "rules_version": 1,
        "program": {"arguments": ["x"], "pid": 1},
        "runs": 3,
        "wall_s": 0.1,
        "wall_range_s": [0.1, 0.1],
        "level": level,
        "levels": [],
        "categories": [
            *own,
            row | {"name": "page-faults", "share": 0.3, "functions": kernel},
            row | {"name": "start-and-exit", "share": 0.07},
            row | {"name": "run-queue-wait", "share": 0.02},
            row | {"name": "unexplained", "share": 0.01},
        ],
        "bounds": [],
        "closure": {"sum": 1.0, "holds": True},
        "observer": dict.fromkeys(
            ("share", "watcher_share", "recorded_share", "looks", "samples", "switches", "lost"), 0
        ),
        "threads": {"most": 1, "cpu_s": 0.1, "parallelism": 1.0},
        "processes": [],
        "counters": dict.fromkeys(
            (
                *("user_s", "system_s", "minor_faults", "major_faults", "voluntary_switches"),
                *("involuntary_switches", "max_resident_bytes"),
            ),
            0,
        ),
        "timeline": {"bin_s": 1.0, "names": [], "bins": []},
    }
    return msgspec.convert(body, Explained)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_parts_sum_to_the_whole_run_at_every_level(level: int) -> None:
    cells = profile.part_cells(explained(level))
    assert sum(cell.number for cell in cells.values() if cell.number is not None) == pytest.approx(1)
    assert all(cell.why for cell in cells.values())
    assert cells["start_and_exit"].number == pytest.approx(0.07)


def test_page_faults_of_work_that_is_left_whole_are_a_range() -> None:
    reported = explained(2)
    rows = {row.name: row for row in reported.categories}
    faults = rows.pop("page-faults")
    within = (Within("page-faults", 0.1, 0.3, share=0.2),)
    kernel = msgspec.structs.replace(faults, name="kernel-cpu", within=within)
    whole = msgspec.structs.replace(reported, categories=(*rows.values(), kernel))
    cells = profile.part_cells(whole)
    assert cells["page_faults"].value is None
    assert "10 % to 30 %" in cells["page_faults"].why
    assert sum(cell.number for cell in cells.values() if cell.number is not None) == pytest.approx(1)


def test_the_parts_of_the_real_run_sum_to_the_whole(result: Result) -> None:
    cells = [row.cells["share"] for row in result.table("parts").rows]
    shares = [cell.number for cell in cells if cell.number is not None]
    whole = sum(shares) == pytest.approx(1, abs=0.005)
    assert whole or (not shares and all(cell.why for cell in some(cells)))


def test_a_level_says_nothing_of_what_it_cannot_see() -> None:
    seen = {
        level: {name for name, cell in profile.symbol_cells(explained(level)).items() if cell.number}
        for level in (1, 2, 3)
    }
    assert seen[1] == {"malloc", "int_malloc", "clear_page", "main", "start_and_exit", "rest"}
    assert seen[2] == {"malloc", "int_malloc", "main"}
    assert seen[3] == set()
    cells = profile.part_cells(explained(3))
    assert cells["allocator"].value is None
    assert "between 10" in cells["allocator"].why
    assert cells["user_cpu"].number == pytest.approx(0.6)
    assert cells["page_clearing"].value is None
    assert profile.part_cells(explained(1))["page_clearing"].number == pytest.approx(0.2)


def test_what_the_document_does_not_list_is_listed_by_its_name_here() -> None:
    found = explained(1)
    faults = next(row for row in found.categories if row.name == "page-faults")
    ends = next(row for row in found.categories if row.name == "start-and-exit")

    def function(name: str, share: float) -> Function:
        return Function(name, "[kernel]", share, share, share)

    many = [function(f"other_{number}", 0.001 * number) for number in range(12)]
    changed = {
        "page-faults": [*faults.functions, function("exc_page_fault", 0.05), *many],
        "start-and-exit": [function("do_exit", 0.04)],
        "compute": [function("exc_page_fault", 0.01)],
    }
    rows = [
        msgspec.structs.replace(row, functions=tuple(changed.get(row.name, row.functions)))
        for row in found.categories
    ]
    other = msgspec.structs.replace(found, categories=tuple(rows))
    listed = profile.others(other)
    assert list(listed)[:2] == ["exc_page_fault", "other_11"]
    assert len(listed) == 10
    assert "do_exit" not in listed
    assert listed["exc_page_fault"].number == pytest.approx(0.06 / profile.on_cpu(other))
    cells = profile.symbol_cells(other)
    assert cells["start_and_exit"].number == pytest.approx(ends.share / profile.on_cpu(other))
    shares = [cell.number or 0.0 for cell in (*cells.values(), *listed.values())]
    assert sum(shares) == pytest.approx(1)


@needs_a_compiler
def test_a_list_that_is_not_whole_is_no_figure(compiler: compiled.Compiler) -> None:
    own = compiler.program("list_ways")
    reported = compiled.reported(own, "linear", 1000)
    assert ways.whole(lambda: reported, 1000) is reported
    with pytest.raises(Cannot, match="1000 of 1001"):
        ways.whole(lambda: reported, 1001)


@needs_a_compiler
@pytest.mark.parametrize("way", ["pool", "malloc"])
def test_a_way_that_fails_in_a_later_round_is_named_and_the_lesson_goes_on(
    compiler: compiled.Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    tried: list[str] = []
    really = compiled.reported

    def reported(program: Path, *words: object, **options: dict[str, str]) -> dict[str, str]:
        name = str(words[0]) if program.name == "list_ways" else "malloc" if not options else "set"
        tried.append(name)
        if name == way and tried.count(way) > 1:
            raise subprocess.CalledProcessError(3, program.name, stderr="out of nodes\n")
        return really(program, *words, environment=options.get("environment"))

    monkeypatch.setattr(compiled, "reported", reported)
    listed = compiler.program("linked_list", libraries=("-ldl",))
    plan = replace(ways.PLANS["small"], nodes=1000, rounds=3, turns_s=math.inf)
    with Bench("small", directory=tmp_path) as bench:
        made = ways.created(bench, plan, listed, compiler.program("list_ways"))
        assert "ended with 3: out of nodes" in bench.why(ways.WAYS[way])
        assert [part.what for part in bench.missing].count(ways.WAYS[way]) == 1
        if way == "malloc":
            assert made == {}
            assert "out of nodes" in bench.why(ways.LIST)
        else:
            assert {"malloc", "linear", "again"} <= made.keys()
            assert way not in made
            assert {len(each.created.values) for each in made.values()} == {plan.rounds}


def test_what_explain_said_when_it_failed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(command: list[str], longest: float, *, stderr: IO[bytes], **_: object) -> int:
        stderr.write(b"one\nit is not allowed here\n")
        return 4

    monkeypatch.setattr(profile, "run_whole", failed)
    with Bench("small", directory=tmp_path) as bench:
        bench.attempt("it", lambda: profile._explained(tmp_path / "linked_list", 1))
        assert bench.why("it") == "the program ended with 4: it is not allowed here"


@needs_a_compiler
def test_a_setting_of_malloc_outside_does_not_reach_the_programs(
    compiler: compiled.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", ways.TUNABLES["top_pad"])
    listed = compiler.program("linked_list", libraries=("-ldl",))
    assert int(compiled.reported(listed, 1000, "proof")["ahead"]) < ways.PAD


@needs_a_compiler
def test_an_allocator_that_did_not_answer_has_no_figure(
    compiler: compiled.Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = compiler.program("linked_list", libraries=("-ldl",))
    (tmp_path / "libjemalloc.so.2").write_bytes(b"not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(Cannot, match="was preloaded, but malloc is that of"):
        ways.preloaded(listed, 1000, "jemalloc")


@needs_a_compiler
def test_a_program_that_fails_or_does_not_compile_is_named(
    compiler: compiled.Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Cannot, match="cannot compile"):
        compiler.program("list_walk", "-no-such-flag", tag="-none")
    with pytest.raises(subprocess.CalledProcessError):
        compiled.reported(Path(sys.executable), "-c", "raise SystemExit(3)")


@pytest.mark.slow
def test_without_a_compiler_the_native_arm_and_python_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    # A busy machine leaves it too little time for a figure. It needs no compiler.
    native = load(root / "tests/data/run-small.latlab.jsonl")
    monkeypatch.setattr(Bench, "native", lambda *_, **__: native)
    without = lessons.run("linked-list", "small", directory=tmp_path)
    assert "there is no C compiler here" in without["original.creation.c"].why
    assert without["original.creation.native"].number is not None
    assert without["python.class.created"].number is not None
    assert any("no C compiler" in part.why for part in without.missing)
    assert "Without a compiler" in without.answer[0]
    assert not list(tmp_path.iterdir())


def test_too_little_memory_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 20)
    result = lessons.run("linked-list", "small", plain=True, directory=tmp_path)
    assert "of memory, and 1 MiB are free" in result["python.class.created"].why


@pytest.mark.parametrize("way", linked_list.WAYS)
def test_every_way_in_python_has_every_node(way: str) -> None:
    assert sum(text == linked_list.TEXT for text in linked_list.texts_of(linked_list.WAYS[way](777))) == 777
    least = {"class": 32, "slots": 32, "tuples": 56, "array": 24}.get(way, 8)
    assert linked_list.bytes_a_node(way, 4096) >= least


def test_a_node_that_was_lost_in_python_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(linked_list.WAYS, "list", lambda n: [linked_list.TEXT] * (n - 1))
    with pytest.raises(AssertionError):
        linked_list.create("list", 10)


@needs_a_compiler
def test_nodes_across_lines_are_counted(result: Result) -> None:
    assert result["ways.linear.across"].number == 0
    assert result["ways.aligned.across"].number == 0
    assert result["ways.across.across"].number == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((3.0, 4.0, 3.0, 4.0, 3.0), (1.0, 2.0, 1.0, 2.0, 1.0), "saves"),
        ((1.0, 2.0, 1.0, 2.0, 1.0), (3.0, 4.0, 3.0, 4.0, 3.0), "costs"),
        ((1.0, 3.0, 1.0, 3.0, 1.0), (2.0, 4.0, 2.0, 4.0, 2.0), "It costs time"),
        ((1.0, 3.0, 1.0, 3.0, 1.0), (2.0, 2.5, 2.0, 2.5, 0.9), "no difference beyond run-to-run variation"),
        ((2.0,) * 12, (*(1.0,) * 10, 3.0, 4.0), "It saves time: 2.00 times"),
        ((1.04,) * 12, (1.0,) * 12, "It saves time: 1.04 times (1.04 – 1.04)."),
        ((2.0,) * 12, (*(1.0,) * 9, 3.0, 4.0, 5.0), "no difference"),
        (
            (3.0, 4.0, 3.0),
            (1.0, 2.0, 1.0),
            "in 3 rounds, too few to conclude: without it, creation takes 3.00 times (2.00 – 3.00) as long.",
        ),
        ((), (1.0, 2.0), ""),
    ],
)
def test_a_difference_within_the_rounds_is_none(
    before: tuple[float, ...], after: tuple[float, ...], said: str
) -> None:
    assert said in lesson.compared(Times(before), Times(after), "It")


def test_every_size_has_rounds_enough_to_leave_one_outlier_out() -> None:
    for plan in ways.PLANS.values():
        assert interval([0.0, *[1.0] * (plan.rounds - 2), 2.0]) == (1.0, 1.0)


@needs_a_compiler
def test_the_answer_compares_a_node_with_a_node(result: Result) -> None:
    a_node = format_ns(1e9 * (result["original.creation.c"].number or 0.0) / 100_000)
    assert f"{a_node} a node; there 1,000,000 took 29473 us, 29.5 ns a node." in result.answer[0]


def test_a_share_of_samples_has_the_interval_that_chance_gives_it() -> None:
    ledger = msgspec.structs.replace(
        explained(1), observer=msgspec.structs.replace(explained(1).observer, samples=100)
    )
    cell = profile.sampled(ledger, 0.2)
    # Wilson's interval of 20 of 100, as tables print it.
    assert cell.low == pytest.approx(0.1334, abs=1e-4)
    assert cell.high == pytest.approx(0.2888, abs=1e-4)
    assert cell.repeats == 100


def test_too_few_samples_are_no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[int] = []

    def few(listed: Path, runs: int) -> Explained:
        asked.append(runs)
        return explained(1)

    monkeypatch.setattr(profile, "_explained", few)
    with pytest.raises(Cannot, match="0 samples in 3 runs are too few for a profile"):
        profile.profiled(tmp_path, 10)
    assert asked == [10, 40]
