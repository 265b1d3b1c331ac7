"""Signals that ask this process to end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end as an exception does: what was made goes, and what was started ends.

    What the caller ignores (`nohup`) stays ignored; only the main thread can set a handler.

    Raises:
        SystemExit: with 128 and the signal's number.
    """
    before: dict[int, Any] = {}
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if number not in before and signal.getsignal(number) != signal.SIG_IGN:
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, _ended)
    try:
        yield
    finally:
        for number, handler in before.items():
            # One that C set cannot be set again.
            if handler is not None:
                signal.signal(number, handler)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Inside, signals that would raise an exception are kept; they are handled at the end.

    A program that is started inside has them as outside: only handlers are replaced, no signal is blocked.
    """
    kept: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if number not in before and callable(signal.getsignal(number)):
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, lambda number, frame: kept.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in kept[:1]:
            before[number](number, frame)


def _ended(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
