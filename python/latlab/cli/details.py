"""Where the details of a fault go."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback

from latlab.installed import version


def keep_details(error: BaseException) -> str | None:
    """Writes the traceback to a new file of this user's in the temporary folder.

    Returns:
        Its path, or None when it could not be written.
    """
    system = f"{platform.system()} {platform.release()}"
    head = (
        f"latlab {version()}, Python {sys.version.split()[0]}, {system}\nargument count: {len(sys.argv)}\n\n"
    )
    text = head + "".join(traceback.format_exception(error))
    try:
        handle, path = tempfile.mkstemp(prefix="latlab-fault-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return path
