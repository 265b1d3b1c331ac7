r"""Strings from files and from other programs, made safe to show.

A run file may be anybody's: a model name that holds `ESC ] 0 ; ...` must not rename the terminal's window,
and a right-to-left override must not turn a table cell around.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

# Cc: C0 and C1 controls with ESC, newline, tab; Cf: bidi overrides and isolates, zero-width, soft hyphen,
# tags; Cs: lone surrogates, which no encoding can write; Zl, Zp: line separators; Co, Cn: no meaning.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})
_PLAIN = re.compile(r"[\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u22ff]*")
_WHITESPACE = frozenset("\t\n\v\f\r\x85\u2028\u2029")

# Marks stack on one character without end ("zalgo"): more than any language uses are dropped.
_MOST_MARKS = 4

LONGEST_SHOWN = 10_000
"""Characters of one string that are shown; the rest is cut with an ellipsis."""


def clean(text: object, *, most: int = LONGEST_SHOWN) -> str:
    r"""Returns `text` as one line without anything that a terminal or a browser would obey.

    Line breaks and tabs become one space; every other control, formatting or unassigned character becomes a
    visible `\x1b`-like escape, so that a strange string looks strange.
    """
    raw = text if isinstance(text, str) else str(text)
    if len(raw) > most:
        raw = raw[: max(most - 1, 0)] + "…"
    # The first answers for most strings in a tenth of the time.
    if (raw.isascii() and raw.isprintable()) or _PLAIN.fullmatch(raw):
        return raw
    return "".join(_shown(raw))


def _shown(raw: str) -> list[str]:
    out: list[str] = []
    marks = 0
    for character in raw:
        category = unicodedata.category(character)
        if category in {"Mn", "Me"}:
            marks += 1
            if marks <= _MOST_MARKS:
                out.append(character)
            continue
        marks = 0
        if category == "Zs" or character in _WHITESPACE:
            out.append(" ")
        elif category in _HIDDEN_CATEGORIES:
            out.append(_escaped(ord(character)))
        else:
            out.append(character)
    return out


def _escaped(code: int) -> str:
    if code <= 0xFF:  # noqa: PLR2004 - two hexadecimal digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def some(parts: Sequence[str], most: int = 5) -> str:
    """The first of them as :func:`listed`, and how many more there are."""
    more = [f"{len(parts) - most:,} more"] if len(parts) > most else []
    return listed([*parts[:most], *more])


def cut_apart(labels: tuple[str, str], most: int) -> tuple[str, str]:
    """Two labels in so many characters each: their beginnings, or their ends where these are alike."""
    first, second = (label[:most] for label in labels)
    return (first, second) if first != second else (labels[0][-most:], labels[1][-most:])


def counted(many: int, what: str) -> str:
    """`1 host`, `2 hosts`, `2 classes`."""
    return f"{many:,} {what if many == 1 else what + ('es' if what.endswith('s') else 's')}"


def aligned(rows: Sequence[Sequence[str]], left: Iterable[int] = (0, -1)) -> list[str]:
    """A line for each row: columns two spaces apart, numbers to the right.

    Args:
        rows: Cells, as many in each row.
        left: Columns of words, which begin at the left; -1 is the last.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = {column % len(widths) for column in left}
    return [
        "  ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def can_encode(characters: str, stream: TextIO | None = None) -> bool:
    """Whether the stream (standard output unless named) can write these characters."""
    target = sys.stdout if stream is None else stream
    try:
        characters.encode(getattr(target, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


_ASCII = str.maketrans(
    {
        "µ": "u",
        "μ": "u",
        "×": "x",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "…": "...",
        "±": "+-",
        "≥": ">=",
        "≤": "<=",
        "≈": "~",
        "→": "->",
        "²": "2",
        "°": "deg ",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
    }
)


def ascii_only(text: str) -> str:
    """The text for an ASCII terminal (`LANG=C`): `us` for `µs`, `x` for `×`, `?` for what has no likeness."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def fitting(text: str, stream: TextIO | None = None) -> str:
    """`text` as the stream can write it: unchanged, or by `ascii_only`."""
    return text if can_encode(text, stream) else ascii_only(text)


def natural(name: str) -> list[str | int]:
    """A key that sorts `node2` before `node10`."""
    return [int(part) if number % 2 else part for number, part in enumerate(_NUMBERS.split(name))]


#: Longer ones are no numbers that anybody counts with.
_NUMBERS = re.compile(r"([0-9]{1,18})")
