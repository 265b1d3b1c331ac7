"""Which machine of many is slow: each against the others of its kind, at a known rate of false names.

Every name here is imported when it is first used: what runs on the hosts needs little of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from latlab.fleet.cluster import survey
    from latlab.fleet.linked import links
    from latlab.fleet.pairs import Links
    from latlab.fleet.standings import Failure, Reason, Standing, Survey, Tested, merge

__all__ = [
    "Failure",
    "Links",
    "Reason",
    "Standing",
    "Survey",
    "Tested",
    "links",
    "merge",
    "survey",
]

_PLACES: Final = {
    "survey": "cluster",
    "links": "linked",
    "Links": "pairs",
    "Tested": "standings",
    "Failure": "standings",
    "Reason": "standings",
    "Standing": "standings",
    "Survey": "standings",
    "merge": "standings",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'latlab.fleet' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"latlab.fleet.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
