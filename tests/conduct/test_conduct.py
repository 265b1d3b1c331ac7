from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.leftovers import leave_folder
from tests.some import some

from latlab.errors import RunFileError, UserError, WorkerError
from latlab.run import agreement, conduct, core, death, events, model, process, reader
from latlab.run.conduct import Conductor
from latlab.run.death import OomKills, oom_kills
from latlab.run.events import Begin, Died, End, Hello, Progress, Recorded
from latlab.run.run import Run
from latlab.run.settings import make_settings
from latlab.run.writer import RunWriter

FAKE = Path(__file__).with_name("fake_worker.py")


def fake(**scenario: object) -> list[str]:
    return [sys.executable, "-I", "-S", str(FAKE), json.dumps(scenario)]


def conducted(
    tmp_path: Path, events: list[object] | None = None, *, hang_s: float = 30.0, **scenario: object
) -> Run:
    """Runs a scenario with a file, and makes sure that the file holds what the run holds."""
    listener = None if events is None else events.append
    with RunWriter(tmp_path / "run.latlab.jsonl") as writer:
        conductor = Conductor(
            model.Settings(), writer, listener=listener, command=fake(**scenario), shortest_hang_s=hang_s
        )
        run = conductor.run()
    assert reader.read(tmp_path / "run.latlab.jsonl") == run
    return run


def test_a_run_without_trouble_has_all_records_and_a_footer(tmp_path: Path) -> None:
    events: list[object] = []
    run = conducted(tmp_path, events)
    assert run.stopped_by == "completed"
    assert not run.partial
    assert [record.point.working_set_bytes for record in run["fake.one"]] == [1024, 2048, 3072]
    assert run.footer is not None
    assert run.footer.totals.records == {"batch_mean": 6}
    assert run.footer.totals.written_bytes == 7
    assert run.footer.totals.worker_restarts == 0
    kinds = [type(event) for event in events]
    assert kinds[0] is Hello
    assert kinds[-1] is End
    assert kinds.count(Begin) == kinds.count(Recorded) == kinds.count(Progress) == 6


def test_events_can_be_had_as_the_json_objects_that_they_were() -> None:
    reported: list[dict[str, Any]] = []
    Conductor(
        model.Settings(), command=fake(), listener=lambda event: reported.append(events.plain(event))
    ).run()
    assert [event["event"] for event in reported[:4]] == ["hello", "begin", "record", "progress"]
    assert reported[0]["machine"]["cpu"]["model_name"] == "AMD EPYC"
    assert reported[2]["record"]["novel_field"] == {"kept": True}


def test_fields_that_are_not_known_here_are_kept_in_the_file(tmp_path: Path) -> None:
    conducted(tmp_path)
    assert (tmp_path / "run.latlab.jsonl").read_text().count('"novel_field": {"kept": true}') == 6


def test_a_worker_killed_in_a_point_leaves_a_record_and_the_run_goes_on_without_that_point(
    tmp_path: Path,
) -> None:
    events: list[object] = []
    requests = tmp_path / "requests"
    run = conducted(tmp_path, events, deaths=[["fake.two/2", "SIGKILL"]], requests=str(requests))
    assert run.stopped_by == "completed"
    (dead,) = run.absent
    assert (dead.probe, dead.point.working_set_bytes, dead.method) == ("fake.two", 2048, 3)
    assert dead.error is not None
    assert dead.error.kind == "worker_died"
    assert "SIGKILL" in dead.error.text
    assert "memory" in dead.error.text
    assert [record.point.working_set_bytes for record in run["fake.two"].measured()] == [1024, 3072]
    assert run.footer is not None
    assert run.footer.totals.worker_restarts == 1
    first, second = map(json.loads, requests.read_text().splitlines())
    assert (first["done"], first["done_probes"], first["ends_ns"]) == ([], [], None)
    measured = {("fake.one", 1024), ("fake.one", 2048), ("fake.one", 3072), ("fake.two", 1024)}
    done = {(probe, point["working_set_bytes"]) for probe, point in second["done"]}
    assert done == measured | {("fake.two", 2048)}
    assert second["done_probes"] == []
    assert (second["round"], second["begun_ns"]) == (0, first["begun_ns"])
    assert 0 < second["ends_ns"] - second["begun_ns"] <= 60e9
    # 400 before the point in which it died, which writes 50 at most.
    assert (first["written_bytes"], second["written_bytes"]) == (0, 450)
    assert any(isinstance(event, Died) and event.restarts for event in events)


def test_a_run_is_rounds_of_fresh_workers_and_its_figures_are_their_fold(tmp_path: Path) -> None:
    reported: list[object] = []
    requests = tmp_path / "requests"
    run = conducted(tmp_path, reported, rounds=4, requests=str(requests))
    assert run.stopped_by == "completed"
    assert (run.header.rounds, run.header.cpus) == (4, (0, 1))
    assert len(run.lines) == 4 * 6
    assert [(line.round, line.cpu) for line in run.lines[::6]] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    for figure in some(run["fake.one"], least=3):
        assert [(own.round, own.cpu, own.p50) for own in figure.rounds] == [
            (0, 0, 1.5), (1, 1, 1.6), (2, 0, 1.7), (3, 1, 1.8)]  # fmt: skip
        # The median of each CPU's two, and of both CPUs the geometric mean.
        assert figure.value == pytest.approx((1.5 * 1.6 * 1.7 * 1.8) ** 0.25, rel=1e-3)
        assert figure.interval is not None
    asked = [json.loads(line) for line in requests.read_text().splitlines()]
    assert [request["round"] for request in asked] == [0, 1, 2, 3]
    assert len({request["begun_ns"] for request in asked}) == len({r["ends_ns"] for r in asked[1:]}) == 1
    # Each writes 7.
    assert [request["written_bytes"] for request in asked] == [0, 7, 14, 21]
    usable = run.header.machine.integer("limits.usable_memory_bytes")
    assert usable
    assert [request["usable_memory_bytes"] for request in asked] == [None, usable, usable, usable]
    assert run.footer is not None
    assert run.footer.totals.written_bytes == 4 * 7
    assert sum(isinstance(event, Hello) for event in reported) == 4


#: A worker writes 7: these are the bytes of three passes of four rounds, and time enough.
THREE_PASSES = {"left_s": 600.0, "again_bytes": 4 * 7, "written_bytes": 3 * 4 * 7}


@pytest.mark.parametrize(
    ("least_s", "scenario", "passes"),
    [
        (0.0, {"drift": 0.0}, 1),
        (1e6, {"drift": 0.0}, 3),
        (0.0, {"drift": 0.1}, 3),
        (1e6, {"drift": 0.1, "rank": "once"}, 1),
        (1e6, {"hello": {**THREE_PASSES, "left_s": 0.0}}, 1),
    ],
    ids=["agreed", "too soon", "apart", "measured once", "no time"],
)
def test_passes_follow_while_there_are_time_and_bytes_until_figures_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_s: float, scenario: dict[str, Any], passes: int
) -> None:
    monkeypatch.setitem(agreement.LEAST_S, "standard", least_s)
    requests = tmp_path / "requests"
    run = conducted(
        tmp_path, rounds=4, points=1, requests=str(requests), **{"hello": THREE_PASSES, **scenario}
    )
    assert run.stopped_by == "completed"
    assert (run.header.rounds, run.footer and run.footer.totals.written_bytes) == (4, passes * 4 * 7)
    asked = [json.loads(line) for line in requests.read_text().splitlines()]
    assert [request["round"] for request in asked] == list(range(4 * passes))
    assert all(len(figure.rounds) == 4 * passes for figure in some(run.records, least=2))
    ends = [request["ends_ns"] for request in asked]
    assert len({*ends[1:]}) == 1, "the run has its time, whatever its passes"


@pytest.mark.parametrize("idle", [[1, 2], [0, 3], [0, 1, 2], [0, 1, 2, 3]])
def test_no_process_is_started_for_rounds_that_measure_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: list[int]
) -> None:
    monkeypatch.setitem(agreement.LEAST_S, "standard", 1e6)
    requests = tmp_path / "requests"
    # Nobody knows of the first round before its worker said so; a worker writes 7.
    hello = {"idle": idle, "left_s": 600.0, "again_bytes": 4 * 7, "written_bytes": 100}
    run = conducted(tmp_path, rounds=4, points=1, requests=str(requests), hello=hello)
    assert run.stopped_by == "completed"
    asked = [json.loads(line)["round"] for line in requests.read_text().splitlines()]
    assert asked[0] == 0
    assert len(asked) > len({number % 4 for number in asked}), "there is more than one pass"
    measuring = set(range(4)) - set(idle) or {0}
    assert {number % 4 for number in asked[1:]} == measuring
    assert asked == [number for number in range(asked[-1] + 1) if number == 0 or number % 4 in measuring]


def test_an_interrupt_in_the_second_pass_keeps_all_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(agreement.LEAST_S, "standard", 1e6)
    scenario = {"rounds": 4, "points": 1, "pause": 0.1, "hello": THREE_PASSES}

    def stop(event: object) -> None:
        if isinstance(event, Hello) and event.round == 5:
            conductor.interrupt()

    conductor = Conductor(model.Settings(), command=fake(**scenario), listener=stop)
    run = conductor.run()
    assert run.stopped_by == "interrupted"
    assert [len(figure.rounds) >= 5 for figure in run["fake.one"]] == [True]
    assert [len(figure.rounds) for figure in run["fake.two"]] == [5]


def test_a_death_in_the_second_pass_costs_its_point_that_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(agreement.LEAST_S, "standard", 1e6)
    deaths = [["round 5 fake.one/1", "SIGKILL"]]
    run = conducted(tmp_path, rounds=4, points=1, deaths=deaths, hello=THREE_PASSES)
    assert not run.absent
    (one,), (two,) = run["fake.one"], run["fake.two"]
    assert [own.round for own in one.rounds] == [0, 1, 2, 3, 4, 6, 7]
    # What the dead one wrote is not known: the bytes of a third pass may be gone.
    assert [own.round for own in two.rounds] == list(range(8))


def test_the_time_left_is_that_of_the_whole_run_in_every_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(agreement.LEAST_S, "standard", 1e6)
    reported: list[object] = []
    conducted(tmp_path, reported, rounds=4, points=1, hello=THREE_PASSES)
    seen = [event for event in reported if isinstance(event, Progress)]
    assert len(seen) == 3 * 4 * 2
    left, fractions = [event.left_s for event in seen], [event.fraction for event in seen]
    assert sorted(left, reverse=True) == left
    assert sorted(fractions) == fractions
    assert 0 < fractions[0] < fractions[-1] < 1
    assert all(event.elapsed_s + event.left_s == pytest.approx(600, rel=0.1) for event in seen)


def test_a_point_that_killed_a_worker_is_tried_in_another_round_and_then_left_out(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    run = conducted(tmp_path, rounds=4, deaths=[["fake.two/2", "SIGKILL"]], requests=str(requests))
    assert run.stopped_by == "completed"
    (dead,) = run.absent
    assert (dead.probe, dead.point.working_set_bytes) == ("fake.two", 2048)
    asked = [json.loads(line) for line in requests.read_text().splitlines()]
    assert [request["round"] for request in asked] == [0, 0, 1, 1, 2, 3]
    killer = ["fake.two", {"working_set_bytes": 2048}]
    assert [killer in request["done"] for request in asked] == [False, True, False, True, True, True]
    assert [len(figure.rounds) for figure in run.records.measured()] == [4] * 5


def test_a_death_in_one_round_costs_its_point_that_round_and_nothing_else(tmp_path: Path) -> None:
    run = conducted(tmp_path, rounds=4, deaths=[["round 2 fake.one/2", "SIGKILL"]])
    assert not run.absent
    rounds = {figure.label: [own.round for own in figure.rounds] for figure in run.records}
    assert rounds.pop("fake.one · 2 KiB") == [0, 1, 3]
    assert list(rounds.values()) == [[0, 1, 2, 3]] * 5
    assert any("worker" in flag or "round" in flag for flag in run["fake.one"][1].flags)


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_the_test_file_that_one_round_laid_out_serves_those_after_it(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    seen = tmp_path / "disk" / "seen"
    before = len(list(Path("/proc/self/fd").iterdir()))
    conducted(tmp_path, rounds=3, test_file=str(seen))
    assert seen.read_text(encoding="utf-8") == "laid out once\n" * 2
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_a_probe_would_like_to_see_closer_is_asked_for_once_in_the_rounds_after(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    conducted(tmp_path, rounds=4, further=["fake.one"], requests=str(requests))
    asked = [json.loads(line)["further"] for line in requests.read_text().splitlines()]
    one, two = (["fake.one", {"point": {"nodes": nodes}}] for nodes in (1, 2))
    assert asked == [[], [one], [one], [one, two]]


@pytest.mark.parametrize("how", ["SIGBUS", "SIGILL", "SIGSEGV", "SIGABRT"])
def test_the_signal_that_ended_the_worker_is_named(tmp_path: Path, how: str) -> None:
    run = conducted(tmp_path, deaths=[["fake.one/1", how]], stderr="a last\x1b[31m word\n")
    (dead,) = run.absent
    assert dead.error is not None
    assert how in dead.error.text
    assert "\\x1b[31m word" in dead.error.text
    assert len(run.records.measured()) == 5


def test_a_worker_that_ends_too_early_with_code_0_has_died_too(tmp_path: Path) -> None:
    run = conducted(tmp_path, deaths=[["fake.one/2", "exit0"]])
    (dead,) = run.absent
    assert dead.error is not None
    assert "code 0" in dead.error.text


def test_a_probe_in_which_the_worker_died_three_times_is_left_out_and_the_next_one_runs(
    tmp_path: Path,
) -> None:
    deaths = [[f"fake.one/{number}", "SIGKILL"] for number in (2, 4, 6)]
    run = conducted(tmp_path, points=8, deaths=deaths)
    assert run.stopped_by == "completed"
    measured = [record.point.working_set_bytes for record in run["fake.one"].measured()]
    assert measured == [1024, 3072, 5120]
    assert len(run["fake.two"].measured()) == 8
    last = run["fake.one"][-1]
    assert last.error is not None
    assert "3 times" in last.error.text


def test_a_worker_that_dies_while_it_sets_up_a_probe_leaves_a_record_and_is_started_again(
    tmp_path: Path,
) -> None:
    run = conducted(tmp_path, deaths=[["set-up", "SIGKILL"]], once=str(tmp_path.parent / "once"))
    (dead,) = run.absent
    assert (dead.probe, dead.point) == ("fake.one", model.Point())
    assert dead.error is not None
    assert "while round 1 was set up" in dead.error.text
    assert len(run.records.measured()) == 6


def test_a_point_that_was_measured_before_the_worker_died_is_not_said_to_be_missing(tmp_path: Path) -> None:
    run = conducted(tmp_path, deaths=[["after fake.one/2", "SIGKILL"]])
    (dead,) = run.absent
    assert (dead.probe, dead.point) == ("fake.one", model.Point())
    assert dead.error is not None
    assert "between two points" in dead.error.text
    assert [record.point.working_set_bytes for record in run["fake.one"].measured()] == [1024, 2048, 3072]
    assert len(run["fake.two"].measured()) == 3


def test_a_worker_that_always_dies_while_it_sets_up_ends_the_run(tmp_path: Path) -> None:
    run = conducted(tmp_path, deaths=[["set-up", "SIGKILL"]])
    assert run.stopped_by == "failed: the measuring process died 2 times"
    assert [record.probe for record in run.absent] == ["fake.one"]
    assert not run.records.measured()


def test_a_run_in_which_the_worker_dies_everywhere_ends_in_bounded_time(tmp_path: Path) -> None:
    deaths = [[f"fake.{probe}/{number}", "SIGKILL"] for probe in ("one", "two") for number in range(1, 9)]
    run = conducted(tmp_path, points=8, deaths=deaths)
    assert run.footer is not None
    assert run.footer.totals.worker_restarts <= conduct.MOST_DEATHS
    assert not run.records.measured()


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((1, 7), (2, 8), "at the memory limit"),
        ((1, 7), (1, 8), "processes to free memory: give"),
        ((None, 7), (None, 7), "or by another process"),
        ((None, None), (None, None), "or by another process"),
    ],
)
def test_a_kill_for_want_of_memory_is_distinguished_from_others_by_the_kernels_counts(
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[int | None, int | None],
    now: tuple[int | None, int | None],
    said: str,
) -> None:
    monkeypatch.setattr(death, "oom_kills", lambda: OomKills(*now))
    assert said in death.cause_of_death(-signal.SIGKILL, fatal="", before=OomKills(*before))


def test_a_point_is_in_the_file_once_though_a_worker_died_in_its_round(tmp_path: Path) -> None:
    run = conducted(tmp_path, deaths=[["fake.one/3", "SIGKILL"]])
    keys = [(record.probe, record.point, record.kind) for record in run.lines]
    assert len(keys) == len(set(keys))


def test_a_worker_that_dies_before_it_says_anything_is_an_error_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"code 3.*no such library"):
        conducted(tmp_path, die_first=True, stderr="no such library\n")
    assert not list(tmp_path.iterdir())


def test_a_worker_that_dies_once_before_it_says_anything_is_started_again_and_a_record_says_so(
    tmp_path: Path,
) -> None:
    reported: list[object] = []
    run = conducted(tmp_path, reported, die_once=str(tmp_path.parent / "started"))
    (dead,) = run.absent
    assert dead.error is not None
    assert "code 3" in dead.error.text
    assert "restarted" in dead.error.text
    assert len(run.records.measured()) == 6
    assert run.footer is not None
    assert run.footer.totals.worker_restarts == 1
    assert run.stopped_by == "completed"
    assert isinstance(reported[0], Died)


def test_a_worker_that_cannot_measure_says_why(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="no clock"):
        conducted(tmp_path, fatal="no clock")


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="cannot be started"):
        Conductor(model.Settings(), command=[str(tmp_path / "nothing")]).run()


def test_a_worker_that_hangs_is_ended_and_the_run_goes_on(tmp_path: Path) -> None:
    # Long enough for a busy machine to start a worker.
    run = conducted(tmp_path, hang="fake.one/2", hang_s=5.0)
    (dead,) = run.absent
    assert dead.error is not None
    assert "sent nothing" in dead.error.text
    assert len(run.records.measured()) == 5


def test_a_worker_that_hangs_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="sent nothing"):
        conducted(tmp_path, hang="hello", hang_s=0.7)


def test_lines_that_are_no_events_are_passed_over_and_reported(tmp_path: Path) -> None:
    run = conducted(tmp_path, garbage="fake.one/2")
    assert run.stopped_by == "completed"
    assert len(run.records.measured()) == 6
    assert "invalid event" in run.notes[0]


@pytest.mark.parametrize("trouble", ["flood", "endless"])
def test_a_worker_that_floods_the_pipe_is_ended(tmp_path: Path, trouble: str) -> None:
    run = conducted(tmp_path, None, **{trouble: "fake.one/2"})  # type: ignore[arg-type]
    (dead,) = run.absent
    assert dead.error is not None
    assert "it wrote" in dead.error.text


def test_many_large_records_all_arrive(tmp_path: Path) -> None:
    run = conducted(tmp_path, points=40, repeat=3000)
    assert len(run.records) == 80
    assert all(len(record.values or ()) == 9000 for record in run)


def test_a_listener_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise OSError("no terminal any more")

    run = Conductor(model.Settings(), command=fake(), listener=broken).run()
    assert run.stopped_by == "completed"
    assert any("no terminal any more" in note for note in run.notes)


def after(kind: type[object], number: int, what: Callable[[], None]) -> Callable[[object], None]:
    """A listener that does something, in a thread of its own, when it has heard of so many of that kind."""
    heard = itertools.count(1)

    def listener(event: object) -> None:
        if isinstance(event, kind) and next(heard) == number:
            threading.Thread(target=what).start()

    return listener


def interrupted(
    writer: RunWriter | None = None, *, grace_s: float = 10.0, times: int = 1, **scenario: object
) -> Run:
    """A run that is interrupted when it has begun with its second point."""

    def interrupt() -> None:
        for _ in range(times):
            conductor.interrupt()
            time.sleep(0.2)

    listener = after(Begin, 2, interrupt)
    conductor = Conductor(
        model.Settings(), writer, command=fake(**scenario), listener=listener, grace_s=grace_s
    )
    return conductor.run()


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.latlab.jsonl") as writer:
        run = interrupted(writer, points=1000, pause=0.005)
    assert run.stopped_by == "interrupted"
    assert run.partial
    assert 0 < len(run.records) < 2000
    assert reader.read(tmp_path / "run.latlab.jsonl") == run


def test_ctrl_c_is_an_interrupt_and_the_handler_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    listener = after(Begin, 2, lambda: os.kill(os.getpid(), signal.SIGINT))
    run = Conductor(model.Settings(), command=fake(points=1000, pause=0.005), listener=listener).run()
    assert run.stopped_by == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_worker_that_does_not_stop_is_ended_after_the_grace() -> None:
    run = interrupted(deaf=True, hang="fake.one/2", grace_s=0.3)
    assert run.stopped_by == "interrupted"
    assert len(run.records) == 1


def test_a_second_interrupt_does_not_wait() -> None:
    run = interrupted(deaf=True, hang="fake.one/2", grace_s=300, times=2)
    assert run.stopped_by == "interrupted"


def test_an_interrupt_before_anything_was_measured_is_passed_on(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.latlab.jsonl") as writer:
        conductor = Conductor(model.Settings(), writer, command=fake(hang="hello", deaf=True), grace_s=0.1)
        timer = threading.Timer(0.4, conductor.interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            conductor.run()
        timer.join()
    assert not list(tmp_path.iterdir())


PROGRAM = """
import sys
from latlab.run import conduct, model
run = conduct.conduct(model.Settings(), out=sys.argv[1], command=sys.argv[2:])
"""


def started(tmp_path: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "run.latlab.jsonl"), *command])


def written_lines(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.iterdir())


def test_kill_9_of_the_parent_at_any_moment_leaves_a_readable_run_or_nothing(tmp_path: Path) -> None:
    moments = random.Random(9)
    runs = []
    rounds = 8
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = started(folder, *fake(points=1000, pause=0.002))
        try:
            # While it starts by the clock, later by what is in the file.
            if number % 4 == 0:
                time.sleep(moments.uniform(0.0, 0.3))
            else:
                lines = moments.randrange(1, 150)
                while process.poll() is None and written_lines(folder) < lines:
                    time.sleep(0.001)
        finally:
            process.kill()
        assert process.wait() == -signal.SIGKILL
        files = list(folder.iterdir())
        assert [file.name for file in files] in ([], ["run.latlab.jsonl"])
        runs += [reader.read(file) for file in files]
    # All but those that were killed while they started.
    for run in some(runs, least=rounds * 3 // 4):
        assert run.partial
        assert run.stopped_by == "cut short"


def kill_worker() -> None:
    """Kills the fake worker of this process; nobody where it has ended."""
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            if os.fsencode(FAKE) in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for the child")
def test_kill_9_of_the_worker_at_any_moment_leaves_a_complete_run(tmp_path: Path) -> None:
    planned = {
        (probe, model.Point(working_set_bytes=number * 1024))
        for probe in ("fake.one", "fake.two")
        for number in range(1, 21)
    }
    moments = random.Random(10)
    killed = 0
    rounds = 8
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        # While it starts by the clock, later by what it has said.
        timer = threading.Timer(moments.uniform(0.0, 0.2) if number % 4 == 0 else 60.0, kill_worker)
        said, last = itertools.count(1), moments.randrange(1, 3 * len(planned)) if number % 4 else 0

        def listener(_: object, said: itertools.count[int] = said, last: int = last) -> None:
            if next(said) == last:
                kill_worker()

        with RunWriter(folder / "run.latlab.jsonl") as writer:
            command = fake(points=20, pause=0.002)
            conductor = Conductor(model.Settings(), writer, listener=listener, command=command)
            timer.start()
            run = conductor.run()
            timer.cancel()
        assert run.stopped_by == "completed"
        measured = [(record.probe, record.point) for record in run.records.measured()]
        # A death is a record: of the point under way, of a probe as a whole when there was none.
        dead = [(record.probe, record.point) for record in run.absent if record.point != model.Point()]
        assert sorted(map(repr, measured + dead)) == sorted(map(repr, planned))
        assert run.footer is not None
        assert len(run.absent) == run.footer.totals.worker_restarts <= 1
        assert reader.read(folder / "run.latlab.jsonl") == run
        killed += len(run.absent)
    assert killed >= rounds * 3 // 8, "half of those that what it said chose the moment for"


def test_a_file_that_exists_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "run.latlab.jsonl").write_text("mine")
    requests = tmp_path / "requests"
    with pytest.raises(RunFileError, match="already exists"):
        conduct.conduct(
            model.Settings(), out=tmp_path / "run.latlab.jsonl", command=fake(requests=str(requests))
        )
    assert not requests.exists()
    assert (tmp_path / "run.latlab.jsonl").read_text() == "mine"


def test_a_full_disk_does_not_end_the_run(tmp_path: Path) -> None:
    class Filling(RunWriter):
        records = 0

        def record(self, record: model.Record | bytes) -> None:
            self.records += 1
            if self.records == 2:
                os.close(self._descriptor)
                self._descriptor = os.open("/dev/full", os.O_WRONLY)
            super().record(record)

    with Filling(tmp_path / "run.latlab.jsonl") as writer:
        run = Conductor(model.Settings(), writer, command=fake()).run()
    assert len(run.records) == 6
    assert run.write_error == "No space left on device"
    assert "does not hold the whole run" in run.notes[-1]
    assert len(reader.read(tmp_path / "run.latlab.jsonl").records) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"profile": "slow"}, "quick, standard, thorough"),
        ({"budget": "-3"}, "negative"),
        ({"budget": "soon"}, "'soon' is not a time"),
        ({"max_bytes": "much"}, "'much' is not a size"),
        ({"cpus": "one"}, "list of CPUs"),
        ({"cpus": [65000]}, "CPU 65000 cannot be used"),
        ({"dir": "/nowhere/at/all"}, "there is no directory"),
        ({"dir": __file__}, "is a file, not a directory"),
        ({"only": ""}, "empty glob"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_is_not_possible_is_said_in_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        make_settings(**wrong)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_what_people_write_becomes_settings(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    settings = make_settings(
        only="clock.*,memory.*", budget="2min", max_bytes="1GB", cpus=str(cpu), dir=tmp_path, seed=1
    )
    assert settings.only == ("clock.*", "memory.*")
    assert (settings.budget_s, settings.max_bytes, settings.cpus) == (120.0, 10**9, (cpu,))


def test_kills_for_want_of_memory_are_counted_where_the_kernel_says(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 1\noom_kill 4\n")
    assert oom_kills(tmp_path) == (None, 4)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/x\n")
    group = tmp_path / "sys/fs/cgroup/user.slice/x"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert oom_kills(tmp_path) == (2, 4)
    assert oom_kills(tmp_path / "empty") == (None, None)


@pytest.mark.skipif(sys.platform != "linux", reason="scratch folders are made on Linux only")
@pytest.mark.parametrize("scenario", [{}, {"deaths": [["fake.two/3", "SIGKILL"]]}], ids=["start", "death"])
def test_scratch_that_nobody_holds_is_gone_after_the_start_and_after_a_death(
    tmp_path: Path, scenario: dict[str, Any]
) -> None:
    left = leave_folder(tmp_path)
    seen: list[bool] = []

    def listener(event: object) -> None:
        if isinstance(event, Hello):
            seen.append(left.exists())
        if isinstance(event, Begin) and event.point.working_set_bytes == 2048 and len(seen) == 1:
            seen.append(False)
            leave_folder(tmp_path)

    conductor = Conductor(model.Settings(dir=str(tmp_path)), command=fake(**scenario), listener=listener)
    run = conductor.run()
    assert run.stopped_by == "completed"
    assert not run.notes
    assert not any(seen)
    # One that appears in the middle of a run is found after a death, else at the next start.
    assert left.exists() == (not scenario)


@pytest.mark.skipif(sys.platform != "linux", reason="scratch folders are made on Linux only")
def test_folders_that_somebody_holds_and_files_of_others_stay(tmp_path: Path) -> None:
    import fcntl  # noqa: PLC0415 - not on every system

    held, other = leave_folder(tmp_path), tmp_path / "latlab-1-2"
    other.mkdir()
    with (held / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert core.sweep(tmp_path) == 0
        assert (held / "f0").exists()
    assert core.sweep(tmp_path) == 1
    assert other.exists()


def test_a_directory_that_cannot_be_swept_ends_no_run(tmp_path: Path) -> None:
    run = Conductor(model.Settings(dir=str(tmp_path / "gone")), command=fake()).run()
    assert run.stopped_by == "completed"
    assert core.sweep(tmp_path / "gone") == 0


def test_the_measuring_process_gets_no_allocators_settings_but_keeps_who_has_the_restartable_sequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.pthread.rseq=0")
    monkeypatch.setenv("LD_PRELOAD", "/lib/other.so")
    environment = process.clean_environment()
    assert environment["GLIBC_TUNABLES"] == "glibc.pthread.rseq=0"
    assert "LD_PRELOAD" not in environment
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
    assert "GLIBC_TUNABLES" not in process.clean_environment()


def test_a_token_in_the_url_reaches_the_server_and_not_the_run_file(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/x?size=1&token=secretmark"
    with RunWriter(tmp_path / "run.latlab.jsonl") as writer:
        conductor = Conductor(model.Settings(url=url), writer, command=fake())
        run = conductor.run()
    assert run.settings.url == "http://127.0.0.1:9/x?size=1&token=***"
    assert "secretmark" not in (tmp_path / "run.latlab.jsonl").read_text(encoding="utf-8")
    assert conductor._settings.url == url
