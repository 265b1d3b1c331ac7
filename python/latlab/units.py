"""Quantities as people type and read them.

Sizes are printed with binary prefixes (`48 KiB`) and read with either (`4KiB` = 4096 B, `4kB` = 4000 B);
rates are decimal (`39 GB/s`). Latencies are nanoseconds in the code and three significant digits in print.
Text is Unicode here; `latlab.text.fitting` turns it into what the terminal can show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from latlab.errors import UserError
from latlab.text import clean

_Unit: TypeAlias = Literal["ns", "bytes_per_s"]

# Longer than any quantity: what is longer is no typing error but something else, and is not looked at.
_LONGEST = 64
_QUANTITY = re.compile(
    r"([+-]?(?:\d+(?:[_,]\d{3})*|\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ]*(?:/s)?|%)", re.ASCII
)

_SIZES = {
    "": 1,
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{prefix}{tail}": 1000**power for power, prefix in enumerate("kmgtp", 1) for tail in ("b",)},
    **{f"{prefix}{tail}": 1024**power for power, prefix in enumerate("kmgtp", 1) for tail in ("ib", "i", "")},
}
_SECONDS = {
    "": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "mins": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
}
#: Units of a record's values: those in which they are printed.
_VALUES: Final[dict[str, tuple[float, _Unit]]] = {
    "ps": (1e-3, "ns"),
    "ns": (1.0, "ns"),
    "us": (1e3, "ns"),
    "µs": (1e3, "ns"),
    "ms": (1e6, "ns"),
    "s": (1e9, "ns"),
    "B/s": (1.0, "bytes_per_s"),
    "kB/s": (1e3, "bytes_per_s"),
    "MB/s": (1e6, "bytes_per_s"),
    "GB/s": (1e9, "bytes_per_s"),
    "TB/s": (1e12, "bytes_per_s"),
}
_MOST_BYTES = 2**63 - 1
ONCE = "measured once"
"""In the place of a range, where a single round gives no range."""
_LONGEST_SECONDS = 7 * 24 * 3600


def parse_size(text: str | float) -> int:
    """Bytes of `4KiB`, `1.5 MiB`, `1GB`, `64k` (binary, as most tools read it) or a plain number.

    Raises:
        UserError: it is not a size, is negative, is not a whole number of bytes, or is larger than 8 EiB.
    """
    number, unit = _split(text, "a size", "such as 64KiB, 1.5GB or 4096")
    factor = _SIZES.get(unit.lower())
    if factor is None:
        raise UserError(
            f"{_quoted(text)}: {unit!r} is not a unit of size; use B, KiB, MiB, GiB, kB, MB or GB"
        )
    size = number * factor
    if size > _MOST_BYTES:
        raise UserError(f"{_quoted(text)} is more bytes than a computer can address")
    whole = int(size + 0.5)
    if factor == 1 and not math.isclose(size, whole, abs_tol=1e-9):
        raise UserError(f"{_quoted(text)} is not a whole number of bytes")
    return whole


def parse_seconds(text: str | float) -> float:
    """Seconds of `30s`, `2min`, `1.5 h`, `250ms` or a plain number (seconds).

    Raises:
        UserError: it is not a time, or is not above zero.
    """
    number, unit = _split(text, "a time", "such as 30s, 2min or 90")
    factor = _SECONDS.get(unit) or _SECONDS.get(unit.lower())
    if factor is None:
        raise UserError(f"{_quoted(text)}: {unit!r} is not a unit of time; use ms, s, min or h")
    seconds = number * factor
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise UserError(f"{_quoted(text)} is out of range: give more than 0 s and at most a week")
    return seconds


def parse_share(text: str, *, most: float = 1.0) -> float:
    """The share of `5%` or `0.5 %`, above 0 and at most 100 %, or what else is the most.

    Raises:
        UserError: it is not one.
    """
    number, unit = _split(text, "a share", "such as 5%")
    if unit != "%":
        raise UserError(f"{_quoted(text)} is not a percentage; write it as 5%")
    share = number / 100
    if not 0 < share <= most:
        raise UserError(f"{_quoted(text)} is not above 0 % and at most {format_percent(most)}")
    return share


def parse_value(text: str) -> tuple[float, _Unit]:
    """A record's value as people type it, with its `unit`: `130 ns`, `2.5 µs`, `1 GB/s`.

    Raises:
        UserError: it is neither a time nor a rate, or not above zero.
    """
    number, unit = _split(text, "a time or a rate", "such as 130 ns or 1 GB/s")
    factor, kind = _VALUES.get(unit, (0.0, "ns"))
    if not factor:
        raise UserError(f"{_quoted(text)}: {unit!r} is not a unit; use {', '.join(_VALUES)}")
    if not number:
        raise UserError(f"{_quoted(text)} is not above zero")
    return number * factor, kind


def parse_count(text: str | float) -> int:
    """A whole number that is not negative: `4`, `1,000`, `1e6`, `10k` (decimal).

    Raises:
        UserError: it is not one.
    """
    number, unit = _split(text, "a number", "such as 4 or 1e6")
    factor = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}.get(unit.lower())
    if factor is None:
        raise UserError(f"{_quoted(text)}: {unit!r} is not a unit of a count; use k, M or G")
    value = number * factor
    if value > _MOST_BYTES or not math.isclose(value, round(value), abs_tol=1e-9):
        raise UserError(f"{_quoted(text)} is not a whole number in range")
    return round(value)


def parse_cpus(text: str) -> tuple[int, ...]:
    """CPU numbers of `0,2-3` as `taskset -c` reads them, ascending, each once.

    Raises:
        UserError: it is not such a list.
    """
    cpus: set[int] = set()
    wrong = UserError(f"{_quoted(text)} is not a list of CPUs; write it as 0,2-3")
    for part in str(text)[:4096].split(","):
        match = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", part, re.ASCII)
        if match is None:
            raise wrong
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= 65_536:  # noqa: PLR2004 - more than any kernel allows
            raise wrong
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def format_cpus(cpus: Iterable[int]) -> str:
    """`0-3,8`: as `taskset -c` reads them."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


def _split(text: str | float, what: str, example: str) -> tuple[float, str]:
    written = str(text).strip()
    match = _QUANTITY.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None or not any(map(str.isdigit, match[1])):
        raise UserError(f"{_quoted(text)} is not {what}, {example}")
    try:
        number = float(match[1].replace(",", "").replace("_", ""))
    except ValueError:
        raise UserError(f"{_quoted(text)} is not {what}, {example}") from None
    if number < 0:
        raise UserError(f"{_quoted(text)} is negative: give {what}, {example}")
    if math.isinf(number):
        raise UserError(f"{_quoted(text)} is too large to be {what}, {example}")
    return number, match[2]


def _quoted(text: object) -> str:
    return f"'{clean(text, most=_LONGEST)}'"


def _significant(value: float, digits: int) -> str:
    """Fixed notation with that many significant digits, trailing zeros kept: they say how exact it is."""
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    shown = round(value, places)
    # Rounding may have added a digit: 9.996 is 10.0.
    places = digits - 1 - math.floor(math.log10(abs(shown)))
    return f"{shown:.{max(places, 0)}f}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    """`value` in the largest step below it, or in the next one if it rounds up to that."""
    magnitude = abs(value)
    index = max((i for i, (factor, _) in enumerate(steps) if magnitude >= factor), default=0)
    text = _significant(value / steps[index][0], digits)
    if abs(float(text)) >= 1000 and index + 1 < len(steps):  # noqa: PLR2004
        index += 1
        text = _significant(value / steps[index][0], digits)
    return f"{text} {steps[index][1]}"


_TIMES = ((1e-3, "ps"), (1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_RATES = ((1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s"))
_BINARY = tuple((1024.0**power, unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB")))
_DECIMAL = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"))
_COUNTS = ((1e6, "million"), (1e9, "billion"), (1e12, "trillion"))
_NONE = "–"
# A damaged file's number is no figure. NaN is not below it, nor is an integer that no float can hold.
_BEYOND_SAYING = 1e300


def format_ns(ns: float | None, *, digits: int = 3) -> str:
    """`1.06 ns`, `113 ns`, `2.34 µs`, `1.00 s`; `–` for none. Nothing is converted to minutes."""
    if ns is None or not abs(ns) < _BEYOND_SAYING:
        return _NONE
    if ns == 0:
        return "0 ns"
    if abs(ns) < 1e-6:  # noqa: PLR2004 - below a femtosecond is rounding, not time
        return "0 ns"
    return _scaled(ns, _TIMES, digits)


def format_ns_as_asked(ns: float | None) -> str:
    """A time that somebody chose, without the zeros that would say how exact it is: `1 ms`, `2.5 µs`."""
    number, _, unit = format_ns(ns).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}".rstrip()


def format_seconds(seconds: float | None) -> str:
    """A duration to wait for: `0.4 s`, `31 s`, `1 min 30 s`, `2 h 5 min`."""
    if seconds is None or not abs(seconds) < _BEYOND_SAYING:
        return _NONE
    if abs(seconds) < 9.95:  # noqa: PLR2004 - tenths are shown while they matter
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(round(whole / 60), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def format_bytes(size: float | None, *, decimal: bool = False) -> str:
    """A size: `48 KiB`, `1.5 MiB`, `0 B`, or `1 GB` if it is to be decimal; `–` for none."""
    if size is None or not abs(size) < _BEYOND_SAYING:
        return _NONE
    return _trimmed(size, _DECIMAL, 1000.0) if decimal else _trimmed(size, _BINARY, 1024.0)


def format_bytes_as_asked(size: int | None) -> str:
    """The prefix with which it is exact, binary first: 1000000000 is `1 GB`, 1048576 is `1 MiB`."""
    binary, decimal = format_bytes(size), format_bytes(size, decimal=True)
    # Rounded up, the largest sizes are more than can be asked for.
    if size is None or size > _MOST_BYTES // 2 or parse_size(binary) == size or parse_size(decimal) != size:
        return binary
    return decimal


def format_bytes_of_point(size: int) -> str:
    """A size that a probe chose, decimal in whole kB only, so that one list has one kind of prefix.

    `10 kB`, `1 GB`; 1600 is `1.56 KiB`.
    """
    return format_bytes(size) if size % 1000 else format_bytes_as_asked(size)


def _trimmed(value: float, steps: tuple[tuple[float, str], ...], base: float) -> str:
    """At most three significant digits or, from 100 on, no decimals; trailing zeros dropped."""

    def written(scaled: float) -> str:
        text = f"{scaled:.0f}" if abs(scaled) >= 100 else _significant(scaled, 3)  # noqa: PLR2004
        return text.rstrip("0").rstrip(".") if "." in text else text

    index = max((i for i, (factor, _) in enumerate(steps) if abs(value) >= factor), default=0)
    number = written(value / steps[index][0])
    if abs(float(number)) >= base and index + 1 < len(steps):
        index += 1
        number = written(value / steps[index][0])
    return f"{number} {steps[index][1]}"


def format_rate(bytes_per_s: float | None, *, digits: int = 3) -> str:
    """Bytes a second with a decimal prefix: `39.1 GB/s`; `–` for none."""
    if bytes_per_s is None or not abs(bytes_per_s) < _BEYOND_SAYING:
        return _NONE
    if bytes_per_s == 0:
        return "0 B/s"
    return _scaled(bytes_per_s, _RATES, digits)


def format_count(count: float | None) -> str:
    """`12`, `1,600`, `52,000`, `80 million`: exact below a million."""
    if count is None or not abs(count) < _BEYOND_SAYING:
        return _NONE
    if abs(round(count)) < 1_000_000:  # noqa: PLR2004 - commas are still easy to read
        return f"{round(count):,}"
    number, unit = _scaled(count, _COUNTS, 3).split(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def format_digits(value: float | None, digits: int) -> str:
    """`1.5`, `12`, `1,240`: so many digits or all before the point, no power of ten; `–` for none."""
    if value is None or not abs(value) < _BEYOND_SAYING:
        return _NONE
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def format_factor(value: float, digits: int) -> str:
    """How many times: `1.0`, `12`, `1,240`. Trailing zeros are kept: they say how exact it is."""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else _significant(value, digits)


def format_value(value: float | None, unit: str) -> str:
    """A record's value by its `unit`: `ns` or `bytes_per_s`."""
    return format_rate(value) if unit == "bytes_per_s" else format_ns(value)


def format_percent(share: float | None) -> str:
    """`0.012` as `1.2 %`."""
    if share is None or not abs(share) < _BEYOND_SAYING:
        return _NONE
    percent = share * 100
    whole = abs(percent) >= 9.95 or percent == 0  # noqa: PLR2004 - two digits are enough of a share
    return f"{percent:.0f} %" if whole else f"{_significant(percent, 2)} %"


def format_change(change: float) -> str:
    """`0.12` as `12 %`, 2.7 as `3.7 times`: from twice as much on nobody thinks in percent.

    Beyond `over 1,000 times` a number would say no more.
    """
    if change >= 1000:  # noqa: PLR2004 - as the text says
        return "over 1,000 times"
    return format_percent(change) if change < 1 else f"{format_factor(1 + change, 2)} times"


def format_span(low: float, high: float, write: Callable[[float], str] | None = None) -> str:
    """`1.05–1.07 ns`: the unit once where both ends have the same, else `800 ps – 1.40 ns`."""
    first, last = (write or format_ns)(low), (write or format_ns)(high)
    number, _, unit = first.partition(" ")
    return f"{number}–{last}" if last.endswith(f" {unit}") or not unit else f"{first} – {last}"


def format_stated(
    value: float | None,
    ends: tuple[float, float] | None,
    write: Callable[[float], str] | None = None,
    why_none: str = ONCE,
) -> str:
    """`1.06 ns (1.05–1.07 ns)`: a figure with its 95 % interval, or why it has none."""
    if value is None:
        return ""
    return f"{(write or format_ns)(value)} ({format_span(*ends, write) if ends else why_none})"
