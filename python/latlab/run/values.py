"""What the structs of a run file are made of: JSON values and their bounds."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with str keys."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

DEEPEST: Final = 32
"""Levels of nesting that a JSON value in a run file may have; ours has six."""
LARGEST_INTEGER: Final = 2**64 - 1


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What all structs here have in common."""


def check_json(value: Json) -> None:
    """Refuses what code further on could not handle: deep nesting, integers without end.

    Raises:
        ValueError: with the reason.
    """
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, int) and abs(item) > LARGEST_INTEGER:
                raise ValueError("an integer has more than 64 bits")
        if not inner:
            return
        level = inner
    raise ValueError(f"a value is nested more than {DEEPEST} levels deep")
