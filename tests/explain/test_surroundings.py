"""The explained program finds what it would find without latlab, but for two variables of its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.slow,
]

STARTER: Final = Path(__file__).with_name("surroundings.py")
NOBODY: Final = ("/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
ADDED: Final = (b"LATLAB_STAGES=", b"LATLAB_STAGE_LINES=")
ODD: Final = (
    b"TWICE=1",
    b"NO_EQUALS_SIGN",
    b"TWICE=2",
    b"=C:=x",
    b"NOT_UTF8=\xff\xfe",
    b"EMPTY=",
    b"",
    b"A=b=c",
)
SURROUNDINGS: Final = {
    "as root's shell has them": (
        b"PATH=/usr/bin:/bin",
        b"HOME=/root",
        b"LANG=en_US.UTF-8",
        b"LC_CTYPE=C",
        *ODD,
    ),
    "without a locale": (b"PATH=/usr/bin:/bin", *ODD),
    "with nothing": (),
}
STATUS: Final = (
    *("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "Cpus_allowed", "Mems_allowed", "Seccomp"),
    *("NoNewPrivs", "Groups", "Umask", "Uid", "Gid", "Cap", "THP_enabled"),
)
"""Lines of /proc/self/status. SigQ is left out: it counts what waits for all processes of the user."""
STAT: Final = {"group": 5, "session": 6, "terminal": 7, "nice": 19, "real-time priority": 40, "policy": 41}
"""Fields of /proc/self/stat, counted as in proc(5)."""
FILES: Final = ("limits", "oom_score_adj", "timerslack_ns", "personality", "coredump_filter", "cgroup")
"""Of /proc/self, as a whole."""


def started(
    tmp_path: Path,
    *words: str,
    entries: tuple[bytes, ...] = (),
    user: tuple[str, ...] = (),
    closed: int = -1,
    explained: bool,
) -> bytes:
    """Standard output of a program, with latlab or without."""
    by = [sys.executable, "-P", "-m", "latlab", "explain", "--no-limits", "--"] if explained else []
    output = tmp_path / "output"
    with output.open("wb") as out, (tmp_path / "said").open("wb") as said:
        result = subprocess.run(
            [sys.executable, "-I", "-S", STARTER, str(closed), *user, *by, *words],
            input=b"".join(entry + b"\0" for entry in entries),
            stdout=out,
            stderr=said,
            cwd="/",
            timeout=100,
            check=False,
        )
    assert result.returncode == 0, (tmp_path / "said").read_text(encoding="utf-8", errors="replace")
    return output.read_bytes()


def found(
    tmp_path: Path, entries: tuple[bytes, ...], user: tuple[str, ...], *, explained: bool
) -> dict[str, object]:
    """All that a program finds, by name: `find` its open files, and what it starts the rest."""
    find, head = (shutil.which(name) or name for name in ("find", "head"))
    files = [f"/proc/self/{name}" for name in ("environ", "status", "stat", *FILES)]
    listed = [find, "/proc/self/fd", "/proc/self/cwd", "-printf", "%f %l\\n"]
    shown = ["-name", "cwd", "-exec", head, "-v", "-c", "99999", *files, ";"]
    said = started(tmp_path, *listed, *shown, entries=entries, user=user, explained=explained)
    links, *parts = (b"\n" + said).split(b"\n==> /proc/self/")
    contents = dict(part.split(b" <==\n", 1) for part in parts)
    stat = contents[b"stat"].rpartition(b") ")[2].split()
    return {
        "environment": contents[b"environ"].split(b"\0")[:-1],
        "status": [line for line in contents[b"status"].decode().splitlines() if line.startswith(STATUS)],
        "stat": {name: stat[at - 3] for name, at in STAT.items()},
        # It opens the folders that it lists: their names have its own number.
        "links": sorted(line for line in links.decode().splitlines() if not line.endswith("/fd")),
        **{name: contents[name.encode()] for name in FILES},
    }


@pytest.fixture(params=["this user", "nobody"])
def user(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The words by which a program is another user's; skips where there is none, or it cannot read latlab."""
    if request.param == "this user":
        return ()
    if os.geteuid() != 0 or not Path(NOBODY[0]).exists():
        pytest.skip("only root can become another user, by setpriv")
    result = subprocess.run(
        [*NOBODY, sys.executable, "-P", "-c", "import latlab._core"],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    if result.returncode:
        pytest.skip(f"that user cannot run latlab here: {result.stderr.strip()[-200:]}")
    return NOBODY


@pytest.mark.parametrize("entries", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_a_program_finds_what_it_would_find_without_latlab(
    tmp_path: Path, entries: tuple[bytes, ...], user: tuple[str, ...]
) -> None:
    plain = found(tmp_path, entries, user, explained=False)
    explained = found(tmp_path, entries, user, explained=True)
    assert plain["environment"] == list(entries)
    given = explained.pop("environment")
    assert isinstance(given, list)
    assert given[: len(entries)] == plain.pop("environment")
    added = given[len(entries) :]
    assert [entry.startswith(name) for entry, name in zip(added, ADDED, strict=True)] == [True, True]
    assert explained == plain
    # The starter's work, else nothing was proved.
    assert "7 /etc/passwd" in str(plain["links"])


@pytest.mark.parametrize("closed", [0, 2])
def test_a_standard_stream_that_is_closed_is_closed_for_the_program(tmp_path: Path, closed: int) -> None:
    program = (sys.executable, "-I", "-S", "-c", "import os; print(os.path.exists('/proc/self/fd/CLOSED'))")
    words = [word.replace("CLOSED", str(closed)) for word in program]
    for explained in (False, True):
        assert started(tmp_path, *words, closed=closed, explained=explained) == b"False\n"


def test_a_program_that_is_tried_again_is_given_what_was_given_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from latlab.explain.experiments import given_environment  # noqa: PLC0415 - beside its test

    monkeypatch.setenv("SET_MEANWHILE", "1")
    block = Path("/proc/self/environ").read_bytes()
    given = given_environment()
    assert "SET_MEANWHILE" not in given
    assert [os.fsencode(f"{name}={value}") in block.split(b"\0") for name, value in given.items()] == [
        True
    ] * len(given)
    assert given["PATH"] == os.environ["PATH"]
