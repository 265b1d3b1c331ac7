"""The measuring core as the commands use it: its JSON, decoded."""

from __future__ import annotations

import json
from typing import Any

from latlab.errors import LatlabError


def probes() -> list[dict[str, Any]]:
    """Descriptions of all probes, in the order in which they run."""
    found: list[dict[str, Any]] = json.loads(_core().list_probes())
    return found


def plan(settings: str) -> dict[str, Any]:
    """What a run with these settings (JSON) would do."""
    found: dict[str, Any] = json.loads(_core().plan(settings))
    return found


def describe(directory: str | None) -> dict[str, Any]:
    """The machine, its clock and the tool."""
    found: dict[str, Any] = json.loads(_core().describe(directory))
    return found


def _core() -> Any:  # noqa: ANN401 - an extension module
    try:
        from latlab import _core as core  # noqa: PLC0415 - 10 ms that --help does not need
    except ImportError as error:
        raise LatlabError(
            f"the measuring core of latlab cannot be loaded ({error}): install latlab again, or run `make "
            "build`"
        ) from error
    return core
