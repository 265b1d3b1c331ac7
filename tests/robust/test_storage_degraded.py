"""Disks that are full, fail, may not be written or lack something: a reason, and all else is kept."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.some import some

if TYPE_CHECKING:
    from tests.robust.conftest import Disk, Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="takes away what Linux gives"),
]

QUICK = ("measure", "--profile", "quick", "--no-report")
SHORT = ("--budget", "4")
"""Some points of some probes; who needs certain ones waits for them."""
LONG = ("--budget", "30")
MIB, GIB = 1 << 20, 1 << 30
JOURNAL_BYTES = 24 * MIB
"""What a file system writes beside the data: its journal twice, bitmaps, inodes and folders."""

O_DIRECT, O_TMPFILE = os.O_DIRECT, os.O_TMPFILE & ~os.O_DIRECTORY
IO_URING_SETUP = 425
FALLOCATE = {"x86_64": 285, "aarch64": 47}.get(platform.machine(), -1)
OPENAT = {"x86_64": 257, "aarch64": 56}.get(platform.machine(), -1)
OPEN = 2 if platform.machine() == "x86_64" else None
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def refuse(call: int, answer: int, flag: tuple[int, int] | None = None) -> None:
    """From now on this process and its children get `answer` for that system call, as in many containers.

    With `flag`, only where that argument (its number, its bit) is given.
    """

    def step(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, k)

    # Packet filter (linux/filter.h, linux/seccomp.h): load a word, jump if equal or if bits are set, return.
    load, equal, bits, end = 0x20, 0x15, 0x45, 0x06
    allow, refused = 0x7FFF0000, 0x00050000 | answer
    if flag is None:
        steps = [step(load, 0), step(equal, call, 0, 1), step(end, refused), step(end, allow)]
    else:
        argument, bit = flag
        steps = [
            *(step(load, 0), step(equal, call, 0, 3), step(load, 16 + 8 * argument)),
            *(step(bits, bit, 0, 1), step(end, refused), step(end, allow)),
        ]
    program = ctypes.create_string_buffer(b"".join(steps))
    head = struct.pack("@HP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "no filter of system calls can be set here")


def refuse_to_open(flag: int, answer: int) -> None:
    refuse(OPENAT, answer, (2, flag))
    if OPEN is not None:
        refuse(OPEN, answer, (1, flag))


def obey_permissions() -> None:
    """From the next program on, a file's permissions bind this process even when it is root's."""
    if os.geteuid() == 0:
        # linux/prctl.h: PR_CAPBSET_DROP; linux/capability.h: CAP_DAC_OVERRIDE.
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def storage(
    place: Place,
    directory: Path,
    *words: str,
    only: str = "storage.*",
    enough: Callable[[], object] | None = None,
    **more: Any,  # noqa: ANN401 - Popen's own
) -> str:
    """Measures there, to the end or until the run file is enough, and leaves nothing; what it said."""
    before = names_in(directory)
    asked = (*QUICK, *(LONG if enough else SHORT), "--only", only, "--dir", str(directory), *words)
    if enough:
        result = place.run_until(lambda _: enough(), *asked, **more)
    else:
        result = place.run(*asked, **more) if more else place.called(*asked)
    assert result.returncode in ({0, 130} if enough else {0}), result.stderr
    assert "fault" not in result.stderr
    assert place.lines()[-1]["stopped_by"] == ("interrupted" if result.returncode else "completed")
    assert not place.deaths()
    assert names_in(directory) == before
    return result.stderr


def records(place: Place, probe: str = "storage.") -> list[dict[str, Any]]:
    return [line for line in place.lines() if line["line"] == "record" and line["probe"].startswith(probe)]


def reasons(place: Place, probe: str = "storage.") -> set[str]:
    """Why figures are missing, without those for which there was no time."""
    return {
        record["error"]["text"]
        for record in records(place, probe)
        if record.get("error") and record["stopped_by"] != "not_reached"
    }


def measured(place: Place, probe: str = "storage.") -> list[dict[str, Any]]:
    return [record for record in records(place, probe) if record["kind"] == "per_op"]


def flags(place: Place, probe: str = "storage.") -> set[str]:
    return {flag for record in records(place, probe) for flag in record.get("flags", [])}


_ON_A_DISK: list[bool] = []
"""Whether temporary files are on a disk with room; asked once, all places lie beside each other."""


@pytest.fixture
def directory(place: Place) -> Path:
    """An ordinary directory, on a disk."""
    here = place.root / "here"
    if not _ON_A_DISK:
        result = place.called(*QUICK, "--only", "storage.poke", "--budget", "1", "--dir", str(here))
        shown = place.shown()
        place.forget_runs()
        _ON_A_DISK.append(result.returncode == 0 and "tmpfs" not in shown and "stay free" not in shown)
    if not _ON_A_DISK[0]:
        pytest.skip("no disk can be measured where temporary files are")
    return here


# -------------------------------------------------------------------------------------------------- no room


def test_where_a_gibibyte_would_not_stay_free_nothing_is_written_and_the_figures_are_named(
    place: Place, disks: Callable[..., Disk]
) -> None:
    disk = disks(700 * MIB)
    before = disk.written_bytes()
    storage(place, disk.path)
    assert not measured(place)
    assert all("1 GiB" in reason and "free" in reason for reason in some(reasons(place))), reasons(place)
    assert disk.nothing_is_left()
    # Looking at a directory may write when it was looked at.
    assert disk.written_bytes() - before < MIB


def fill(descriptor: int) -> None:
    """Takes what is left of the disk of a file, but some blocks: others take of it too while it is done."""
    for spare in (64, 1024, 16_384):
        space = os.fstatvfs(descriptor)
        with contextlib.suppress(OSError):
            os.posix_fallocate(descriptor, 0, (space.f_bavail - spare) * space.f_frsize)
            return


def test_a_disk_that_somebody_else_fills_meanwhile_ends_figures_and_no_run(
    place: Place, disks: Callable[..., Disk]
) -> None:
    disk = disks(2 * GIB)
    process = place.start(*QUICK, *LONG, "--only", "storage.*", "--dir", str(disk.path))
    place.until(process, lambda: place.run_files and measured(place, "storage.read"))
    file = disk.path / "others"
    with file.open("wb") as filling:
        fill(filling.fileno())
    before = len(records(place))
    place.until(
        process,
        lambda: any("free" in reason or "No space" in reason for reason in reasons(place)),
    )
    process.send_signal(signal.SIGINT)
    result = place.ended(process)
    assert result.returncode == 130, result.stderr
    assert not place.deaths()
    assert len(records(place)) > before
    assert disk.entries() == ["others"]
    file.unlink()
    assert disk.nothing_is_left()


def test_a_limit_on_file_sizes_makes_the_test_file_smaller_and_kills_nobody(
    place: Place, directory: Path
) -> None:
    limit = (20 * MIB, 20 * MIB)
    for only in ("storage.read.random", "storage.write.random"):
        storage(
            place,
            directory,
            only=only,
            enough=lambda: measured(place),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        )
        assert any("10 MiB instead of 96 MiB" in flag for flag in flags(place)), flags(place)
        place.forget_runs()


def test_a_limit_below_the_least_test_file_is_named(place: Place, directory: Path) -> None:
    limit = (MIB, MIB)
    storage(
        place,
        directory,
        only="storage.read.random,storage.files",
        enough=lambda: measured(place, "storage.files"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert any("ulimit -f" in reason for reason in reasons(place, "storage.read")), reasons(place)
    assert any(record["point"].get("files") == 1000 for record in measured(place, "storage.files"))


def test_what_may_be_written_is_announced_and_kept_to(place: Place, disks: Callable[..., Disk]) -> None:
    disk = disks()
    before = disk.written_bytes()
    said = storage(place, disk.path, "--max-bytes", "64MiB", "--budget", "10")
    assert "writes at most 64 MiB" in " ".join(said.split())
    assert measured(place)
    assert 0 < place.lines()[-1]["totals"]["written_bytes"] <= 64 * MIB
    assert disk.written_bytes() - before <= 64 * MIB + JOURNAL_BYTES


@pytest.mark.parametrize(
    ("words", "only"),
    [
        ((), "storage.*"),
        # The whole profile takes 90 s: docs/method/disk.md has what it wrote.
        (("--profile", "standard", "--max-bytes", "256MiB"), "storage.write.random,storage.sync"),
    ],
    ids=["quick", "standard"],
)
def test_a_run_sends_its_device_no_more_than_it_counts_and_counts_no_more_than_it_announced(
    place: Place, disks: Callable[..., Disk], words: tuple[str, ...], only: str
) -> None:
    disk = disks()
    asked = (*QUICK, *SHORT, "--only", only, "--dir", str(disk.path), *words, "--dry-run", "--json")
    announced = json.loads(place.called(*asked).stdout)["written_bytes"]
    before = disk.written_bytes()
    storage(place, disk.path, *words, only=only)
    counted = place.lines()[-1]["totals"]["written_bytes"]
    sent = disk.written_bytes() - before
    assert 0 < counted <= announced
    assert sent <= counted + JOURNAL_BYTES, (sent, counted, announced)
    assert disk.nothing_is_left()


def test_a_budget_of_seconds_is_kept(place: Place, directory: Path) -> None:
    # Without one this profile takes 90 s; a busy machine makes a few of three.
    storage(place, directory, "--profile", "standard", "--budget", "3")
    assert measured(place)
    assert sum(probe["seconds"] for probe in place.lines()[0]["plan"]) <= 3
    assert place.lines()[-1]["totals"]["seconds"] < 60


def test_a_quota_that_is_used_up_is_the_reason(place: Place, directory: Path) -> None:
    only = "storage.read.random,storage.rate"
    storage(place, directory, only=only, preexec_fn=lambda: refuse(FALLOCATE, errno.EDQUOT))
    assert not measured(place)
    assert all("quota exceeded" in reason for reason in some(reasons(place))), reasons(place)


# -------------------------------------------------------------------------------------- may not be written


def test_a_read_only_file_system_is_the_reason_and_every_probe_says_it(
    place: Place, disks: Callable[..., Disk]
) -> None:
    disk = disks()
    subprocess.run(["mount", "-o", "remount,ro", str(disk.path)], check=True)
    storage(place, disk.path)
    assert {record["kind"] for record in records(place)} == {"absent"}
    assert all("read-only" in reason for reason in some(reasons(place))), reasons(place)


def test_a_directory_that_may_not_be_written_is_the_reason(place: Place, directory: Path) -> None:
    directory.chmod(0o555)
    try:
        storage(place, directory, preexec_fn=obey_permissions)
    finally:
        directory.chmod(0o755)
    assert {record["kind"] for record in records(place)} == {"absent"}
    assert all("may not make files" in reason for reason in some(reasons(place))), reasons(place)


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EPERM])
def test_without_io_uring_threads_do_its_work_and_every_figure_says_so(
    place: Place, directory: Path, answer: int
) -> None:
    def at_once() -> list[dict[str, Any]]:
        return [record for record in measured(place) if record["point"].get("queue_depth", 1) > 1]

    storage(
        place,
        directory,
        only="storage.read.random,storage.rate",
        enough=at_once,
        preexec_fn=lambda: refuse(IO_URING_SETUP, answer),
    )
    assert {record["point"]["engine"] for record in at_once()} == {"threads"}
    assert any("io_uring is not allowed here" in flag for flag in flags(place)), flags(place)


@pytest.mark.parametrize(
    ("only", "cached"),
    [
        ("storage.read.random", set()),
        ("storage.read.sequential", {"buffered-warm", "buffered-cold"}),
        ("storage.poke", {"buffered-warm", "buffered-cold"}),
    ],
)
def test_without_direct_io_that_is_the_reason_and_the_page_cache_is_measured(
    place: Place, directory: Path, only: str, cached: set[str]
) -> None:
    def paths() -> set[str | None]:
        # Pokes into a file of no bytes do no input and output at all.
        return {each["point"].get("path") for each in measured(place) if each["point"].get("file_bytes") != 0}

    def is_refused() -> bool:
        return any("no direct I/O" in reason for reason in reasons(place))

    storage(
        place,
        directory,
        only=only,
        # Without the page cache nothing is left to measure, which takes no time.
        enough=(lambda: paths() >= cached and is_refused()) if cached else None,
        preexec_fn=lambda: refuse_to_open(O_DIRECT, errno.EINVAL),
    )
    assert paths() == cached
    assert is_refused(), reasons(place)


def test_a_file_system_without_nameless_files_is_measured_and_nothing_stays(
    place: Place, directory: Path
) -> None:
    for only in ("storage.read.random", "storage.poke"):
        storage(
            place,
            directory,
            only=only,
            enough=lambda: measured(place),
            preexec_fn=lambda: refuse_to_open(O_TMPFILE, errno.EOPNOTSUPP),
        )
        place.forget_runs()


@pytest.mark.parametrize(
    "probe",
    [
        "storage.read.sequential",
        "storage.write.sequential",
        "storage.read.random",
        "storage.rate",
        "storage.files",
    ],
)
def test_one_cpu_is_enough_for_every_probe_of_the_disk(place: Place, directory: Path, probe: str) -> None:
    one = {min(os.sched_getaffinity(0))}
    storage(
        place,
        directory,
        only=probe,
        enough=lambda: measured(place, probe),
        preexec_fn=lambda: os.sched_setaffinity(0, one),
    )


# ------------------------------------------------------------------------------------------------ what fails


def test_a_device_that_fails_is_a_reason_and_what_was_measured_before_stays(
    place: Place, disks: Callable[..., Disk]
) -> None:
    """The file under a loop device is cut off: what lay behind is an input/output error."""
    disk = disks(3 * GIB, "loop")
    result = subprocess.run(
        ["losetup", "--direct-io=on", f"/dev/{disk.device().resolve().name}"],
        capture_output=True,
        check=False,
    )
    if result.returncode != 0:
        pytest.skip("this loop device has no direct I/O: it would read zeros behind the end")
    process = place.start(*QUICK, *LONG, "--only", "storage.*", "--dir", str(disk.path))
    place.until(process, lambda: place.run_files and measured(place))
    before = len(records(place))
    os.truncate(disk.image, MIB)
    place.until(
        process,
        lambda: any("Input/output error" in reason or "zeros" in reason for reason in reasons(place)),
    )
    process.send_signal(signal.SIGINT)
    result_of = place.ended(process)
    assert result_of.returncode == 130, result_of.stderr
    assert place.lines()[-1]["stopped_by"] == "interrupted"
    assert not place.deaths()
    assert len(records(place)) > before
