"""Writes what is made from code and from `benches/results`; with `--check`, says what of it is out of date.

The extension and the package must be built: `make generate`, `make lint`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import click

import latlab
from latlab import _core

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import dependencies, findings, tables  # noqa: E402 - found from the project's folder

NOTE = "<!-- Made by tools/generate.py; edit the code that says this. -->\n"


def schema() -> str:
    """The JSON Schema of run files, from the Rust types that write them."""
    return _core.schema_json()


def lesson_schema() -> str:
    """The JSON Schema of what a lesson writes, from the Python types that it is made of."""
    from latlab.lessons.schema import schema_json  # noqa: PLC0415 - the rest can be made when lessons are broken

    return schema_json()


def typed_findings() -> str:
    """What probes conclude as structs of msgspec, from the same schema."""
    return findings.module(json.loads(_core.schema_json()))


def commands() -> str:
    """Every command's help text, as the command prints it."""
    from latlab.cli.main import COMMANDS, group  # noqa: PLC0415 - the schema can be written when the commands are broken

    parts = [
        NOTE,
        "# Commands\n",
        _fenced(_help()),
        "Exit codes: 0; 1 when something failed; 2 for a mistake in what was",
    ]
    parts[-1] += " asked, with one line that says what; 130 when interrupted.\n"
    for name in COMMANDS:
        parts += [f"## latlab {name}\n", _fenced(_help(name))]
        own = group.get_command(click.Context(group), name)
        for part in own.commands if isinstance(own, click.Group) else ():
            parts += [f"### latlab {name} {part}\n", _fenced(_help(name, part))]
    return "\n".join(parts)


def probes() -> str:
    """Every probe as it describes itself."""
    parts = [
        NOTE,
        "# Probes\n",
        "In the order in which they run. What each says here, it says of itself in its source file.\n",
    ]
    for probe in json.loads(_core.list_probes()):
        facts = [
            ("unit", {"ns": "nanoseconds", "bytes_per_s": "bytes a second"}[probe["unit"]]),
            ("counted as", probe["convention"]),
            ("needs", "; ".join(probe["needs"]) or "nothing special"),
            ("touches", "; ".join(probe["touches"])),
            (
                "with `--gentle`",
                "left out: it saturates what others use" if probe["saturates"] else "measured",
            ),
            ("version of the method", str(probe["method_version"])),
        ]
        table = "\n".join(f"| {name} | {text} |" for name, text in facts if text)
        parts += [
            f"## {probe['id']}\n",
            f"**{probe['question']}** ({probe['title']})\n",
            probe["method"].strip() + "\n",
            f"| | |\n| --- | --- |\n{table}\n",
        ]
    return "\n".join(parts)


def python_names() -> str:
    """Every public name of the package with the first line of its docstring."""
    rows = []
    for name in latlab.__all__:
        item = getattr(latlab, name)
        shown = f"{name}(...)" if inspect.isfunction(item) else name
        rows.append(f"| `latlab.{shown}` | {(inspect.getdoc(item) or '').partition(chr(10))[0]} |")
    return "\n".join(
        [
            NOTE,
            "# The Python package\n",
            "These names are public. Each has a docstring: `help(latlab.measure)`."
            " Importing the package loads nothing heavy.\n",
            "| name | what it is |\n| --- | --- |",
            *rows,
            "\nStatistics of samples of your own are in `latlab.stats`.\n",
        ]
    )


def licences() -> str:
    """What latlab is made with, by version and licence."""
    return f"{NOTE}\n{dependencies.page(ROOT)}"


# Each file and what makes it.
FILES: list[tuple[str, Callable[[], str]]] = [
    ("schema/run.v2.json", schema),
    ("schema/lesson.v1.json", lesson_schema),
    (findings.PATH, typed_findings),
    ("docs/reference/commands.md", commands),
    ("docs/reference/probes.md", probes),
    ("docs/reference/python.md", python_names),
    (dependencies.PAGE, licences),
]


def document(name: str) -> str:
    """This document, its tables filled."""
    return tables.filled((ROOT / name).read_text(encoding="utf-8"))


def _help(*arguments: str) -> str:
    """A help text at a fixed width, whoever asks from wherever."""
    from latlab.cli.main import run  # noqa: PLC0415 - see commands

    plain = {"COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    with mock.patch.dict(os.environ, plain), contextlib.redirect_stdout(io.StringIO()) as reported:
        code = run([*arguments, "--help"])
    if code != 0:
        raise RuntimeError(f"latlab {' '.join(arguments)} --help ended with {code}")
    return reported.getvalue()


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def main(arguments: list[str]) -> int:
    """Writes or checks; returns the exit code."""
    stale = []
    for name, make in FILES + [(name, functools.partial(document, name)) for name in tables.documents(ROOT)]:
        path = ROOT / name
        try:
            text = make()
        except (dependencies.LicenceError, tables.TableError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; make generate writes them again", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
