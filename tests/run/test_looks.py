"""What a second look at the end of a run says of its records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from latlab.cli.terminal.ladder_table import ladder_lines
from latlab.cli.terminal.screen import Screen
from latlab.report.probes import known
from latlab.report.sections import provenance
from latlab.run import model, reader
from latlab.run.looks import MOVED
from latlab.run.run import Run

RUN = reader.read(Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl")
PROBES = known()


def looked_again(
    run: Run, probe: str, *, times: float = 1.0, width: float = 0.5
) -> tuple[model.LookedAgain, ...]:
    """A second look at every figure of a probe, so many times as large; intervals are of that share."""
    found = []
    for record in run.records:
        if record.probe != probe or record.value is None or record.interval is None:
            continue
        found.append(
            model.LookedAgain(
                probe=probe,
                point=record.point,
                p50=record.value * times,
                interval=(record.interval[0] * times, record.interval[1] * times),
                later_s=25.0,
                between_looks=(record.value * (1 - width), record.value * (1 + width)),
            )
        )
    return tuple(found)


def with_footer(run: Run, looks: tuple[model.LookedAgain, ...]) -> Run:
    """The run as one that looked again."""
    assert run.footer is not None
    return Run(run.header, run.records, msgspec.structs.replace(run.footer, looked_again=looks))


def test_the_interval_of_a_figure_is_that_between_looks_and_its_own_one_stays_beside_it() -> None:
    run = with_footer(RUN, looked_again(RUN, "clock.read"))
    before, after = RUN["clock.read"][0], run["clock.read"][0]
    assert after.value == before.value
    assert after.value is not None
    assert after.interval == (after.value * 0.5, after.value * 1.5)
    assert after.summary is not None
    assert before.summary is not None
    assert after.summary.intervals == before.summary.intervals
    assert run["memory.poke"] == RUN["memory.poke"], "what was not looked at again stays as it was"


@pytest.mark.parametrize(("times", "moved"), [(1.05, False), (1.5, True), (0.5, True)])
def test_a_figure_that_moved_says_so(times: float, moved: bool) -> None:
    run = with_footer(RUN, looked_again(RUN, "clock.read", times=times))
    assert {MOVED in record.flags for record in run["clock.read"]} == {moved}


def test_a_figure_that_is_not_inside_does_not_say_that_it_is() -> None:
    """As where the second look was disturbed: it widened nothing."""
    run = with_footer(RUN, looked_again(RUN, "clock.read", times=1.5, width=0.1))
    assert {MOVED in record.flags for record in run["clock.read"]} == {False}


def test_a_step_of_the_clock_is_no_move() -> None:
    coarse = [msgspec.structs.replace(record, resolution_ns=1e6) for record in RUN.records]
    looks = looked_again(RUN, "clock.read", times=1.5)
    run = with_footer(Run(RUN.header, coarse, RUN.footer), looks)
    assert {MOVED in record.flags for record in run["clock.read"]} == {False}


def test_a_figure_of_too_few_samples_for_an_interval_gets_none_by_another_look() -> None:
    looks = looked_again(RUN, "clock.read")
    records = [
        msgspec.structs.replace(record, summary=msgspec.structs.replace(record.summary, intervals={}))
        if record.probe == "clock.read" and record.summary is not None
        else record
        for record in RUN.records
    ]
    run = with_footer(Run(RUN.header, records, RUN.footer), looks)
    assert {record.interval for record in run["clock.read"]} == {None}
    assert {record.interval for record in with_footer(RUN, looks)["clock.read"]} != {None}


def test_a_run_that_is_saved_and_read_again_is_the_same(tmp_path: Path) -> None:
    run = with_footer(RUN, looked_again(RUN, "clock.read", times=1.5))
    saved = reader.read(run.save(tmp_path / "again.latlab.jsonl"))
    assert saved == run
    whole = tmp_path / "whole.json"
    whole.write_text(run.to_json(), encoding="utf-8")
    assert reader.read(whole) == run
    assert reader.read(whole)["clock.read"][0].flags.count(MOVED) == 1


def test_a_level_of_the_ladder_holds_what_its_record_holds() -> None:
    run = with_footer(RUN, looked_again(RUN, "memory.load.dependent"))
    for rung in run.ladder():
        if rung.key in {"L1", "L2", "L3", "RAM"}:
            assert rung.looked_twice
            assert rung.latency_p50_ns is not None
            assert rung.interval is not None
            assert rung.interval[0] <= rung.latency_p50_ns * 0.51
            assert rung.interval[1] >= rung.latency_p50_ns * 1.49
    ranges = {rung.key for rung in RUN.ladder() if rung.is_range}
    assert {rung.key for rung in run.ladder() if rung.is_range} == ranges, "two looks are no range of levels"


def test_the_ladder_says_in_one_place_what_its_intervals_hold() -> None:
    screen = Screen(width=200)

    def said(run: Run) -> str:
        lines = ladder_lines(run.ladder(), screen, textbook_year=2012)
        return " ".join(line.text for line in lines if "±" in line.text and "look" in line.text)

    assert "of one look" in said(RUN)
    some = said(with_footer(RUN, looked_again(RUN, "memory.load.dependent")))
    assert "between two looks" in some
    assert "looked at once" in some or "Looked at once" in some


def test_the_report_says_how_many_medians_were_measured_again() -> None:
    again = looked_again(RUN, "clock.read")
    unreached = tuple(msgspec.structs.replace(look, p50=None) for look in again[2:])
    evidence = " ".join(provenance.section(with_footer(RUN, (*again[:2], *unreached)), PROBES).evidence)
    assert f"measured 2 of these medians again. The 95 % intervals of {len(again)} hold" in evidence
    assert "second look" not in " ".join(provenance.section(RUN, PROBES).evidence)
