"""Sentences around figures: what says something of an absent figure is not said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from latlab.view.figure import Absent, Figure

Severity: TypeAlias = Literal["note", "caution", "warning"]

_PLACE: Final = re.compile(r"\{\{ (\w+)(\.bare)? \}\}")


class Prose:
    """Sentences, apart by an empty line. `{{ idle }}` is a figure with its range, `{{ idle.bare }}` without.

    Args:
        text: With places for the values.
        values: Figures, and words that hold none.
    """

    def __init__(self, text: str, **values: Figure | str) -> None:
        self._text, self._values = text, values

    @property
    def sentences(self) -> tuple[str, ...]:
        """Those whose figures are all there."""
        parts = (" ".join(part.split()) for part in self._text.split("\n\n"))
        return tuple(_PLACE.sub(self._written, part) for part in parts if part and self._is_known(part))

    def _is_known(self, part: str) -> bool:
        return not any(isinstance(self._values[name], Absent) for name, _ in _PLACE.findall(part))

    def _written(self, place: re.Match[str]) -> str:
        value = self._values[place[1]]
        return str(getattr(value, "bare") if place[2] else value)  # noqa: B009 - words have none


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know before trusting a figure."""

    severity: Severity
    title: str
    text: str
    remedy: str = ""


def sentence(text: str) -> str:
    """The text with the point that ends it, once."""
    return text if text.rstrip().endswith((".", "!", "?", ":")) else f"{text.rstrip()}."
