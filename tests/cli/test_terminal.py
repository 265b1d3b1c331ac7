"""Screens of all kinds, and what is seen while it measures."""

from __future__ import annotations

import io
import re

import pytest

from latlab.cli.terminal.header import machine_parts
from latlab.cli.terminal.progress import Plain, live_line, progress_on, status_text
from latlab.cli.terminal.screen import Line, Screen, say, screen_of
from latlab.nearest import nearest
from latlab.run.core import Plan
from latlab.run.model import Machine
from latlab.units import format_cpus

EVENT = {
    "event": "progress",
    "probe": "memory.load.dependent",
    "point": "1.5 MiB, 4k pages, page-local",
    "p50": 12.3,
    "unit": "ns",
    "elapsed_s": 3.0,
    "left_s": 31.0,
    "fraction": 0.41,
}
PLAN = Plan(probes=(), seconds=3.0, memory_bytes=0, written_bytes=0, cpus=1)


class File(io.StringIO):
    encoding = "utf-8"


class Terminal(File):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "said"),
    [(16_750_000_000, "15 GiB"), (1 << 30, "1 GiB"), ((1 << 30) - 1, "1023 MiB"), (None, "unknown memory")],
)
def test_memory_is_rounded_down(total: int | None, said: str) -> None:
    assert said in machine_parts(Machine({"memory": {"total_bytes": total}}))


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("unicode", [True, False], ids=["unicode", "ascii"])
def test_the_live_line_never_wraps(width: int, *, unicode: bool) -> None:
    line = live_line(EVENT, Screen(width=width, unicode=unicode))
    assert len(line) < width
    assert unicode or line.isascii()


def test_the_point_gives_way_before_the_estimate_and_the_time_left() -> None:
    line = live_line(EVENT, Screen(width=80))
    assert "memory.load.dependent" in line
    assert "p50 12.3 ns so far · at most 31 s left" in line
    assert "1.5 MiB, 4k pages, page-local" in live_line(EVENT, Screen(width=140))


def test_a_line_of_a_log_says_share_probe_point_estimate_and_time_left() -> None:
    where = "memory.load.dependent · 1.5 MiB, 4k pages, page-local"
    assert status_text(EVENT) == f" 41% · {where} · p50 12.3 ns so far · at most 31 s left"


def test_a_rate_is_shown_as_a_rate() -> None:
    event = EVENT | {"probe": "memory.bandwidth", "p50": 39.1e9, "unit": "bytes_per_s"}
    assert "p50 39.1 GB/s so far" in status_text(event)


def test_an_event_without_figures_is_shown_without_them() -> None:
    assert status_text({"event": "progress", "probe": "x"}) == "  0% · x · measuring"


def test_a_log_gets_a_line_now_and_then_not_one_an_event() -> None:
    stream = io.StringIO()
    plain = Plain(stream, Screen(width=80), PLAN)
    for _ in range(1000):
        plain.on_event(EVENT)
    assert stream.getvalue().count("\n") == 1


def test_a_quiet_display_shows_nothing() -> None:
    stream = Terminal()
    with progress_on(stream, plan=PLAN, quiet=True) as progress:
        progress.on_event(EVENT)
    assert stream.getvalue() == ""


def test_a_terminal_is_left_without_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with progress_on(stream, plan=PLAN) as progress:
        progress.on_event(EVENT)
    assert "memory.load.dependent" in stream.getvalue()
    # The last thing written erases the line.
    assert re.search(r"\x1b\[2K[^a-z]*$", stream.getvalue(), re.IGNORECASE)


def test_colour_is_for_terminals_whose_reader_did_not_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert screen_of(Terminal()).colour
    assert not screen_of(io.StringIO()).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not screen_of(Terminal()).colour


def test_text_is_the_same_with_and_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = Line("[bold]L1[/bold] :smile: 1.05 ns ±0.01").mark(0, 5, "bold")
    coloured, plain = Terminal(), File()
    say([line], coloured)
    say([line], plain)
    assert "\x1b[1m" in coloured.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue() == f"{line.text}\n"


@pytest.mark.parametrize(
    ("variables", "unicode"),
    [
        ({"LANG": "C"}, False),
        ({"LC_ALL": "POSIX"}, False),
        ({"LANG": "en_GB.UTF-8"}, True),
        ({"LC_ALL": "C.UTF-8"}, True),
        ({}, True),
        # What Python itself sets when it meets LANG=C.
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
    ],
)
def test_the_locale_decides_on_ascii(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, unicode: bool
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert screen_of(Terminal()).unicode is unicode


def test_a_stream_without_a_size_is_eighty_columns_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert screen_of(io.StringIO()).width == 80


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("memory.pok", "memory.poke"),
        ("poke", "memory.poke"),
        ("memory.laod.dependent", "memory.load.dependent"),
        ("strid*", "memory.stride"),
        ("xyzzy", None),
        ("*", None),
    ],
)
def test_the_nearest_name_is_found(word: str, found: str | None) -> None:
    ids = ["clock.read", "memory.load.dependent", "memory.poke", "memory.bandwidth", "memory.stride"]
    assert nearest(word, ids) == found


def test_numbers_are_written_as_ranges() -> None:
    assert format_cpus([0, 1, 2, 3, 8]) == "0-3,8"
    assert format_cpus([5]) == "5"
    assert format_cpus([]) == ""
