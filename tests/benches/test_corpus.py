"""The truth that benches/corpus.py compares `explain` with, on made-up events; and its verdicts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest

MS = 1_000_000
KERNEL = "[kernel.kallsyms]"


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[str, ModuleType]]:
    """The modules, found as benches/corpus.py finds them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benches"))
        names = ("corpus", "explain.events", "explain.programs", "explain.made")
        yield {name: importlib.import_module(name) for name in names}
    for name in [name for name in sys.modules if name.split(".")[0] in ("corpus", "explain")]:
        del sys.modules[name]


class Truth(Protocol):
    """What is looked at of a truth."""

    wall_s: float
    shares: dict[str, float]
    unnamed: float
    thread_running_s: float


class Course:
    """Events of perf's, in order of time; thread 10 is the program's first, 1 is somebody else."""

    def __init__(self, events: ModuleType) -> None:
        self._new = events.Event
        self.events: list[Any] = [
            self._new(0, "sched_process_exec", "sh", 10, "filename=x pid=10 old_pid=10")
        ]

    def switch(self, ms: int, before: int, state: str, after: int, *stack: str) -> None:
        text = f"prev_comm=x prev_pid={before} prev_prio=120 prev_state={state} ==> next_comm=y"
        text += f" next_pid={after} next_prio=120"
        frames = [(name, KERNEL) for name in stack]
        self.events.append(self._new(ms * MS, "sched_switch", "x", before, text, frames))

    def record(self, ms: int, thread: int, name: str) -> None:
        self.events.append(self._new(ms * MS, name, "x", thread, ""))

    def wake(self, ms: int, thread: int) -> None:
        text = f"comm=x pid={thread} prio=120 target_cpu=000"
        self.events.append(self._new(ms * MS, "sched_wakeup", "y", 1, text))

    def fork(self, ms: int, child: int) -> None:
        text = f"comm=x pid=10 child_comm=x child_pid={child}"
        self.events.append(self._new(ms * MS, "sched_process_fork", "x", 10, text))

    def sample(self, ms: int, thread: int, function: str, file: str = "/bin/x") -> None:
        self.events.append(self._new(ms * MS, "cpu-clock", "x", thread, "", [(function, file)]))


def swept(
    benches: dict[str, ModuleType], course: Course, monkeypatch: pytest.MonkeyPatch, polls: str = "network"
) -> Truth:
    events = benches["explain.events"]
    monkeypatch.setattr(events, "events", lambda *_: iter(course.events))
    truth: Truth = events.swept(Path("data"), Path("build-ids"), 10, polls=polls)
    return truth


def test_the_heads_of_records_are_read_as_perf_prints_them(benches: dict[str, ModuleType]) -> None:
    read = benches["explain.events"]._event
    switch = read(
        "opt cgu.0 268/269 [001] 43239.902309032:        sched:sched_switch: prev_comm=opt cgu.0 prev_pid=269"
        " prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n"
    )
    assert (switch.at, switch.name, switch.comm, switch.thread) == (
        43239902309032,
        "sched_switch",
        "opt cgu.0",
        269,
    )
    # A thread that has ended has no number any more.
    ended = read(
        ":-1 268/-1 [001] 3.000000000: sched:sched_switch: prev_comm=x prev_pid=9 prev_prio=120 prev_state=X"
        " ==> next_comm=swapper/1 next_pid=0 next_prio=120\n"
    )
    assert (ended.name, ended.thread) == ("sched_switch", -1)
    sample = read("xz 5/6 [000] 2.000000001: cpu-clock/period=1003009/: \n")
    assert (sample.at, sample.thread) == (2000000001, 6)
    got = read(
        "xz 5/6 [001] 1.000000007: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0    \n"
    )
    assert (got.at, got.name, got.thread) == (1000000007, "IN", 6)
    left = "xz 5/6 [001] 1.0: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0    \n"
    assert read(left).name == "OUT"


@pytest.fixture
def course(benches: dict[str, ModuleType]) -> Course:
    return Course(benches["explain.events"])


def test_each_instant_of_one_thread_is_what_it_does(
    benches: dict[str, ModuleType], course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.sample(5, 10, "work")
    course.sample(6, 10, "malloc")
    course.switch(10, 10, "R+", 1)
    course.switch(30, 1, "S", 10)
    course.sample(35, 10, "work")
    course.sample(36, 10, "[unknown]", "/lib/libc.so.6")
    course.switch(40, 10, "D", 1, "__schedule", "io_schedule", "filemap_read")
    course.wake(70, 10)
    course.switch(80, 1, "S", 10)
    course.switch(100, 10, "X", 1, "do_exit")
    truth = swept(benches, course, monkeypatch)
    assert truth.wall_s == 0.1
    # 40 ms on a CPU, by four samples; 20 + 10 ms ready; 30 ms for the disk.
    assert truth.shares == pytest.approx(
        {"compute": 0.2, "allocator": 0.1, "run-queue-wait": 0.3, "storage-wait": 0.3}
    )
    assert truth.unnamed == pytest.approx(0.1)
    assert truth.thread_running_s == pytest.approx(0.04)


def test_a_switch_without_its_trace_event_is_known_by_its_record(
    benches: dict[str, ModuleType], course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.sample(5, 10, "work")
    course.switch(50, 10, "D", 0, "__schedule", "io_schedule")
    course.record(50, 10, "OUT")
    course.record(80, 10, "IN")
    course.sample(85, 10, "work")
    course.record(90, 10, "OUT preempt")
    course.record(94, 10, "IN")
    course.record(97, 10, "OUT")
    course.record(98, 10, "IN")
    course.switch(100, 10, "X", 1, "do_exit")
    truth = swept(benches, course, monkeypatch)
    assert truth.shares == pytest.approx(
        {"compute": 0.65, "storage-wait": 0.3, "run-queue-wait": 0.04, "other": 0.01}
    )


def test_who_waits_behind_a_thread_that_runs_costs_no_wall_time(
    benches: dict[str, ModuleType], course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.fork(1, 11)
    course.wake(1, 11)
    course.switch(10, 10, "S", 11, "__schedule", "futex_wait")
    course.sample(15, 11, "work")
    course.sample(25, 11, "work")
    # All wait: the child's sleep is the reason, the parent only waits for the child.
    course.switch(50, 11, "S", 1, "__schedule", "do_nanosleep", "hrtimer_nanosleep")
    course.wake(90, 11)
    course.switch(90, 1, "S", 11)
    course.wake(100, 10)
    course.switch(100, 11, "X", 10, "do_exit")
    course.switch(100, 10, "X", 1, "do_exit")
    truth = swept(benches, course, monkeypatch)
    assert truth.shares == pytest.approx({"compute": 0.6, "sleep": 0.4})


def test_a_poll_is_for_what_the_corpus_says(
    benches: dict[str, ModuleType], course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.sample(5, 10, "work")
    course.switch(50, 10, "S", 1, "__schedule", "do_epoll_wait")
    course.wake(100, 10)
    course.switch(100, 1, "S", 10)
    course.switch(100, 10, "X", 1, "do_exit")
    truth = swept(benches, course, monkeypatch, polls="pipe")
    assert truth.shares == pytest.approx({"compute": 0.5, "pipe": 0.5})


@pytest.mark.parametrize(
    ("truth", "share", "between", "answer"),
    [
        ((0.30, 0.33), 0.37, (0.36, 0.38), "held"),
        ((0.30, 0.33), 0.40, (0.32, 0.48), "held"),
        ((0.30, 0.33), 0.40, (0.36, 0.44), "MISSED"),
        ((0.30, 0.33), 0.50, (0.10, 0.90), "MISSED"),
    ],
)
def test_a_share_holds_within_5_points_or_in_an_interval_that_says_something(
    benches: dict[str, ModuleType],
    truth: tuple[float, float],
    share: float,
    between: tuple[float, float],
    answer: str,
) -> None:
    assert benches["corpus"].Line("compute", truth, share, *between).answer == answer


def test_each_kind_is_in_both_parts_and_each_input_can_be_made(benches: dict[str, ModuleType]) -> None:
    programs, made = benches["explain.programs"], benches["explain.made"]
    kinds = [[program.kind for program in programs.part(part)] for part in ("develop", "report")]
    assert len(programs.CORPUS) == 75
    # Four of each kind to work with, and one to report.
    assert sorted(kinds[0]) == sorted(4 * kinds[1])
    assert len(set(kinds[1])) == 15
    assert all(name in made.MAKERS for program in programs.CORPUS for name in program.inputs)
