"""What a person sees of a run, from a fixed run: read the snapshot as you would read the screen."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion
from tests.some import some

from latlab.cli.terminal.doctor_table import doctor_lines
from latlab.cli.terminal.first_page import page_lines
from latlab.cli.terminal.run_view import run_lines
from latlab.cli.terminal.screen import Line, Screen
from latlab.run import reader
from latlab.run.ladder import ladder
from latlab.run.model import Point
from latlab.run.run import Run
from latlab.topics.front import parted


def text(lines: list[Line]) -> str:
    return "\n" + "\n".join(line.text for line in lines) + "\n"


@pytest.mark.parametrize("width", [80, 140])
def test_a_run_at_the_width_of_a_terminal(run: Run, width: int, snapshot: SnapshotAssertion) -> None:
    assert text(run_lines(run, Screen(width=width))) == snapshot


def test_a_run_with_all_that_is_behind_its_figures(run: Run, snapshot: SnapshotAssertion) -> None:
    assert text(run_lines(run, Screen(width=100), verbose=True)) == snapshot


def test_a_run_on_a_terminal_that_knows_ascii_only(run: Run, snapshot: SnapshotAssertion) -> None:
    shown = text(run_lines(run, Screen(width=80, unicode=False)))
    assert shown.isascii()
    assert shown == snapshot


def test_what_the_doctor_had_to_say(run: Run, snapshot: SnapshotAssertion) -> None:
    assert text(doctor_lines(run.header.doctor, Screen(width=80))) == snapshot


def test_a_death_is_named_although_other_rounds_have_the_figure(rounds: str) -> None:
    run = reader.read(rounds)
    (dead,) = (line for line in run.lines if line.error is not None)
    measured = msgspec.structs.replace(dead, point=Point(operation="getppid"))
    lines = [measured if line is dead else line for line in run.lines]
    shown = run_lines(Run.of_lines(run.header, lines), Screen(width=200), verbose=True)
    assert (
        "  · kernel.syscall in round 3: the measuring process was killed by SIGKILL while this was measured"
        " (getppid)"
    ) in [line.text for line in shown]


def test_a_run_that_was_stopped_before_its_first_record(run: Run, snapshot: SnapshotAssertion) -> None:
    assert text(run_lines(Run(run.header, (), None), Screen(width=80))) == snapshot


@pytest.mark.parametrize("width", [40, 60, 80, 81, 100, 120, 200])
@pytest.mark.parametrize("verbose", [False, True], ids=["plain", "verbose"])
def test_no_line_is_longer_than_the_screen_where_a_table_fits(run: Run, width: int, *, verbose: bool) -> None:
    widest = max(len(line.text) for line in run_lines(run, Screen(width=width), verbose=verbose))
    # The fewest columns of the ladder need 64; a path is never broken.
    assert widest <= max(width, 64) or (verbose and widest <= max(width, 72))


def test_every_mark_lies_within_its_line(run: Run) -> None:
    lines = run_lines(run, Screen(width=80), verbose=True)
    marks = some((line.text, start, end) for line in lines for start, end, _ in line.marks)
    assert all(0 <= start <= end <= len(text) for text, start, end in marks)


@pytest.mark.parametrize("seen", [True, False])
def test_page_one_has_at_most_45_lines_and_300_words(run: Run, *, seen: bool) -> None:
    lines = [line.text for line in run_lines(run, Screen(width=80), header=not seen)]
    said = " ".join(" ".join(lines).split())
    assert len(lines) <= 45
    assert len(said.split()) <= 300
    for part in (
        "Trust: good.",
        "Compared with the textbook of 2012: ",
        "Unusual here: ",
        "typical",
        "Bandwidth, one thread: RAM",
        "Here: reading 30 GB",
    ):
        assert part in said
    assert "p90" not in said
    assert "w90" not in said


def test_what_page_one_has_no_room_for_is_shown_where_it_is_all_there_is(run: Run) -> None:
    part = Run(run.header, tuple(run.select("kernel.mutex")), run.footer)
    said = "\n".join(line.text for line in run_lines(part, Screen(width=80)))
    assert "\n mutex, lock + unlock   9.95 ns" in said
    assert "L1" not in said
    nothing = "\n".join(line.text for line in run_lines(Run(run.header, (), run.footer), Screen(width=80)))
    assert "typical" not in nothing
    assert "latlab show -v" in nothing


def test_a_row_that_was_disturbed_is_named_on_page_one(run: Run) -> None:
    rungs = [replace(rung, flags=("disturbed",) if rung.key == "RAM" else ()) for rung in ladder(run)]
    said = " ".join(line.text for line in page_lines(run, rungs, Screen(width=200), 2012))
    assert "of the blocks were disturbed, with them RAM." in said


def test_of_a_long_sentence_only_what_stands_before_its_details_is_on_page_one() -> None:
    details = ", ".join(f"cause number {number}" for number in range(9))
    long = parted(f"One poke in 9 is slow: {details}. And so on.")
    assert long == ("One poke in 9 is slow.", f"{details.capitalize()}. And so on.")
    assert parted("Two prices: 1 and 2. And so on.") == ("Two prices: 1 and 2.", "And so on.")
    assert parted("One sentence.") == ("One sentence.", "")


@pytest.mark.parametrize(
    ("share", "end", "verdict"),
    [
        (0.0, 1.05, "good"),
        (0.2, 1.05, "usable with care"),
        (0.0, 1.3, "usable with care"),
        (0.0, 1.6, "poor"),
    ],
)
def test_how_far_to_trust_a_run_follows_its_ranges_and_what_disturbed_it(
    run: Run, share: float, end: float, verdict: str
) -> None:
    rungs = [
        replace(rung, latency_p50_ns=100.0, interval=(100.0, 100.0 * end))
        for rung in ladder(run)
        if rung.measured and not rung.is_range
    ]
    records = tuple(
        msgspec.structs.replace(
            record,
            blocks=[
                msgspec.structs.replace(block, disturbed=number < share * len(record.blocks))
                for number, block in enumerate(record.blocks)
            ],
        )
        for record in run.records
    )
    reported = page_lines(Run(run.header, records, run.footer), rungs, Screen(width=200), 2012)[0].text
    assert reported.startswith(f"Trust: {verdict}. Ranges are ")
