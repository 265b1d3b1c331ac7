"""Ctrl-C as a terminal sends it: to every process of the foreground group, the measuring one included."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from latlab import __main__

if TYPE_CHECKING:
    from tests.robust.conftest import Place

pty = pytest.importorskip("pty")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux terminals"),
]

PATIENCE_S = 60
FIRST_SECONDS = (
    "measure",
    "--profile",
    "quick",
    "--only",
    "clock.read,memory.load.dependent",
    "--budget",
    "5",
)


@contextmanager
def terminal(place: Place, *arguments: str, stdout: int | None = None) -> Iterator[Session]:
    """The command in the foreground of a terminal of its own."""
    process, keyboard = pty.fork()
    if process == 0:
        try:
            os.chdir(place.root / "here")
            if stdout is not None:
                os.dup2(stdout, 1)
            command = place.started_as(*arguments)
            os.execve(command[0], command, {**place.environment, "TERM": "xterm-256color"})
        finally:
            os._exit(127)
    session = Session(process, keyboard)
    try:
        yield session
    finally:
        session.close()


class Session:
    def __init__(self, process: int, keyboard: int) -> None:
        self.seen = ""
        self._process, self._keyboard, self._code = process, keyboard, -1

    def wait_for(self, text: str) -> bool:
        """Reads until that is on the screen; False at the end."""
        while text not in self.seen:
            ready, _, _ = select.select([self._keyboard], [], [], PATIENCE_S)
            if not ready:
                raise TimeoutError(f"no {text!r} on the screen: {self.seen[-500:]}")
            try:
                data = os.read(self._keyboard, 1 << 16)
            except OSError:
                return False
            if not data:
                return False
            self.seen += data.decode(errors="replace")
        return True

    def press_ctrl_c(self) -> None:
        os.write(self._keyboard, b"\x03")

    def end(self) -> int:
        """Reads to the end; the exit code."""
        self.wait_for("\0 never on a screen")
        self._code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self._code

    def close(self) -> None:
        os.close(self._keyboard)
        if self._code < 0:
            os.waitpid(self._process, 0)


@pytest.mark.parametrize("sign", ["will take", " s left", "memory.load.dependent"])
def test_ctrl_c_keeps_what_is_done_and_says_where(place: Place, sign: str) -> None:
    with terminal(place, *FIRST_SECONDS, "--no-report") as session:
        assert session.wait_for(sign)
        session.press_ctrl_c()
        assert session.end() == 130
    assert "interrupted" in session.seen
    assert "saved" in session.seen
    assert place.run_files[0].name in session.seen
    assert place.lines()[-1]["stopped_by"] == "interrupted"
    assert "interrupted" in place.shown()
    assert place.left() == []


def test_ctrl_c_with_json_leaves_one_valid_object_on_stdout(place: Place) -> None:
    out = place.root.with_suffix(".json")
    with (
        out.open("wb") as file,
        terminal(place, "measure", "--profile", "quick", "--json", stdout=file.fileno()) as session,
    ):
        assert session.wait_for(" s left")
        session.press_ctrl_c()
        assert session.end() == 130
    assert json.loads(out.read_bytes())["footer"]["stopped_by"] == "interrupted"


def test_a_second_ctrl_c_does_not_wait_and_still_says_where_the_run_is(place: Place) -> None:
    with terminal(place, *FIRST_SECONDS) as session:
        assert session.wait_for("memory.load.dependent")
        session.press_ctrl_c()
        session.press_ctrl_c()
        assert session.end() == 130
    assert place.run_files[0].name in session.seen
    assert "Traceback" not in session.seen
    assert place.lines()[-1]["stopped_by"] == "interrupted"
    assert place.left() == []


def test_ctrl_c_while_the_command_is_still_being_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "latlab.cli.main", SimpleNamespace(run=interrupted))
    with pytest.raises(SystemExit) as end:
        __main__.main()
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "latlab: interrupted\n")
