"""Runs of one user wait for each other: by a clock and a wait that the test has in its hands."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from latlab.run.turn import Holder, lock_name, try_lock, turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract Unix sockets are Linux's")

USER = os.geteuid() if hasattr(os, "geteuid") else 0


@pytest.fixture
def name() -> str:
    """A lock of the test's own: `LATLAB_LOCK_NAME` holds its home."""
    return lock_name(USER)


@pytest.fixture
def held(name: str) -> Iterator[socket.socket]:
    """The lock, held by this process."""
    lock = try_lock(name, USER)
    assert isinstance(lock, socket.socket)
    with lock:
        yield lock


def holder_of(name: str) -> None:
    """Makes sure that somebody holds the lock."""
    holder = try_lock(name, USER)
    assert isinstance(holder, Holder)
    holder.connection.close()


class Scene:
    """A clock, what was said, and what happens while a run waits."""

    def __init__(self, *happens: Callable[[float], float]) -> None:
        self.time = 100.0
        self.said: list[str] = []
        self.waited: list[float] = []
        self._happens = list(happens)

    def now(self) -> float:
        return self.time

    def wait(self, _connection: socket.socket, most_s: float) -> None:
        self.waited.append(most_s)
        self.time += self._happens.pop(0)(most_s)


def test_alone_it_goes_on_at_once_and_gives_the_lock_back(name: str) -> None:
    scene = Scene()
    for _ in range(2):
        with turn(30.0, say=scene.said.append, name=name, now=scene.now, wait=scene.wait) as marks:
            assert marks == ()
            holder_of(name)
    assert (scene.said, scene.waited) == ([], [])


def test_the_second_names_whom_it_waits_for_and_holds_the_lock_after_it(
    name: str, held: socket.socket
) -> None:
    def ends(_most_s: float) -> float:
        held.close()
        return 12.0

    scene = Scene(ends)
    with turn(30.0, say=scene.said.append, name=name, now=scene.now, wait=scene.wait) as marks:
        assert marks == ()
        holder_of(name)
    (said,) = scene.said
    assert f"process {os.getpid()}" in said
    own_program = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    assert own_program in said
    assert "30 s" in said
    assert "--beside" in said
    assert scene.waited == [30.0]


def test_it_waits_no_longer_than_it_may_however_many_come_before_it(name: str, held: socket.socket) -> None:
    others: list[socket.socket] = [held]

    def another_one_is_faster(_most_s: float) -> float:
        others.pop().close()
        lock = try_lock(name, USER)
        assert isinstance(lock, socket.socket)
        others.append(lock)
        return 20.0

    scene = Scene(another_one_is_faster, lambda most_s: most_s)
    with turn(30.0, say=scene.said.append, name=name, now=scene.now, wait=scene.wait) as (mark,):
        assert (mark.id, mark.severity) == ("another-run", "warning")
        assert str(os.getpid()) in mark.title
    assert scene.waited == [30.0, 10.0]
    assert "the run is marked" in scene.said[-1]
    others.pop().close()


def test_beside_another_one_it_goes_on_at_once_and_is_marked(name: str, held: socket.socket) -> None:
    scene = Scene()
    with turn(30.0, beside=True, say=scene.said.append, name=name, now=scene.now, wait=scene.wait) as marks:
        assert [mark.id for mark in marks] == ["another-run"]
    assert scene.waited == []


def test_alone_with_beside_it_is_not_marked_and_others_wait_for_it(name: str) -> None:
    scene = Scene()
    with turn(30.0, beside=True, say=scene.said.append, name=name) as marks:
        assert marks == ()
        holder_of(name)
    assert scene.said == []


def test_another_users_socket_of_that_name_is_no_lock(name: str, held: socket.socket) -> None:
    scene = Scene()
    with turn(30.0, say=scene.said.append, name=name, user=USER + 1, wait=scene.wait) as marks:
        assert marks == ()
    assert (scene.said, scene.waited) == ([], [])


@pytest.mark.parametrize("why", ["no such sockets", "another system"])
def test_where_there_is_no_such_lock_it_goes_on(name: str, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if why == "another system":
        monkeypatch.setattr(sys, "platform", "darwin")
    else:
        monkeypatch.setattr(socket.socket, "bind", refused)
    with turn(30.0, say=pytest.fail, name=name) as marks:
        assert marks == ()
        assert try_lock(name, USER) is None


def test_the_connection_of_one_that_waits_ends_with_the_lock_of_the_other(
    name: str, held: socket.socket
) -> None:
    """By the kernel: whatever ends the process closes its socket."""
    holder = try_lock(name, USER)
    assert isinstance(holder, Holder)
    with holder.connection as connection:
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        held.close()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
