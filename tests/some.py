"""A loop over nothing asserts nothing: `for item in some(items)` fails where there is no item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def some(items: Iterable[Item], least: int = 1) -> list[Item]:
    """The items, of which there must be so many at least."""
    found = list(items)
    assert len(found) >= least, f"{len(found)} items to check, at least {least} expected"
    return found
