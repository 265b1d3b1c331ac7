"""Listening where some evidence is missing: it works, and says which level it had and why not more."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from latlab.run.noise import LEVELS

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"},
        reason="takes away what Linux gives",
    ),
]

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine(), -1)
RSEQ = {"x86_64": 334, "aarch64": 293}.get(platform.machine(), -1)
#: Levels for which the kernel is not asked.
WITHOUT_PERMISSION = {"time stamps", "interrupt flag"}
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def refuse(call: int, answer: int) -> None:
    """From now on this process and its children get `answer` for that system call, as in many containers."""
    steps = [
        struct.pack("=HBBI", *step)
        for step in (
            # Load the call's number; if it is not this one, skip a step; refuse; allow.
            (0x20, 0, 0, 0),
            (0x15, 0, 1, call),
            (0x06, 0, 0, 0x00050000 | answer),
            (0x06, 0, 0, 0x7FFF0000),
        )
    ]
    program = ctypes.create_string_buffer(b"".join(steps))
    head = struct.pack("@HP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP, SECCOMP_MODE_FILTER.
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls can be set here")


def heard(
    place: Place,
    *arguments: str,
    before: Callable[[], None] | None = None,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    result = place.run(
        "noise", *arguments, "--json", preexec_fn=before, env={**place.environment, **(environment or {})}
    )
    assert result.returncode == 0, result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    available = [rung["level"] for rung in said["levels"] if rung["available"]]
    assert said["level"] == max(available, key=LEVELS.index), "the level is the highest that was there"
    assert all(rung["available"] or rung["reason"] for rung in said["levels"])
    return said


def rung(said: dict[str, Any], level: str) -> dict[str, Any]:
    return next(rung for rung in said["levels"] if rung["level"] == level)


@pytest.mark.parametrize("answer", [errno.EPERM, errno.EACCES], ids=["a sandbox", "paranoid 4"])
def test_without_perf_the_flag_and_the_time_stamps_remain(place: Place, answer: int) -> None:
    said = heard(place, "0.2", before=lambda: refuse(PERF_EVENT_OPEN, answer))
    assert said["gaps"] > 0
    assert not rung(said, "perf records")["available"]
    assert not rung(said, "tracepoints")["available"]
    assert os.strerror(answer) in rung(said, "perf records")["reason"]
    assert said["level"] in {"rseq", *WITHOUT_PERMISSION}


def test_the_self_test_says_what_cannot_be_seen_without_perf(place: Place) -> None:
    said = heard(place, "0.3", "--self-test", before=lambda: refuse(PERF_EVENT_OPEN, errno.EPERM))
    assert {"page-fault", "ipi"} <= set(said["unseen"])
    assert all(said["unseen_because"][name] for name in said["unseen"])
    if said["level"] == "rseq":
        assert said["causes"]["context-switch"]["found"] > 0, "the flag tells of switches"


def test_the_threads_own_flag_replaces_the_c_librarys_and_without_any_the_rest_remains(place: Place) -> None:
    plain = heard(place, "0.1")
    said = heard(place, "0.1", environment=WITHOUT_RSEQ)
    assert rung(said, "rseq")["available"] == rung(plain, "rseq")["available"]
    # Refused to the thread too, none is left.
    said = heard(place, "0.2", before=lambda: refuse(RSEQ, errno.ENOSYS), environment=WITHOUT_RSEQ)
    assert not rung(said, "rseq")["available"]
    assert rung(said, "perf records")["available"] == rung(plain, "perf records")["available"]
    assert said["gaps"] > 0


def test_with_nothing_but_the_clock_it_listens_all_the_same(place: Place) -> None:
    def nothing() -> None:
        refuse(PERF_EVENT_OPEN, errno.EPERM)
        refuse(RSEQ, errno.ENOSYS)

    said = heard(place, "0.2", before=nothing, environment=WITHOUT_RSEQ)
    assert said["level"] in WITHOUT_PERMISSION
    proofs = {proof for row in said["causes"] for proof in row["evidence"]}
    assert proofs <= {"comb", "quota-counter", "interrupt-flag"}
    # Only an x86-64 processor leaves a trace of interrupts, and only under a kernel that comes back by IRET.
    assert rung(said, "interrupt flag")["available"] or "interrupt-flag" not in proofs


def test_on_one_cpu_interrupts_from_another_are_not_tested_and_it_says_why(place: Place) -> None:
    cpu = min(os.sched_getaffinity(0))
    said = heard(place, "0.3", "--self-test", before=lambda: os.sched_setaffinity(0, {cpu}))
    assert said["cpu"] == cpu
    assert "ipi" in said["unseen"]
    assert said["stalls"]["injected"] > 0


@pytest.fixture
def busy_cpu() -> Iterator[int]:
    """A CPU on which another program runs all the time."""
    cpu = max(os.sched_getaffinity(0))
    program = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        yield cpu
        process.kill()


@pytest.mark.parametrize("perf", [True, False], ids=["with records", "by the flag"])
def test_on_a_cpu_shared_with_a_busy_loop_switches_are_what_takes_it_away(
    place: Place, busy_cpu: int, *, perf: bool
) -> None:
    before = None if perf else lambda: refuse(PERF_EVENT_OPEN, errno.EPERM)
    said = heard(place, "0.3", "--cpu", str(busy_cpu), before=before)
    if said["level"] in WITHOUT_PERMISSION:
        pytest.skip("switches cannot be seen here")
    first = said["causes"][0]
    assert first["cause"] in {"context-switch", "throttled"}
    assert first["share_time"] > 0.5
