"""What a killed run leaves in a directory, as the core makes it."""

from __future__ import annotations

import os
from pathlib import Path

#: What the lock file of a scratch folder holds.
LOCK_TEXT = "latlab scratch folder: latlab removes it when no process holds a lock on this file\n"


def leave_folder(directory: Path, name: str = ".latlab-1-2") -> Path:
    """A scratch folder whose process is gone: nobody holds its lock."""
    left = directory / name
    (left / "0").mkdir(parents=True)
    (left / "lock").write_text(LOCK_TEXT)
    (left / "f0").write_bytes(b"x" * 4096)
    (left / "0/g1").write_bytes(b"x")
    return left


def contents(directory: Path) -> dict[str, bytes | None]:
    """Every file below a directory with its bytes; folders, what is no file or may not be read has None."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        if path.is_file() and os.access(path, os.R_OK)
        else None
        for path in sorted(directory.rglob("*"))
    }


def plant(directory: Path) -> dict[str, bytes | None]:
    """Makes files of the user's under names that are nearly latlab's; returns what is there then."""
    for name in (".latlab-notes", ".latlab-7-8", "latlab-lesson-notes", "latlab-lesson-abcd1234"):
        folder = directory / name
        folder.mkdir()
        (folder / "thesis.txt").write_text("three years")
    (directory / ".latlab-7-8/lock").write_text("mine\n")
    (directory / ".latlab-notes/lock").write_text(LOCK_TEXT)
    (directory / ".latlab-9-9").write_text("a file")
    return contents(directory)
