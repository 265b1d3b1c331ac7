"""Writes what was drawn: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from latlab.errors import UserError


def save(target: Path, content: bytes) -> Path:
    """Writes whole or not at all, so that a full disk never leaves half a report under the name asked for.

    Raises:
        UserError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            # mkstemp makes files private; a report is as readable as any new file.
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o666 & ~umask)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from None
    return target
