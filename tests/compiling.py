"""Compiling beside other processes of the tests: two at once would both compile the library of Go."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """No other process compiles with the same library; the fixture `compilers` says where that is."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - Unix only

    library = Path(os.environ["GOCACHE"])
    library.mkdir(parents=True, exist_ok=True)
    with (library / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
