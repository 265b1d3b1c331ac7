"""Which latlab this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The installed version; `unknown` when run from a tree that was never installed."""
    try:
        return metadata.version("latlab")
    except metadata.PackageNotFoundError:
        return "unknown"
