"""How much a fuzz test tries: little each day, more by `make fuzz`."""

from __future__ import annotations

import os


def inputs(daily: int, share: float = 1.0) -> int:
    """So many inputs, or this share of as many as `LATLAB_FUZZ` asks for."""
    asked = os.environ.get("LATLAB_FUZZ")
    return daily if asked is None else max(daily, int(int(asked) * share))
