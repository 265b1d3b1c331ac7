from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.cpus_differ import finding
from latlab.run.cpus import Differing


def test_what_the_last_run_found_is_said_with_what_to_do(host: Callable[..., Host]) -> None:
    differing = Differing("1 µs on CPU 1, 2 µs on CPU 0", "a file", "; 2 more", "It rains", "wait", 2.0)
    found = finding(host(differing=differing))
    assert found is not None
    assert found.severity == "note"
    assert found.title == "times depend on the CPU: 1 µs on CPU 1, 2 µs on CPU 0 (a file; 2 more)"
    assert (found.effect, found.remedy) == (
        "It rains; a program that is not pinned may take either time",
        "wait",
    )


def test_without_such_a_run_nothing_is_said(host: Callable[..., Host]) -> None:
    assert finding(host()) is None
