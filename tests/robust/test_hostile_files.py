"""Run files that are cut short, foreign, enormous or malicious: one line and code 2, or shown as text."""

from __future__ import annotations

import copy
import gzip
import itertools
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.fuzzing import inputs
from tests.poisoned import READ, as_text, few, poisoned
from tests.some import some

from latlab.cli.terminal.ending import ending_lines
from latlab.cli.terminal.run_view import run_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import RunFileError
from latlab.report import html, markdown
from latlab.report.build import build
from latlab.run import reader
from latlab.run.run import Run

if TYPE_CHECKING:
    from tests.robust.conftest import Place

READERS = (
    ("show",),
    ("show", "-v"),
    ("report", "-o", "out.html"),
    ("report", "-o", "out.md"),
    ("export", "-o", "out.csv"),
    ("chart",),
)


def made(name: str, good: bytes, folder: Path) -> Path:
    """One of the files that are no runs."""
    file = folder / f"{name}.latlab.jsonl"
    first, _, rest = good.partition(b"\n")
    if name == "folder":
        file.mkdir()
    elif name == "pipe":
        os.mkfifo(file)
    elif name == "link to itself":
        file.symlink_to(file)
    elif name == "larger than memory":
        with file.open("wb") as sparse:
            sparse.truncate(5 << 30)
    else:
        contents: dict[str, Callable[[], bytes]] = {
            "empty": lambda: b"",
            "cut in the header": lambda: first[:400],
            "picture": lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
            "compressed": lambda: gzip.compress(good),
            "zeros": lambda: bytes(1 << 20),
            "another program's": lambda: b'{"a": 1}\n',
            "nested without end": lambda: b"[" * 3_000_000,
            "not a number": lambda: good.replace(b'"p50":', b'"p50":NaN,"x":', 1),
            "infinite": lambda: good.replace(b'"p50":', b'"p50":1e999,"x":', 1),
            "a line of 40 MB": lambda: first + b"\n" + b"x" * (40 << 20),
            "a negative size": lambda: good.replace(b'"working_set_bytes":', b'"working_set_bytes":-'),
            "two runs": lambda: good + good,
            "without a header": lambda: rest,
        }
        file.write_bytes(contents[name]())
    return file


@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "cut in the header",
        "picture",
        "compressed",
        "zeros",
        "another program's",
        "nested without end",
        "not a number",
        "infinite",
        "a line of 40 MB",
        "a negative size",
        "two runs",
        "without a header",
        "folder",
        "pipe",
        "link to itself",
        "larger than memory",
    ],
)
def test_what_is_no_run_is_one_line_and_code_2_and_leaves_nothing(
    place: Place, small_run: Path, tmp_path: Path, name: str
) -> None:
    file = made(name, small_run.read_bytes(), tmp_path)
    for command, *options in READERS:
        result = place.called(command, str(file), *options)
        assert (result.returncode, result.stdout) == (2, ""), result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("latlab: ")
        assert result.stderr[:-1].isprintable()
    assert place.left() == []


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty", "/proc/self/mem"])
def test_a_device_is_not_read(place: Place, device: str) -> None:
    result = place.called("show", device)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1


def test_a_run_that_was_cut_short_is_shown_with_a_word_about_it(
    place: Place, small_run: Path, tmp_path: Path
) -> None:
    whole = small_run.read_bytes()
    (tmp_path / "part.latlab.jsonl").write_bytes(whole[: len(whole) // 2])
    result = place.called("show", str(tmp_path / "part.latlab.jsonl"))
    assert result.returncode == 0
    assert result.stderr == "latlab: the last line was cut short and is left out\n"


@pytest.fixture
def as_file(tmp_path: Path) -> Callable[[list[Any]], Path]:
    def write(lines: list[Any]) -> Path:
        file = tmp_path / "given.latlab.jsonl"
        file.write_text(as_text(lines))
        return file

    return write


EVIL = "\x1b]0;OWNED\x07\x1b[2J\x1b[31m\x9b31m\u202e\r\n</script><img src=x onerror=alert(1)>|`<b>"
_MEANT = READ | {"probe", "pages", "order", "operation", "profile"}


def test_what_a_terminal_or_a_browser_would_obey_is_shown_as_text(
    place: Place, as_file: Callable[[list[Any]], Path]
) -> None:
    evil = (f"{EVIL}{number}" for number in itertools.count())
    file = as_file([poisoned(line, evil, _MEANT) for line in few(1000)])
    for command, *options in READERS:
        result = place.called(command, str(file), *options)
        assert result.returncode == 0, result.stderr
        shown = result.stdout + result.stderr
        assert all(character.isprintable() or character == "\n" for character in shown)
    for name in ("out.md", "out.csv", "out.html"):
        text = (place.root / "here" / name).read_text(encoding="utf-8")
        assert not set(text) & set("\x1b\x07\x9b\u202e")
        # Markdown shows a sign behind a backslash as that sign.
        assert not re.search(r"(?<!\\)<img src=x", text) or name == "out.csv"


# -----------------------------------------------------------------------------------------------------------
# files that were a run, with anything in the place of anything

_ANYTHING: tuple[object, ...] = (
    *(None, True, 0, -1, 1e308, -1e308, 5e-324, 2**63, 2**64 - 1, 10**30, 10**400),
    *("", "x", "L1", "RAM", "\x1b[31m"),
    *([], {}, [[]], [{}], [None], ["x"], {"a": 1}),
    *([2, 1], [0, 0], [-1, 5], ["a", "b"], [1e308, 1e308], [[1, 2], [3, 4]]),
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:4] if isinstance(value, list) else ())
    )
    for name, item in inner:
        yield (*path, name)
        yield from places_in(item, (*path, name))


def damaged(lines: list[Any], dice: random.Random) -> list[Any]:
    """The lines with up to four values replaced, most of them where a file may hold any JSON."""
    out = list(lines)
    for _ in range(dice.choice((1, 1, 2, 4))):
        number = dice.choice([0, *(n for n, line in enumerate(lines) if line.get("findings"))])
        out[number] = copy.deepcopy(out[number])
        anywhere = dice.random() < 0.1
        paths = [p for p in places_in(out[number]) if anywhere or p[0] in {"machine", "findings"}]
        *way, last = dice.choice(paths)
        holder = out[number]
        for name in way:
            holder = holder[name]
        holder[last] = copy.deepcopy(dice.choice(_ANYTHING))
    return out


def test_fuzz_of_anything_in_the_place_of_anything_is_refused_or_shown(
    as_file: Callable[[list[Any]], Path],
) -> None:
    # An input costs as much as two hundred of the reader's own.
    tried = inputs(20, 1 / 200)
    accepted = 0
    for seed in range(tried):
        try:
            run = reader.read(as_file(damaged(few(1000), random.Random(seed))))
        except RunFileError:
            continue
        try:
            is_shown(run)
            if accepted % 25 == 0:
                document = build(run)
                markdown.render(document)
                html.render(document)
        except BaseException as error:
            error.add_note(f"failed with seed {seed}")
            raise
        accepted += 1
    assert accepted >= tried // 5, "nearly all were refused: nothing was shown"


def is_shown(run: Run) -> None:
    """Every rendering that is quick."""
    for verbose in (False, True):
        assert all(line.text.isprintable() for line in some(run_lines(run, Screen(), verbose=verbose)))
    ending_lines(run, None, Screen())
    run.to_csv()
    run.anonymous().to_json()
