"""The ledger in words: which stage of a pipeline is said to be the slow one."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import Explained, Part, Process
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
    told = said(pipeline(*shares))
    assert (
        f"The slow stage of its pipeline is stage-{slow} ({20 + slow}): it waits at its pipes 2.0 %" in told
    )
    assert f"of its time, every other at least {least} %." in told


def test_a_stage_that_waits_for_something_else_holds_up_the_others_too() -> None:
    explained = pipeline(0.9, 0.8)
    asleep = msgspec.structs.replace(explained.processes[0], waits=(_part("sleep", 0.9),))
    told = msgspec.structs.replace(explained, processes=(asleep, *explained.processes[1:]))
    assert "The slow stage of its pipeline is stage-0" in said(told)


def test_a_few_looks_do_not_tell_which_stage_is_slow() -> None:
    explained = pipeline(0.1, 0.4)
    for looks, told in ((9, "cannot be told from 9 looks (10 % and 40 %)"), (900, "is stage-0 (20)")):
        observer = msgspec.structs.replace(explained.observer, recorded_share=0.0, looks=looks)
        assert told in said(msgspec.structs.replace(explained, observer=observer))


def test_stages_that_wait_about_as_long_are_not_told_apart() -> None:
    assert "No stage of its pipeline is much slower than the next: 40 % and 45 %" in said(pipeline(0.45, 0.4))


@pytest.mark.parametrize(("number", "name"), [(11, "signal 11 (SIGSEGV)"), (99, "signal 99")])
def test_a_program_that_a_signal_ended_says_so(number: int, name: str) -> None:
    explained = ledger({})
    program = msgspec.structs.replace(explained.program, exit_code=None, signal=number)
    assert verdict(msgspec.structs.replace(explained, program=program))[1] == f"It was ended by {name}."
    assert "ended by" not in said(explained)


@pytest.mark.parametrize(("width", "doubted"), [(0.01, True), (0.05, False)])
def test_other_programs_are_blamed_for_a_share_that_they_surely_took(width: float, *, doubted: bool) -> None:
    told = said(ledger({"run-queue-wait": 0.12}, width=width))
    assert ("Other programs, or a limit on its CPU time, cost it 12 %" in told) is doubted


@pytest.mark.parametrize("shares", [(), (0.6,), (0.02, 0.03), (0.0, 0.01, 0.6)])
def test_without_processes_that_wait_at_pipes_nothing_is_said_of_stages(shares: tuple[float, ...]) -> None:
    assert "its pipeline" not in said(pipeline(*shares))
