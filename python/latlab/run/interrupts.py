"""Ctrl-C and other wishes that a run end early, noted instead of raised."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """How often the user has asked for the end; inside of it signals count, and a selector wakes up of each.

    A line of the file is never written by half, then.
    """

    def __init__(self) -> None:
        self.count = 0
        self._read, self._write = -1, -1
        self._before: dict[signal.Signals, Any] = {}

    def note(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """One more; from any thread, and from a signal's handler."""
        self.count += 1
        with contextlib.suppress(OSError):
            os.write(self._write, b"!")

    def fileno(self) -> int:
        """What a selector waits for."""
        return self._read

    def clear(self) -> None:
        """Lets a selector wait again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 64)

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        if threading.current_thread() is threading.main_thread():
            self._take_signals()
        return self

    def _take_signals(self) -> None:
        """SIGTERM and SIGHUP too where nobody else has a use for them; what is ignored (nohup) stays so."""
        for number, replaceable in (
            (signal.SIGINT, (signal.default_int_handler, signal.SIG_DFL)),
            (signal.SIGTERM, (signal.SIG_DFL,)),
            (getattr(signal, "SIGHUP", signal.SIGTERM), (signal.SIG_DFL,)),
        ):
            handler = signal.getsignal(number)
            custom = number is signal.SIGINT and callable(handler)
            if number not in self._before and (handler in replaceable or custom):
                self._before[number] = signal.signal(number, self.note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
        os.close(self._read)
        os.close(self._write)
        self._read = self._write = -1
