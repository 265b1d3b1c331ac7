"""Signals that ask this process to end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, Final, NoReturn

_ENDING: Final = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end as an exception does: what was made goes, and what was started ends.

    What the caller ignores (`nohup`) stays ignored; only the main thread can set a handler.

    Raises:
        SystemExit: with 128 and the signal's number.
    """
    with _handled(_ENDING, _ended, lambda before: before != signal.SIG_IGN):
        yield


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Inside, signals that would raise an exception are kept; they are handled at the end.

    A program that is started inside has them as outside: only handlers are replaced, no signal is blocked.
    """
    kept: list[tuple[int, FrameType | None]] = []
    try:
        with _handled(
            (signal.SIGINT, *_ENDING), lambda number, frame: kept.append((number, frame)), callable
        ):
            yield
    finally:
        for number, frame in kept[:1]:
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, frame)


@contextlib.contextmanager
def _handled(
    numbers: Iterable[int],
    handler: Callable[[int, FrameType | None], object],
    is_replaced: Callable[[object], bool],
) -> Iterator[None]:
    """Inside, signals have this handler instead of those that are to be replaced."""
    before: dict[int, Any] = {}
    for number in numbers:
        if number not in before and is_replaced(signal.getsignal(number)):
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, own in before.items():
            # One that C set cannot be set again.
            if own is not None:
                signal.signal(number, own)


def _ended(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
