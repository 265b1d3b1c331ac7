"""Whatever stands in the strings and keys of a run file that can be read: no rendering obeys it."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fuzzing import inputs
from tests.poisoned import SHOWN, as_text, few, poisoned

from latlab.cli.terminal.ending import ending_lines
from latlab.cli.terminal.run_view import run_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import RunFileError
from latlab.report import html, markdown
from latlab.report.build import build
from latlab.run import reader
from latlab.run.run import Run

#: Escapes for a terminal, markup for a browser, what turns text around or hides it, cells of a spreadsheet.
PIECES = (
    *("\x1b]0;x\x07", "\x1b[2J", "\x1b[31m", "\x9b31m", "\x00", "\x7f", "\r\n", "\t", "\u2028", "\u2029"),
    *("\u202e", "\u2066", "\u200f", "\u200b", "\u00ad", "\ufeff", "\U000e0041", "\ue000", "e\u0301" * 9),
    *(
        "</script><qevilq onqevilq=1>",
        '"><qevilq>',
        "' onqevilq='1",
        "<!--",
        "]]>",
        "{{7*7}}",
        "&lt;qevilq&gt;",
    ),
    *(
        "[a](javascript:qevilq)",
        "|",
        "`",
        "\n# x",
        "=1+1",
        "@x",
        "\\",
        "$x$",
        '#read("/etc/passwd")',
        "%",
        "/x",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), min_size=1, max_size=4).map("".join)
_FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Elements(HTMLParser):
    """Names of elements and attributes, and what stands in scripts, as a browser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self.text: list[str] = []
        self.island = ""
        self._in_island = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names += [tag, *(name for name, _ in attrs)]
        self.text += [value or "" for _, value in attrs]
        self._in_island = ("type", "application/json") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._in_island = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._in_island:
            self.island += data


def obeyed(text: str, known: str = "") -> list[str]:
    """The characters in a text that show nothing and do something, but line ends and those in `known`."""
    # A table of figures is CSV, whose lines end so.
    used = set(text.replace("\r\n", "\n")) - set(known) - {"\n"}
    return [repr(each) for each in used if unicodedata.category(each) in _FORBIDDEN]


def strings_in(value: object) -> Iterator[str]:
    """All strings and keys of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def is_shown_as_text(run: Run, plain: str) -> None:
    """No rendering of the run obeys what it says; `plain` is the page of a run that says nothing bad."""
    for verbose in (False, True):
        lines = run_lines(run, Screen(), verbose=verbose)
        assert len(lines) > 10
        assert all(line.text.isprintable() for line in lines)
    assert all(line.text.isprintable() for line in ending_lines(run, None, Screen()))
    document = build(run)
    page = html.render(document)
    assert "qevilq" in page, "nothing of it is shown"
    found = Elements(page)
    assert not [name for name in found.names if "qevilq" in name]
    assert obeyed("".join(found.text), plain) == []
    charts = list(strings_in(json.loads(found.island)))
    assert len(charts) > 100
    assert obeyed("".join(charts), plain) == []
    assert obeyed(markdown.render(document), plain) == []
    assert obeyed(run.to_csv()) == []
    assert repr(run).isprintable()


def test_fuzz_of_any_string_or_key_is_shown_as_text(tmp_path: Path) -> None:
    file = tmp_path / "given.latlab.jsonl"
    file.write_text(as_text(few(1000)))
    plain = html.render(build(reader.read(file)))
    accepted: list[bool] = []

    @settings(
        max_examples=inputs(2, 0.0001),
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(TEXTS, min_size=5, max_size=12), st.integers(0, 2**32))
    def rendered(texts: list[str], seed: int) -> None:
        dice = random.Random(seed)
        endless = iter(lambda: f"{dice.choice(texts)}{dice.choice(PIECES)}<qevilq>", None)
        lines = [poisoned(line, endless, SHOWN) for line in few(1000)]
        file.write_text(as_text(lines))
        try:
            run = reader.read(file)
        except RunFileError as error:
            accepted.append(False)
            assert str(error).isprintable()  # noqa: PT017 - either outcome is right
            return
        accepted.append(True)
        is_shown_as_text(run, plain)

    rendered()
    assert sum(accepted) > len(accepted) / 2, "nearly nothing was read: this shows nothing"
