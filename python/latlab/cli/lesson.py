"""`latlab lesson [NAME]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latlab.cli.terminal.screen import say, screen_of, talk
from latlab.errors import UserError, named
from latlab.nearest import nearest
from latlab.paths import checked_folder, checked_output
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.lessons import Lesson, Result

_FORMS = (".html", ".htm", ".md", ".pdf", ".svg", ".ipynb", ".json")
#: Of the extra `latlab[export]`.
_PACKAGES = {".pdf": ("typst", "vl_convert"), ".svg": ("vl_convert",)}


@click.command("lesson")
@click.argument("name", metavar="[NAME]", required=False)
@click.argument("files", metavar="[--compare FILE...]", nargs=-1)
@click.option("--original", is_flag=True, help="Use the published sizes; prints first how long they take.")
@click.option("--small", is_flag=True, help="Use the smallest sizes: a few seconds.")
@click.option(
    "--plain", is_flag=True, help="Run only the plain-Python program, without the Rust probe: less evidence."
)
@click.option("--full", is_flag=True, help="Show all tables, pictures, programs and reasons.")
@click.option("--guess", is_flag=True, help="Ask for your guess first; then show guess, result and textbook.")
@click.option(
    "-o",
    "--out",
    "outs",
    metavar="FILE",
    multiple=True,
    help="Also write it to FILE.html, .md, .pdf, .svg (its first picture), .ipynb (a notebook) or "
    ".json (every figure, for --compare); repeatable. PDF and SVG need latlab[export].",
)
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON instead of the text.")
@click.option(
    "--compare", is_flag=True, help="Show results of many machines together, from their .json files."
)
@click.option(
    "--dir",
    "directories",
    metavar="DIR",
    multiple=True,
    help="Measure the disk of this directory; block-size compares two. [default: your cache folder]",
)
@click.option(
    "--url",
    "urls",
    metavar="URL",
    multiple=True,
    help="Also download this URL (lesson downloads; repeatable). Use only servers whose owner agrees.",
)
@click.option(
    "--file",
    "file",
    metavar="FILE",
    help="Use your own file where a lesson takes one (io-bottleneck: the text).",
)
def command(
    name: str | None,
    files: tuple[str, ...],
    outs: tuple[str, ...],
    directories: tuple[str, ...],
    urls: tuple[str, ...],
    **asked: Any,  # noqa: ANN401 - click hands over one dict
) -> None:
    """Run a textbook experiment on this machine; without NAME, list them.

    Each shows the question, the program, this machine's figures beside the
    published ones, the reason, and where the original misleads.

    \b
    Examples:
      latlab lesson                                   list the lessons
      latlab lesson small-files                       in under a minute
      latlab lesson small-files --guess -o lesson.html
      latlab lesson small-files --original --dir /data
      latlab lesson block-size --dir /data --dir /media/usb       two disks
      latlab lesson downloads --url https://example.org/a --url https://example.org/b
      latlab lesson small-files -o mine.json          on each machine of a class; then
      latlab lesson small-files --compare *.json      all of them together
    """
    from urllib.parse import urlsplit  # noqa: PLC0415 - not needed for --help

    from latlab import lessons, signals  # noqa: PLC0415 - see above

    if name is None:
        if any(asked.values()) or directories or urls or outs:
            raise UserError("which lesson? latlab lesson lists them")
        from latlab.cli.terminal.lesson_view import list_lines  # noqa: PLC0415 - see above

        known = [(each, lessons.named(each)) for each in lessons.LESSONS]
        say(list_lines(known, screen_of(sys.stdout)))
        return
    lesson = _named(name)
    if asked["original"] and asked["small"]:
        raise UserError("--original or --small, not both")
    places = [named("--dir", checked_folder, each) for each in directories]
    lessons.check_directories(lesson, places)
    lessons.checked_urls(lesson, urls)
    targets = [_target(path) for path in outs]
    as_json, full = asked.pop("as_json"), asked.pop("full")
    if asked.pop("compare"):
        if any(asked.values()) or directories or urls:
            raise UserError("--compare shows what was measured: only --out, --full and --json go with it")
        from latlab.lessons.classroom import compared  # noqa: PLC0415 - see above

        _tell(compared(name, files), targets, as_json=as_json, full=full)
        return
    if files:
        shown = clean(files[0], most=200)
        raise UserError(f"{shown!r}: list result files after --compare; to write one, use -o FILE")
    if urls:
        hosts = dict.fromkeys(urlsplit(url).netloc.rpartition("@")[2] for url in urls)
        talk(f" asks {', '.join(clean(host, most=80) for host in hosts)}, four times for each URL")
    if asked["file"] is not None:
        lessons.check_file(lesson, asked["file"])
    guess = _asked(lesson) if asked["guess"] else None
    if asked["original"] and asked["file"] is None:
        talk(f" {lesson.ORIGINAL_TAKES.announced}")
    with signals.raised():
        result = lessons.run(
            name,
            "original" if asked["original"] else "small" if asked["small"] else "default",
            plain=asked["plain"],
            directory=places,
            file=asked["file"],
            guess=guess,
            urls=urls,
            say=lambda text: talk(f" {text} ..."),
        )
    _tell(result, targets, as_json=as_json, full=full)


def _tell(result: Result, targets: list[Path], *, as_json: bool, full: bool) -> None:
    """Shows a result, and writes it in every form that was asked for."""
    if as_json:
        sys.stdout.write(result.to_json() + "\n")
    else:
        from latlab.cli.terminal.lesson_view import lesson_lines  # noqa: PLC0415 - see above

        say(lesson_lines(result, screen_of(sys.stdout), full=full))
    for target in targets:
        _write(result, target)
        talk(f"wrote {target}")


def _named(name: str) -> Lesson:
    from latlab import lessons  # noqa: PLC0415 - not needed for --help

    if name not in lessons.LESSONS:
        guess = nearest(name, lessons.LESSONS)
        hint = f"did you mean {guess}?" if guess else "latlab lesson lists them"
        raise UserError(f"there is no lesson {name!r}; {hint}")
    return lessons.named(name)


def _target(path: str) -> Path:
    from importlib.util import find_spec  # noqa: PLC0415 - not needed for --help

    # What a lesson found in minutes must not be lost for want of a package.
    target = checked_output(path, _FORMS)
    if not all(map(find_spec, _PACKAGES.get(target.suffix.lower(), ()))):
        raise UserError(f"{target.suffix} needs the extra: pip install 'latlab[export]'")
    return target


def _asked(lesson: Lesson) -> str:
    """The reader's guess, from standard input; the prompt goes to standard error, as all talk does."""
    if lesson.GUESS is None:
        raise UserError("this lesson has no question to guess: run it without --guess")
    hint = f"Published: {lesson.GUESS.textbook.text}."
    sys.stderr.write(f"{lesson.GUESS.question}\n{hint}\nyour guess: ")
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    if not sys.stdin.isatty():
        # Nobody typed the end of the line.
        sys.stderr.write(f"{typed}\n")
    return typed or "none"


def _write(result: Result, target: Path) -> None:
    from latlab.run.saving import save  # noqa: PLC0415 - not needed for --help

    form = target.suffix.lower()
    if form == ".json":
        save(target, f"{result.to_json()}\n".encode())
    elif form == ".ipynb":
        from latlab.lessons.ipynb import notebook  # noqa: PLC0415 - see above

        save(target, notebook(result).encode())
    else:
        from latlab.lessons.document import render  # noqa: PLC0415 - see above

        save(target, render(result, {".htm": "html"}.get(form, form[1:])))
