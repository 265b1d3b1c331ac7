"""What was measured on, as a run file says it, and what probes found of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from latlab.run.values import Json, Model

T = TypeVar("T", str, int, float, bool)


class Estimate(Model, frozen=True, kw_only=True):
    """A quantity derived from figures (a ratio, a knee, a fit), with the 95 % interval that rounds tell."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends of the interval."""
        low, high = self.low, self.high
        return None if low is None or high is None or low > high else (low, high)


class Level(Model, frozen=True, kw_only=True):
    """A level of the memory hierarchy as it was found from the curve.

    Attributes:
        latency_ns: median over its sizes; its range holds what they and the rounds differ by.
        end_bytes: where it ends; its range holds the two sizes between which it was not looked.
    """

    name: str
    latency_ns: Estimate | None = None
    cycles: float | None = None
    end_bytes: Estimate | None = None
    reported_bytes: float | None = None
    validated: bool | None = None
    note: str | None = None


class Machine(Mapping[str, Json]):
    """What was measured on: the JSON object of the run file, with typed look-ups that never fail.

    A look-up names a path: `machine.text("cpu.model_name")`. What is not there or is of another type is None,
    as what could not be read is: callers say "unknown", they do not guess.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Json]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Json:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Machine({self.text('cpu.model_name') or 'unknown CPU'!r})"

    def at(self, path: str) -> Json:
        """The value at a dotted path, or None."""
        value: Json = self._fields
        for name in path.split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
        return value

    def text(self, path: str) -> str | None:
        """A string, not yet cleaned for display."""
        return self._typed(path, str)

    def flag(self, path: str) -> bool | None:
        """True, false or unknown."""
        return self._typed(path, bool)

    def integer(self, path: str) -> int | None:
        """A whole number."""
        value = self.at(path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, path: str) -> float | None:
        """Any number, whether a range stands beside it or not."""
        estimate = self.estimate(path)
        return None if estimate is None else estimate.value

    def estimate(self, path: str) -> Estimate | None:
        """A number with its range (`{"value": 2.1, "low": 2.0, "high": 2.3}`), or a plain number."""
        found = self.at(path)
        own = found if isinstance(found, Mapping) else {"value": found}
        value, low, high = (
            float(part) if isinstance(part, int | float) and not isinstance(part, bool) else None
            for part in map(own.get, ("value", "low", "high"))
        )
        return None if value is None else Estimate(value=value, low=low, high=high)

    def section(self, path: str) -> Machine:
        """An object inside, empty if there is none."""
        value = self.at(path)
        return Machine(value if isinstance(value, Mapping) else {})

    def sections(self, path: str) -> list[Machine]:
        """The objects of a list, as of `machine.sections("caches")`."""
        return [Machine(item) for item in self._items(path) if isinstance(item, Mapping)]

    def texts(self, path: str) -> list[str]:
        """The strings of a list."""
        return [item for item in self._items(path) if isinstance(item, str)]

    def integers(self, path: str) -> list[int]:
        """The whole numbers of a list."""
        return [item for item in self._items(path) if isinstance(item, int) and not isinstance(item, bool)]

    def numbers(self, path: str) -> list[float]:
        """The numbers of a list."""
        found = (
            item for item in self._items(path) if isinstance(item, int | float) and not isinstance(item, bool)
        )
        return list(map(float, found))

    def _items(self, path: str) -> list[Json]:
        value = self.at(path)
        return value if isinstance(value, list) else []

    def _typed(self, path: str, kind: type[T]) -> T | None:
        value = self.at(path)
        return value if isinstance(value, kind) else None
