"""What a gate file sets: the limits of figures, and what follows where they are undecided.

same = "5 %"
undecided = "pass"

[gate]
"RAM" = { max = "130 ns", change = "25 %" }
"storage.read.random:block 4 KiB, depth 1*" = { quantile = "p99", change = "100 %", level = "warn" }
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from latlab.compare import MOST_CHANGE, SAME, Side, compare
from latlab.errors import UserError, named
from latlab.nearest import nearest
from latlab.text import clean
from latlab.units import format_percent, format_value, parse_share, parse_value

if TYPE_CHECKING:
    from latlab.compare import Figure
    from latlab.run.model import Unit
    from latlab.run.run import Run

Undecided: TypeAlias = Literal["pass", "fail", "measure"]
Level: TypeAlias = Literal["error", "warn"]

#: The file that is read where none is named.
FILE: Final = "latlab-gate.toml"
#: A gate file of more bytes is something else.
_MOST_BYTES: Final = 1 << 20
_CHOICES: Final = {
    "undecided": ("pass", "fail", "measure"),
    "quantile": ("p50", "p99"),
    "level": ("error", "warn"),
}
#: Gates of a new file.
_MOST_GATES: Final = 10
_LIMITS: Final = ("max", "min", "change")


@dataclass(frozen=True, slots=True)
class Gate:
    """Limits of some figures.

    Attributes:
        key: `probe:point`, both globs, or the name of a headline figure, which may be a glob too.
        largest: The most that a figure may be, with its unit; None where that is not limited.
        smallest: The least that it may be.
        change: By how much it may become worse, as a share: 0.25 is 25 %.
        quantile: Of which quantile: `p50` or `p99`.
        level: What a broken gate is: an error, or a warning.
    """

    key: str
    largest: tuple[float, Unit] | None
    smallest: tuple[float, Unit] | None
    change: float | None
    quantile: str
    level: Level

    def figures(self, of: Sequence[Figure]) -> list[Figure]:
        """Those that the key names.

        Raises:
            UserError: it names none, or a limit has another unit than its figure.
        """
        probe, colon, point = self.key.partition(":")
        if colon:
            named = {
                (each.probe, each.point)
                for each in of
                if fnmatchcase(each.probe, probe) and fnmatchcase(each.point, point)
            }
        else:
            named = {
                (each.probe, each.point)
                for each in of
                if each.headline and (each.name == self.key or fnmatchcase(each.name, self.key))
            }
        found = [each for each in of if (each.probe, each.point) in named and each.quantile == self.quantile]
        if not found:
            raise UserError(f"{_where(self.key)}: {self._none(of, named=bool(named))}")
        for limit, figure in ((limit, figure) for limit in (self.largest, self.smallest) for figure in found):
            if limit and limit[1] != figure.unit:
                units = "a time, such as 130 ns" if figure.unit == "ns" else "a rate, such as 1 GB/s"
                name = clean(figure.name, most=60)
                raise UserError(f"{_where(self.key)}: {name!r} has another unit: write {units}")
        return found

    def _none(self, of: Sequence[Figure], *, named: bool) -> str:
        """Why no figure was found, and what to write."""
        if named:
            return f"no such figure has a {self.quantile}: write p50, or omit quantile"
        probe, colon, _ = self.key.partition(":")
        if any(fnmatchcase(each.probe, probe) for each in of):
            rest = "that point" if colon else "that name"
            return f"no figure has {rest}: write '{clean(probe, most=60)}:*' for all points of the probe"
        known = {each.probe if colon else each.name for each in of if colon or each.headline}
        guess = nearest(probe, sorted(known))
        wish = f"did you mean {guess!r}?" if guess else "latlab compare -v lists figures"
        return f"no figure matches; {wish}"


@dataclass(frozen=True, slots=True)
class Gates:
    """A gate file.

    Attributes:
        file: As it was named.
        same: Changes up to this share count as none.
        undecided: What follows where a gate is neither held nor broken.
        gates: At least one.
    """

    file: str
    same: float
    undecided: Undecided
    gates: tuple[Gate, ...]

    def of(self, figures: Sequence[Figure]) -> list[tuple[Gate, Figure]]:
        """Each gate with each figure that it names.

        Raises:
            UserError: a gate names none, or has another unit than its figure.
        """
        return [(gate, figure) for gate in self.gates for figure in named(self.file, gate.figures, figures)]


def read(file: Path) -> Gates:
    """The gates of a file.

    Raises:
        UserError: the file cannot be read as one; one line with the file, the key and what to write.
    """
    shown = clean(file, most=200)
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"there is no gate file {shown!r}: latlab gate --init writes one") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None
    if len(data) > _MOST_BYTES:
        raise UserError(f"{shown!r} is not a gate file: it is larger than 1 MiB")
    try:
        whole = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = clean(error, most=200) or "nested too deeply"
        raise UserError(f"{shown!r} is not a TOML file: {reason}") from None
    return named(shown, partial(_gates, shown), whole)


def _gates(file: str, whole: Mapping[str, object]) -> Gates:
    _known(whole, ("same", "undecided", "gate"))
    same = named("same", _share, whole["same"]) if "same" in whole else SAME
    entries = whole.get("gate", {})
    if not isinstance(entries, dict) or not entries:
        raise UserError('no gates: write [gate], and below it "RAM" = { change = "25 %" }')
    return Gates(
        file,
        same,
        cast("Undecided", _choice(whole, "undecided", "pass")),
        tuple(named(_where(key), partial(_gate, key, same), entry) for key, entry in entries.items()),
    )


def _gate(key: str, same: float, entry: object) -> Gate:
    """One entry of `[gate]`."""
    if not isinstance(entry, dict):
        raise UserError('write { change = "25 %" } after it')
    _known(entry, (*_LIMITS, "quantile", "level"))
    if not any(limit in entry for limit in _LIMITS):
        raise UserError('no limit: write max = "130 ns", min = "1 GB/s" or change = "25 %"')
    largest, smallest = (
        named(name, _quantity, entry[name]) if name in entry else None for name in ("max", "min")
    )
    change = named("change", _share, entry["change"]) if "change" in entry else None
    if change is not None and change < same:
        raise UserError(
            f"change: {format_percent(change)} is less than what counts as the same,"
            f' {format_percent(same)}: write same = "{format_percent(change)}" at the top'
        )
    level = cast("Level", _choice(entry, "level", "error"))
    return Gate(key, largest, smallest, change, _choice(entry, "quantile", "p50"), level)


def _where(key: str) -> str:
    """How a message about a gate begins."""
    return f"[gate] {clean(key, most=100)!r}"


def _known(entry: Mapping[str, object], keys: Sequence[str]) -> None:
    for key in entry:
        if key not in keys:
            guess = nearest(key, keys)
            wish = f"did you mean {guess}?" if guess else f"write {' or '.join(keys)}"
            raise UserError(f"{clean(key, most=60)!r} is not a known key; {wish}")


def _choice(entry: Mapping[str, object], key: str, default: str) -> str:
    value = entry.get(key, default)
    if value not in _CHOICES[key]:
        known = " or ".join(f'"{choice}"' for choice in _CHOICES[key])
        raise UserError(f"{key}: {clean(value, most=60)!r}: write {known}")
    return str(value)


def _quantity(value: object) -> tuple[float, Unit]:
    if not isinstance(value, str):
        raise UserError(f'{clean(value, most=60)!r} has no unit: write it as "130 ns" or "1 GB/s"')
    return parse_value(value)


def _share(value: object) -> float:
    if not isinstance(value, str):
        raise UserError(f'{clean(value, most=60)!r} is not a percentage; write it as "25 %"')
    return parse_share(value, most=MOST_CHANGE)


# ------------------------------------------------------------------------------------------ a new gate file


def first(run: Run, kept: Sequence[Run]) -> str:
    """A gate file with headline figures of a run: those of which the smallest changes show.

    Args:
        run: The run whose figures become limits.
        kept: Others of the same machine, which say what would show; without any, what runs of one machine
            usually differ by.

    Raises:
        UserError: the run has no headline figure that can be judged.
    """
    own = Side("run", (run,))
    found = compare(Side("kept", tuple(kept)) if kept else own, own)
    seen = {each: each.verdict.smallest_visible for each in found.headline if each.verdict and each.b}
    best = sorted((each for each in seen if seen[each] <= MOST_CHANGE), key=seen.__getitem__)[:_MOST_GATES]
    if not best:
        raise UserError(f"the run {clean(run.id, most=80)} has no headline figure that a gate can limit")
    others = (
        f"{len(kept)} kept runs of its machine" if kept else "the usual variation between runs of one machine"
    )
    lines = [
        f"# Limits for latlab check, from the run {clean(run.id, most=80)} and {others}.",
        "# A key is the name of a headline figure, or probe:point; * stands for anything in both.",
        f'same = "{format_percent(found.same)}"  # smaller changes count as no change',
        'undecided = "pass"  # or "fail", or "measure": measure again first',
        "",
        "[gate]",
        *_entries(best, seen),
    ]
    return "\n".join([*lines, ""])


def _entries(figures: Sequence[Figure], seen: Mapping[Figure, float]) -> Iterator[str]:
    for figure in figures:
        # Up to a whole percent; rounded first, as 0.1 is no exact number.
        percent = math.ceil(round(seen[figure] * 100, 6))
        # What belongs to a level differs from machine to machine: only its name stays.
        key = json.dumps(re.sub(r"^(L\d) .*", r"\1 *", figure.name), ensure_ascii=False)
        value = figure.b.value if figure.b else 0.0
        most = format_value(value * (1 + percent / 100), figure.unit)
        yield f'{key} = {{ change = "{percent} %" }}  # {format_value(value, figure.unit)}; max = "{most}"'
