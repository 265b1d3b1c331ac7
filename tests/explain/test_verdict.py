"""The ledger in words: which stage of a pipeline is said to be the slow one."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import EndedWait, Explained, Part, Path, PathStep, Process
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


def hung_on(*steps: PathStep, recorded: float = 0.92) -> Explained:
    """A pipeline of which it was recorded what its end hung on."""
    return msgspec.structs.replace(pipeline(0.02, 0.5), path=Path(recorded, steps))


SORT = PathStep("sort", 0.55, 5.5, 20, "on-cpu")
OTHER_SORT = PathStep("sort", 0.06, 0.6, 23, "on-cpu")
TR = PathStep("tr", 0.2, 2.0, 21, "on-cpu")
DISK = PathStep("cat", 0.05, 0.5, 22, "storage-wait")
REST = PathStep("others", 0.14, 1.4)


def test_the_critical_path_is_said_instead_of_the_slow_stage() -> None:
    told = verdict(hung_on(SORT, TR, REST, OTHER_SORT, DISK))
    assert told[1] == (
        "On its critical path (92 % of the time was recorded): sort 61 %, tr 20 % on a CPU;"
        " waiting for storage 5.0 %."
    )
    assert "its pipeline" not in " ".join(told)


@pytest.mark.parametrize(
    "explained", [hung_on(SORT), hung_on(SORT, TR, recorded=0.49), hung_on()], ids=["one", "little", "none"]
)
def test_a_path_of_one_process_or_of_less_than_half_is_not_said(explained: Explained) -> None:
    told = said(explained)
    assert "critical path" not in told
    assert "The slow stage of its pipeline is stage-0" in told
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
        "sort (20)  500 ms      3  storage-wait  nobody of the program",
    ]
    alone = msgspec.structs.replace(explained, path=Path(0.92, (SORT, TR), waits[1:2]))
    assert ended_waits(alone) == []
