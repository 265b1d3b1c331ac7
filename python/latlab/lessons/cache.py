"""What of a file is in the page cache: it is asked for, and then looked at; and the memory that it takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from latlab.lessons.programs import block_size, disk_speed
from latlab.text import clean
from latlab.units import format_percent

#: A kernel that is short of memory takes back what it has just read; one that is still writing keeps it.
_ATTEMPTS: Final = 3
NOT_KEPT: Final = "the page cache did not keep all of the file, even after repeated reads"


def why_not_cold(path: Path) -> str:
    """Makes the cache drop a file that is on the disk; empty when nothing is left of it, else the reason."""
    if not hasattr(os, "posix_fadvise"):
        return "this system cannot drop a file from its cache on request (no posix_fadvise)"
    left = 0.0
    for _ in range(_ATTEMPTS):
        try:
            block_size.forget(path)
            left = block_size.cached_share(path)
        except (OSError, AttributeError) as error:
            return clean(error, most=200)
        if not left:
            return ""
    return f"the cache did not drop {format_percent(left)} of the file"


def brought_in(path: Path) -> bool:
    """Reads a file until all of it is in the page cache; whether it is."""
    for _ in range(_ATTEMPTS):
        disk_speed.read(path)
        try:
            if block_size.cached_share(path) == 1.0:
                return True
        except (OSError, AttributeError):
            # Nobody says; it was read a moment ago.
            return True
    return False


def again(
    write: Callable[[Path], float], fresh: Callable[[], Path], *, keep: bool = False
) -> tuple[float, Path]:
    """What a write returns after one of the same form that was emptied, and what it wrote.

    Its memory held such files a moment ago: pages not used recently take several times as long to find,
    in a virtual machine from its host. All files stay, empty: see `fresh_folder` for what removing does.

    Args:
        write: Seconds to write a file, or files into a folder.
        fresh: Where to: a file that is not there, or a new folder.
        keep: Whether the bytes of the second one stay.
    """
    for last in (False, True):
        path = fresh()
        seconds = write(path)
        if not (keep and last):
            for file in path.iterdir() if path.is_dir() else (path,):
                os.truncate(file, 0)
    return seconds, path
