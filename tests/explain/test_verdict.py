"""The ledger in words: which stage of a pipeline is said to be the slow one."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import Explained, Part, Process
from latlab.explain.resources import EndedWait, Path, PathStep
from latlab.explain.table import critical_path, ended_waits
from latlab.explain.verdict import verdict


def pipeline(*at_pipes: float, shell: bool = True) -> Explained:
    """Stages that wait at their pipes for these shares of ten seconds, started by a shell."""
    stages = [
        Process(
            pid=20 + at,
            parent=1,
            name=f"stage-{at}",
            wall_s=10.0,
            running=1 - share,
            waits=(_part("pipe", share),),
        )
        for at, share in enumerate(at_pipes)
    ]
    waits = (_part("waiting-for-children", 0.99),)
    first = Process(pid=1, parent=0, name="sh", wall_s=10.0, running=0.01, waits=waits)
    processes = tuple(stages) + ((first,) if shell else ())
    return msgspec.structs.replace(ledger({"pipe": 0.1}), processes=processes)


def _part(name: str, share: float) -> Part:
    return Part(name, share, 10 * share)


def said(explained: Explained) -> str:
    return " ".join(verdict(explained))


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_the_slow_stage_is_the_one_that_waits_least_at_its_pipes(slow: int) -> None:
    shares = [0.02 if at == slow else 0.5 + 0.1 * at for at in range(3)]
    least = 60 if slow == 0 else 50
    text = said(pipeline(*shares))
    assert (
        f"The slow stage of its pipeline is stage-{slow} ({20 + slow}): it waits at its pipes for 2.0 %"
        in text
    )
    assert f"of its time, every other stage for at least {least} %." in text


def test_a_stage_that_waits_for_something_else_holds_up_the_others_too() -> None:
    explained = pipeline(0.9, 0.8)
    asleep = msgspec.structs.replace(explained.processes[0], waits=(_part("sleep", 0.9),))
    text = msgspec.structs.replace(explained, processes=(asleep, *explained.processes[1:]))
    assert "The slow stage of its pipeline is stage-0" in said(text)


def test_a_few_scans_do_not_show_which_stage_is_slow() -> None:
    explained = pipeline(0.1, 0.4)
    for scans, text in (
        (9, "cannot be determined from 9 scans (10 % and 40 %)"),
        (900, "is stage-0 (20)"),
    ):
        observer = msgspec.structs.replace(explained.observer, recorded_share=0.0, scans=scans)
        assert text in said(msgspec.structs.replace(explained, observer=observer))


def test_stages_that_wait_about_as_long_are_not_distinguished() -> None:
    assert (
        "No stage of its pipeline is much slower than the next: they wait at their pipes for 40 % and 45 %"
        in said(pipeline(0.45, 0.4))
    )


@pytest.mark.parametrize(("number", "name"), [(11, "signal 11 (SIGSEGV)"), (99, "signal 99")])
def test_a_program_that_a_signal_ended_says_so(number: int, name: str) -> None:
    explained = ledger({})
    program = msgspec.structs.replace(explained.program, exit_code=None, signal=number)
    assert f"It was ended by {name}." in verdict(msgspec.structs.replace(explained, program=program))[:3]
    assert "ended by" not in said(explained)


@pytest.mark.parametrize(("width", "doubted"), [(0.01, True), (0.05, False)])
def test_other_programs_are_blamed_for_a_share_that_they_surely_took(width: float, *, doubted: bool) -> None:
    text = said(ledger({"run-queue-wait": 0.12}, width=width))
    assert ("Other programs, or a limit on its CPU time, slow it down" in text) is doubted


@pytest.mark.parametrize("shares", [(), (0.6,), (0.02, 0.03), (0.0, 0.01, 0.6)])
def test_without_processes_that_wait_at_pipes_nothing_is_said_of_stages(shares: tuple[float, ...]) -> None:
    assert "its pipeline" not in said(pipeline(*shares))


def hung_on(*steps: PathStep, recorded: float = 0.92) -> Explained:
    """A pipeline of which it was recorded what its end hung on."""
    return msgspec.structs.replace(pipeline(0.02, 0.5), path=Path(recorded, steps))


SORT = PathStep("sort", 0.55, 5.5, 20, "on-cpu")
OTHER_SORT = PathStep("sort", 0.06, 0.6, 23, "on-cpu")
TR = PathStep("tr", 0.2, 2.0, 21, "on-cpu")
DISK = PathStep("cat", 0.05, 0.5, 22, "storage-wait")
REST = PathStep("others", 0.14, 1.4)


def test_the_critical_path_is_said_instead_of_the_slow_stage() -> None:
    text = verdict(hung_on(SORT, TR, REST, OTHER_SORT, DISK))
    assert "CPU time on the critical path, of the 9.20 s recorded: sort 61 %, tr 20 %." in text
    assert "its pipeline" not in " ".join(text)


@pytest.mark.parametrize(
    "explained", [hung_on(SORT), hung_on(SORT, TR, recorded=0.49), hung_on()], ids=["one", "little", "none"]
)
def test_a_path_of_one_process_or_of_less_than_half_is_not_said(explained: Explained) -> None:
    text = said(explained)
    assert "while the end waited" not in text
    assert "The slow stage of its pipeline is stage-0" in text
    assert critical_path(explained) == []


def test_the_path_and_who_ended_waits_are_tables() -> None:
    waits = (
        EndedWait("tr", "pipe", 7.0, 1_200, 21, 20, "sort"),
        EndedWait("sort", "storage-wait", 0.5, 3, 20),
        EndedWait("sort", "pipe", 0.1, 3, 20, 21, "tr"),
    )
    explained = hung_on(SORT, TR, REST)
    explained = msgspec.structs.replace(explained, path=Path(0.92, (SORT, TR, REST), waits))
    assert critical_path(explained) == [
        "critical path  share    time  doing",
        "sort (20)       55 %  5.50 s  on-cpu",
        "tr (21)         20 %  2.00 s  on-cpu",
        "others          14 %  1.40 s",
    ]
    assert ended_waits(explained) == [
        "waits of     time  times           for  ended by",
        "tr (21)    7.00 s  1,200          pipe  sort (20)",
        "sort (20)  500 ms      3  storage-wait  no thread of the program",
    ]
    alone = msgspec.structs.replace(explained, path=Path(0.92, (SORT, TR), waits[1:2]))
    assert ended_waits(alone) == []


@pytest.mark.parametrize(
    ("share", "unexplained", "level", "says"),
    [
        (0.0, 0.0, 1, "It does not wait for the disk: 0 %."),
        (0.03, 0.0, 1, "It waits for the disk 3.0 % of the time (2.0–5.0 %)."),
        (0.03, 0.01, 3, "It waits for the disk 3.0 % of the time (2.0–6.0 %)."),
        (0.0, 0.3, 2, "Whether it waits for the disk cannot be determined: 0.0–32 % of the time."),
        (
            0.0,
            0.3,
            3,
            "Whether it waits for the disk cannot be determined from 9 scans of /proc: 0.0–32 % of the time.",
        ),
        (None, 0.0, 3, "Whether it waits for the disk cannot be determined at tracing level 3."),
    ],
)
def test_whether_it_waits_for_the_disk_is_always_answered(
    share: float | None, unexplained: float, level: Literal[1, 2, 3], says: str
) -> None:
    shares = (
        {"unexplained": unexplained} if share is None else {"unexplained": unexplained, "storage-wait": share}
    )
    explained = ledger(shares, width=0.0 if share == unexplained else 0.01)
    observer = msgspec.structs.replace(explained.observer, scans=9)
    assert says in said(msgspec.structs.replace(explained, level=level, observer=observer))


def test_little_waiting_for_the_disk_is_said_by_its_upper_end() -> None:
    assert "It waits for the disk at most 1.5 % of the time." in verdict(ledger({"storage-wait": 0.005}))


def test_the_first_sentence_may_answer_for_the_disk() -> None:
    text = verdict(ledger({"storage-wait": 0.8}))
    assert text[0] == "x spends 80 % of 10.0 s waiting for the disk (79–81 %)."
    assert not any("the disk" in sentence for sentence in text[1:])


def test_no_share_is_said_twice() -> None:
    shares = {"storage-wait": 0.2, "file-io-cpu": 0.1, "allocator": 0.3, "run-queue-wait": 0.15}
    text = said(ledger(shares))
    numbers = re.findall(r"[\d.]+ %(?=[^)]| )", re.sub(r"\([^)]*\)", "", text))
    assert sorted(numbers) == sorted(set(numbers)), text
    assert text.startswith("x spends 55 % of 10.0 s computing (54–56 %, with 30 % allocating memory).")
    assert "Also: working on files and waiting for the disk 30 % (29–31 %), waiting for a CPU 15 %" in text
