"""The lessons: each experiment of the sources that latlab began from, run on this machine.

    import latlab
    latlab.lessons.small_files()                  # under a minute; the page in a notebook
    latlab.lessons.small_files(size="original")   # the published sizes
    latlab.lessons.run("small-files", plain=True) # standard library only: less evidence

**How a lesson is written.** One folder `experiments/<id>/`; its page is `docs/lessons/<id>.md`, its test
`tests/lessons/test_<id>.py`. What it measures is in the folder's `__init__.py`, what it says in
`lesson.md.j2`, whose form stands in :mod:`latlab.lessons.template`. The file has

- `QUESTION` (the source's opening question), `ORIGIN` (which source), `PROGRAMS` (files in `programs/`
  that are run and shown, the source's experiment first), `GUESS` or None, and `ORIGINAL_TAKES` (how long
  the published sizes take, and why); `TAKES_FILE = True` where the user may name a file (`bench.file`);
  `COMPARES_DISKS = True` where a second directory (`bench.second`);
  `wanted()` where something has to be installed for some rows, which yields what is not;
- `run(bench) -> Told`, the whole experiment. It asks `bench.size` for its sizes, and goes through

  1. the plain-Python program: in `programs/`, standard library only, as a Python user would write it. It is
     labelled `python` and is less evidence. Work that may fail goes through `bench.attempt("what it is",
     work)`, which returns None and keeps the reason: no room, no compiler, no permission; the rest of the
     lesson goes on; `bench.arms` returns times that are absent with that reason. Comparisons go through
     `bench.times`, which alternates the order, or `bench.rounds`, where one may fail and the others go on;
  2. the Rust probe: `native.probed(bench, "probe.glob")` returns a run, or None, with the reason;
  3. tables in the source's form (marked `*`), each cell with its unit, its spread, and the published
     figure exactly as it is printed there; a cell without a figure says why;
  4. reasons with causes that were measured here; `Misled` where the source misleads; `Answer` for each
     of its other questions; and what to try next.

Nothing in a lesson is imported at once but the standard library, `latlab.errors`, `latlab.text`,
`latlab.units` and this package: a test blocks the measuring core and runs every lesson without it. A program
in `programs/` also runs by itself, in a moment with `--small`. A ratio is made by `Times.over` from the times
that are shown. Published figures are quoted as published, even where they disagree with their own table.
What its source holds goes into the index of `tests/lessons/test_nothing_is_missing.py`.
"""

from __future__ import annotations

import functools
import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, Protocol, cast
from urllib.parse import urlsplit

from latlab import environment
from latlab.errors import UserError
from latlab.installed import version
from latlab.lessons.bench import Bench
from latlab.lessons.machine import machine
from latlab.lessons.model import SIZES, Asked, Guess, Original, Program, Reported, Result, Size
from latlab.paths import checked_folder
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.run.run import Run

__all__ = ["LESSONS", "Lesson", "Result", "named", "program_texts", "run"]

#: Every lesson is a folder with a template.
LESSONS: Final = tuple(
    sorted(
        folder.name.replace("_", "-")
        for folder in resources.files("latlab.lessons").joinpath("experiments").iterdir()
        if folder.joinpath("lesson.md.j2").is_file()
    )
)

_MOST_URLS: Final = 50
_MOST_DIRECTORIES: Final = 2
_LANGUAGES: Final = {".py": "python", ".c": "c", ".go": "go", ".rs": "rust"}


class Lesson(Protocol):
    """What a lesson's file offers."""

    QUESTION: str
    ORIGIN: str
    PROGRAMS: tuple[str, ...]
    GUESS: Guess | None
    ORIGINAL_TAKES: Original

    def run(self, bench: Bench) -> Reported:
        """The experiment."""


def named(name: str) -> Lesson:
    """The lesson of that name.

    Raises:
        UserError: there is none.
    """
    if name not in LESSONS:
        raise UserError(f"there is no lesson {clean(name, most=60)!r}; lessons: {', '.join(LESSONS)}")
    module = importlib.import_module(f"latlab.lessons.experiments.{name.replace('-', '_')}")
    return cast("Lesson", module)


def program_texts(lesson: Lesson) -> tuple[Program, ...]:
    """The text of what a lesson runs."""
    folder = resources.files("latlab.lessons").joinpath("programs")
    return tuple(
        Program(name, _LANGUAGES[PurePath(name).suffix], folder.joinpath(name).read_text(encoding="utf-8"))
        for name in lesson.PROGRAMS
    )


def run(
    name: str,
    size: Size = "default",
    *,
    plain: bool = False,
    directory: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    file: str | os.PathLike[str] | None = None,
    guess: str | None = None,
    urls: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
) -> Result:
    """Runs a lesson.

    Args:
        name: Of the lesson: one of `LESSONS`.
        size: `small` (seconds), `default` (under a minute) or `original` (the published sizes).
        plain: Only the plain-Python program, without the measuring core: less evidence.
        directory: Whose disk is measured; by default your cache folder's. `block-size` compares two.
        file: A file of yours instead of what the lesson makes; `io-bottleneck` counts its words.
        guess: What the reader expects, to be shown beside what was found.
        urls: Files of real servers, for the lesson `downloads`: only then does anything leave this machine.
        say: Called with what is being done now.

    Raises:
        UserError: no such lesson or size, or it takes no such directory, URL or file.
    """
    if size not in SIZES:
        raise UserError(f"there is no size {clean(size, most=60)!r}; sizes: {', '.join(SIZES)}")
    lesson = named(name)
    directories = [directory] if isinstance(directory, str | os.PathLike) else list(directory or ())
    check_directories(lesson, directories)
    asked = checked_urls(lesson, urls)
    if file is not None:
        check_file(lesson, file)
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    begin = time.perf_counter()
    if say is not None:
        if unusual := environment.said():
            say(f"measuring {unusual}")
        wanted: Callable[[], Iterable[str]] = getattr(lesson, "wanted", tuple)
        for line in wanted():
            say(f"not installed, {line}")
    first, second, *_ = *directories, None, None
    with Bench(size, plain=plain, directory=first, second=second, file=file, urls=asked, say=say) as bench:
        reported = lesson.run(bench)
        missing, found, facts = tuple(bench.missing), bench.run, machine(bench.directory)
    result = Result(
        name=name,
        question=lesson.QUESTION,
        origin=lesson.ORIGIN,
        size=size,
        plain=plain,
        tool=version(),
        started=started,
        seconds=time.perf_counter() - begin,
        machine=facts,
        programs=program_texts(lesson),
        missing=missing,
        doubts=() if found is None else tuple(_doubts(found)),
        run=found,
        **vars(reported),
    )
    return result if lesson.GUESS is None else _beside(result, lesson.GUESS, guess)


def _doubts(run: Run) -> Iterator[str]:
    """What distorts figures here, the gravest first; what is only good to know is left to `latlab doctor`."""
    for severity in ("warning", "caution"):
        for finding in run.header.doctor:
            # The load of the last minute is that of the lesson itself.
            if finding.severity == severity and finding.id != "load":
                yield f"{finding.title[:1].upper()}{finding.title[1:]}: {finding.effect}."


def checked_urls(lesson: Lesson, urls: Sequence[str]) -> tuple[str, ...]:
    """The URLs of the user, for a lesson that takes some.

    Raises:
        UserError: it takes none, there are too many, or one is not HTTP.
    """
    if urls and not getattr(lesson, "URLS", False):
        raise UserError("only the lesson downloads takes URLs")
    if len(urls) > _MOST_URLS:
        raise UserError(f"{len(urls)} URLs are too many; name {_MOST_URLS} at most")
    for url in urls:
        try:
            place = urlsplit(url)
            port = place.port
        except ValueError as error:
            raise UserError(f"{clean(url, most=80)!r} is not a URL: {error}") from None
        if place.scheme not in {"http", "https"} or not place.hostname or port == 0:
            raise UserError(
                f"{clean(url, most=80)!r} is not a URL that starts with http:// or https:// and a host"
            )
    return tuple(urls)


def check_directories(lesson: Lesson, directories: Sequence[str | os.PathLike[str]]) -> None:
    """Whether the lesson takes so many directories, and two are on two file systems.

    Raises:
        UserError: not so.
    """
    if len(directories) <= 1:
        return
    if not getattr(lesson, "COMPARES_DISKS", False):
        raise UserError("--dir: only block-size takes a second directory")
    if len(directories) > _MOST_DIRECTORIES:
        raise UserError(f"--dir: {len(directories)} directories are too many; block-size compares two")
    if len({Path(checked_folder(each)).stat().st_dev for each in directories}) == 1:
        raise UserError("--dir: both are on one file system; name a directory on another disk")


def check_file(lesson: Lesson, file: str | os.PathLike[str]) -> None:
    """Whether the lesson takes a file, and this one is there.

    Raises:
        UserError: not so.
    """
    path = Path(file)
    if not getattr(lesson, "TAKES_FILE", False):
        raise UserError("--file: this lesson makes its own files; io-bottleneck takes a file")
    if not path.is_file():
        raise UserError(f"--file: there is no file {clean(path, most=200)}")
    if path.stat().st_size == 0 or not os.access(path, os.R_OK):
        what = "is empty" if path.stat().st_size == 0 else "cannot be read"
        raise UserError(f"--file: {clean(path, most=200)} {what}")


def _beside(result: Result, asked: Guess, guess: str | None) -> Result:
    """With the source's figure beside the one here, where there is one, and with the reader's guess."""
    here = result[asked.cell]
    if guess is None and here.value is None:
        return result
    reported = "" if guess is None else clean(guess, most=40)
    return replace(result, asked=Asked(asked.question, reported, here.shown, asked.textbook.text))


def __getattr__(name: str) -> Callable[..., Result]:
    if name.replace("_", "-") in LESSONS:
        return functools.partial(run, name.replace("_", "-"))
    raise AttributeError(f"module 'latlab.lessons' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name.replace("-", "_") for name in LESSONS)})
