"""The two streams: data on standard output, talk on standard error; what each of them can show.

Lines are made of :class:`Line` objects, plain text with optional marks, so that a test compares text and a
terminal gets colour. Colour never carries meaning alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from latlab import text as texts

if TYPE_CHECKING:
    from rich.console import Console

#: What a stream without a size is laid out for.
USUAL_WIDTH = 80
#: Narrower terminals get lines of this width and wrap or scroll them: a table cannot be narrower and still be
#: read.
NARROWEST = 40


@dataclass(slots=True)
class Line:
    """One line and its marks: (start, end, style of rich)."""

    text: str = ""
    marks: list[tuple[int, int, str]] = field(default_factory=list)

    def mark(self, start: int, end: int, style: str) -> Line:
        """Adds a mark and returns the line."""
        self.marks.append((start, end, style))
        return self


def styled(text: str, style: str) -> Line:
    """A line with one style from end to end."""
    return Line(text, [(0, len(text), style)])


@dataclass(frozen=True, slots=True)
class Screen:
    """What the reader's end of a stream is like.

    Attributes:
        width: Columns.
        unicode: Whether it can show more than ASCII.
        is_terminal: Whether a person looks at it now.
        colour: Whether it shows colours.
    """

    width: int = USUAL_WIDTH
    unicode: bool = True
    is_terminal: bool = False
    colour: bool = False

    def fit(self, text: object) -> str:
        """`text` cleaned of anything a terminal would obey, in the characters that this screen can show."""
        cleaned = texts.clean(text)
        return cleaned if self.unicode else texts.ascii_only(_without_accents(cleaned))

    def wrapped(self, text: object, *, first: str = "", rest: str = "", style: str = "") -> list[Line]:
        """`text` in as many lines as it needs, behind the indents given, in one style."""
        width = max(self.width, NARROWEST)
        lines = textwrap.wrap(
            self.fit(text),
            width,
            initial_indent=self.fit(first),
            subsequent_indent=self.fit(rest),
            break_on_hyphens=False,
        )
        return [styled(line, style) if style else Line(line) for line in lines]


def _without_accents(text: str) -> str:
    """`Boner` of `Bonér`: better than a question mark."""
    return "".join(mark for mark in unicodedata.normalize("NFD", text) if not unicodedata.combining(mark))


def screen_of(stream: TextIO) -> Screen:
    """What is known of a stream: its size, its encoding, the reader's wish for colour."""
    is_terminal = stream.isatty()
    width = (
        shutil.get_terminal_size((USUAL_WIDTH, 24)).columns
        if is_terminal or "COLUMNS" in os.environ
        else USUAL_WIDTH
    )
    dumb = os.environ.get("TERM") in {"dumb", "unknown"}
    return Screen(
        width=max(width, NARROWEST),
        unicode=texts.can_encode("µ–…±▓", stream) and not _wants_ascii(),
        is_terminal=is_terminal and not dumb,
        colour=is_terminal and not dumb and not os.environ.get("NO_COLOR"),
    )


def _wants_ascii() -> bool:
    """Whether the locale was set to C on purpose.

    Python itself talks UTF-8 in the C locale (PEP 538, PEP 540), so the stream's encoding does not tell. A
    locale that is not set at all, as in most containers, says nothing about the terminal and is taken as
    UTF-8.
    """
    if os.environ.get("PYTHONIOENCODING"):
        return False
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = os.environ.get(name)
        if not value or (name == "LC_CTYPE" and value == "C.UTF-8"):  # what PEP 538 sets by itself
            continue
        return value in {"C", "POSIX"}
    return False


def say_json(value: object) -> None:
    """Prints what `--json` asked for."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def say(lines: list[Line], stream: TextIO | None = None) -> None:
    """Prints lines, coloured where the stream wants it."""
    target = sys.stdout if stream is None else stream
    screen = screen_of(target)
    if not screen.colour:
        target.write("".join(f"{texts.fitting(line.text, target)}\n" for line in lines))
        target.flush()
        return
    from rich.text import Text  # noqa: PLC0415 - only where colour is wanted: 30 ms

    console = console_of(target)
    for line in lines:
        shown = Text(line.text, no_wrap=True, overflow="ignore")
        for start, end, style in line.marks:
            shown.stylize(style, start, end)
        console.print(shown, soft_wrap=True, markup=False, highlight=False)


def console_of(stream: TextIO) -> Console:
    """A rich console on the stream that neither guesses at colours nor rewrites text."""
    from rich.console import Console  # noqa: PLC0415 - see say()

    screen = screen_of(stream)
    return Console(
        file=stream,
        width=screen.width,
        no_color=not screen.colour,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def talk(text: str) -> None:
    """One line for the person, on standard error."""
    screen = screen_of(sys.stderr)
    sys.stderr.write(f"{texts.fitting(screen.fit(text), sys.stderr)}\n")
    sys.stderr.flush()
