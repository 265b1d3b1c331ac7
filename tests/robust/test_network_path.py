"""A path of known length: as root, as an ordinary user, and where namespaces are refused."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.robust.test_storage_degraded import refuse
from tests.some import some

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
]

LIBC = ctypes.CDLL(None, use_errno=True)
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine(), -1)
ASKED = (
    *("measure", "--profile", "quick", "--no-report", "--delay", "5", "--budget", "6"),
    *("--only", "network.connect,network.transfer"),
)


def without_namespaces() -> None:
    """As a container's filter of system calls answers."""
    refuse(UNSHARE, errno.EPERM)


def without_capabilities() -> None:
    """As in a container that may not change networks: neither CAP_NET_ADMIN nor CAP_SYS_ADMIN."""
    for capability in (12, 21):
        # PR_CAPBSET_DROP. Who is not root has none to lose.
        LIBC.prctl(24, capability, 0, 0, 0)


def children(place: Place) -> list[str]:
    """Processes that a run of this test left behind."""
    left = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"--child" in words and os.fsencode(place.root) in environment:
                left.append(entry.name)
    return left


def not_reached(place: Place) -> set[str]:
    """Probes with points for which a machine that is busy had no time."""
    return {line["probe"] for line in place.lines() if line.get("stopped_by") == "not_reached"}


def measured(place: Place, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - Popen's own
    """What was measured over the path; nothing runs any longer."""
    place.wanted = [{"path": "emulated"}]
    result = place.run(*ASKED, **more)
    assert result.returncode == 0, result.stderr
    assert place.lines()[0]["settings"]["delay_ms"] == 5
    assert not children(place)
    return [
        line
        for line in place.lines()
        if line["line"] == "record" and line["point"].get("path") == "emulated" and line["kind"] == "per_op"
    ]


def test_figures_over_a_path_say_so_and_are_never_shorter_than_it(place: Place) -> None:
    records = measured(place)
    kinds = {record["findings"]["route"]["kind"] for record in records}
    assert len(kinds) == 1
    if kinds <= {"netem", "delay-line"}:
        probes = {record["probe"] for record in records} | not_reached(place)
        assert probes == {"network.connect", "network.transfer"}
    for record in records:
        assert any(flag.startswith("emulated: ") for flag in record["flags"])
        assert record["findings"]["route"]["rtt_ns"] == 5_000_000
        if kinds <= {"netem", "delay-line"}:
            assert record["summary"]["min"] >= 4_900_000


def test_without_the_capabilities_of_a_network_s_root_a_path_is_made_or_its_absence_is_said(
    place: Place,
) -> None:
    def decided(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        over_the_path = (line for line in lines if line.get("point", {}).get("path") == "emulated")
        return [line for line in over_the_path if line["stopped_by"] not in {"not_reached", "interrupted"}]

    options = ("measure", "--profile", "quick", "--no-report", "--delay", "5", "--budget", "60")
    place.run_until(decided, *options, "--only", "network.connect", preexec_fn=without_capabilities)
    assert not children(place)
    for record in some(decided(place.lines())):
        if record.get("summary"):
            assert record["summary"]["min"] >= 4_900_000
        else:
            assert "no path can be emulated" in record["error"]["text"]


def test_where_namespaces_are_refused_the_server_waits_and_every_figure_says_what_it_is_good_for(
    place: Place,
) -> None:
    def emulated_lines(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            line for line in lines if line.get("point", {}).get("path") == "emulated" and line.get("summary")
        ]

    def enough(lines: list[dict[str, Any]]) -> bool:
        alone = [line for line in emulated_lines(lines) if line["point"].get("concurrency") == 1]
        return bool(alone) and any(
            line.get("error") for line in lines if line.get("probe") == "network.connect"
        )

    place.wanted = [{"path": "emulated", "concurrency": 1}, {"path": "emulated", "operation": "tcp"}]
    # Root may make networks without a user namespace; the filter refuses both.
    options = ("measure", "--profile", "quick", "--no-report", "--delay", "5", "--budget", "30")
    place.run_until(
        enough, *options, "--only", "network.connect,network.transfer", preexec_fn=without_namespaces
    )
    assert not children(place)
    records = emulated_lines(place.lines())
    assert {record["probe"] for record in records} == {"network.transfer"}
    reasons = {record["error"]["text"] for record in place.lines() if record.get("error")}
    assert any("does not delay handshakes" in reason for reason in reasons), reasons
    for record in records:
        assert record["findings"]["route"]["kind"] == "application"
        assert "no private network namespace" in record["findings"]["route"]["why_not_better"][0]
        assert any("valid for time to first byte only" in flag for flag in record["flags"])
    concluded = [figure for figure in place.figures() if figure["kind"] == "derived"]
    singles = [row for record in concluded for row in record["findings"].get("singles", [])]
    emulated = [row for row in singles if row["path"] == "emulated"]
    assert emulated
    assert all(row["model"] is None and row["verdict"] is None for row in emulated)
    assert all(row["phases_ns"]["first-byte"]["value"] >= 5_000_000 for row in emulated)
