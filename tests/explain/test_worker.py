"""Which process is said to have done the work, and what only started it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import Explained, Part, Process
from latlab.explain.verdict import verdict
from latlab.explain.worker import look_through, worker


def started(line: tuple[str, ...], *processes: Process) -> Explained:
    """A program of ten seconds that was started with these words."""
    made = ledger({"sleep": 0.1})
    program = msgspec.structs.replace(made.program, arguments=line)
    return msgspec.structs.replace(made, program=program, processes=processes)


def process(
    pid: int, parent: int, name: str, running: float, *, wall_s: float = 10.0, waits: str = "sleep"
) -> Process:
    rest = (Part(waits, 1 - running, (1 - running) * wall_s),)
    return Process(pid, parent, name, wall_s, running, rest)


SHELL = process(1, 0, "sh", 0.01, waits="waiting-for-children")


@pytest.mark.parametrize(
    ("line", "processes", "command", "by"),
    [
        # The program went on as another one.
        (
            ("/usr/bin/env", "A=1", "python3", "app.py"),
            [process(1, 0, "python3", 0.9)],
            "python3 app.py",
            "env",
        ),
        (("nice", "gzip", "x"), [process(1, 0, "gzip", 0.9)], "gzip x", "nice"),
        (("taskset", "-c", "0", "gzip", "x"), [process(1, 0, "gzip", 0.9)], "gzip x", "taskset"),
        # It started another one.
        (
            ("sh", "-c", "cd /tmp && python3 app.py; sleep 1"),
            [SHELL, process(2, 1, "python3", 0.9)],
            "python3 app.py",
            "sh -c",
        ),
        (
            ("timeout", "8", "/bin/dd", "if=x"),
            [process(1, 0, "timeout", 0.01), process(2, 1, "dd", 0.3, waits="storage-wait")],
            "dd if=x",
            "timeout",
        ),
        (("./build.sh",), [SHELL, process(2, 1, "cc1", 0.8), process(3, 1, "cc1", 0.9)], "cc1", "build.sh"),
        (("bash", "-c", "find 'unclosed"), [SHELL, process(2, 1, "find", 0.9)], "find 'unclosed", "bash -c"),
    ],
)
def test_the_process_that_did_the_work_is_named_with_what_started_it(
    line: tuple[str, ...], processes: list[Process], command: str, by: str
) -> None:
    found = worker(started(line, *processes))
    assert (found.command, found.started_by) == (command, by)
    assert found.says == f"The work was done by {command}, started by {by}."


@pytest.mark.parametrize(
    ("line", "processes"),
    [
        (("gzip", "x"), [process(1, 0, "gzip", 0.9)]),
        # It only renames itself.
        (("node", "server.js"), [process(1, 0, "MainThread", 0.9)]),
        (("/opt/a-program-with-a-long-name",), [process(1, 0, "a-program-with-", 0.9)]),
        # Nobody did half of it, or nobody did anything.
        (("make",), [SHELL, process(2, 1, "cc1", 0.5), process(3, 1, "as", 0.5)]),
        (("sh", "-c", "sleep 9; true"), [SHELL, process(2, 1, "sleep", 0.001)]),
        ((), [process(1, 0, "server", 0.9)]),
    ],
)
def test_a_program_that_did_its_work_itself_needs_no_word(
    line: tuple[str, ...], processes: list[Process]
) -> None:
    explained = started(line, *processes)
    assert worker(explained).says is None
    assert verdict(explained)[0].startswith(f"{line[0].split('/')[-1] if line else 'server'} spends ")


def test_the_shells_of_a_shim_are_said_with_their_time() -> None:
    shells = [process(at, 1, "bash", 0.1, wall_s=0.4) for at in (2, 3)]
    explained = started(("python3", "app.py"), process(1, 0, "python3", 0.9), *shells)
    assert worker(explained).says == (
        "The work was done by python3; shells below it ran 8.0 % of the time, such as those of pyenv's shims."
    )


def test_the_verdict_is_about_the_program_that_did_the_work() -> None:
    explained = started(("sh", "-c", "gzip big; true"), SHELL, process(2, 1, "gzip", 0.9))
    reported = verdict(explained)
    assert reported[0] == "gzip spends 90 % of 10.0 s computing (89–91 %)."
    assert reported[1] == "The work was done by gzip big, started by sh -c."


def wrapped(*below: tuple[str, float], slept: float = 0.99) -> dict[str, Any]:
    """A ledger as the core writes it, of a wrapper that sleeps while its child waits for these shares."""
    made = ledger({"sleep": 0.4, "storage-wait": 0.0}, width=0.02)
    child = msgspec.structs.replace(
        process(2, 1, "dd", 0.6), waits=tuple(Part(name, share, 10 * share) for name, share in below)
    )
    names = ("compute", "sleep")
    timeline = msgspec.structs.replace(made.timeline, names=names, bins=((0.6, 0.4), (5.4, 3.6)))
    processes = (process(1, 0, "timeout", 1 - slept), child)
    made = msgspec.structs.replace(made, processes=processes, timeline=timeline)
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return whole


def shares(whole: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["share"] for row in whole["categories"]}


def test_the_sleep_of_a_wrapper_is_what_its_child_waits_for() -> None:
    whole = wrapped(("storage-wait", 0.3), ("sleep", 0.1))
    look_through(whole)
    found = shares(whole)
    assert found == pytest.approx({"compute": 0.6, "storage-wait": 0.3, "sleep": 0.1})
    storage = next(row for row in whole["categories"] if row["name"] == "storage-wait")
    assert (storage["low"], storage["high"]) == pytest.approx((0.285, 0.335))
    assert storage["seconds"] == pytest.approx(3.0)
    assert whole["timeline"]["names"] == ["compute", "sleep", "storage-wait"]
    assert whole["timeline"]["bins"][0] == pytest.approx([0.6, 0.1, 0.3])
    assert sum(map(sum, whole["timeline"]["bins"])) == pytest.approx(10.0)
    assert whole["notes"] == ["While timeout slept, the waits of dd count instead."]


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(wrapped(("sleep", 0.4)), id="its child sleeps"),
        pytest.param(wrapped(("storage-wait", 0.4), slept=0.5), id="it works itself"),
        pytest.param(wrapped(), id="nothing is known of its child"),
    ],
)
def test_a_ledger_of_other_programs_stays_as_it_is(whole: dict[str, Any]) -> None:
    before = msgspec.json.encode(whole)
    look_through(whole)
    assert msgspec.json.encode(whole) == before
