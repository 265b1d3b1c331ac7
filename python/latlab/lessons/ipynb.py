"""A lesson as a notebook that can be run: its programs, the lesson, its tables and its pictures."""

from __future__ import annotations

import json
from typing import Any

from latlab.lessons import named
from latlab.lessons.model import Result


def notebook(result: Result) -> str:
    """The notebook as the JSON of nbformat 4.5."""
    function = result.name.replace("-", "_")
    options = f'size="{result.size}"{", plain=True" if result.plain else ""}'
    asked = named(result.name).GUESS
    guess = []
    if asked is not None:
        options += ", guess=guess"
        reported = f"{asked.question} (Published: {asked.textbook.text}.)"
        guess = [_markdown(f"What do you expect? {reported}"), _code('guess = None  # a number, as in "12"')]
    cells = [
        _markdown(f"# {result.question}\n\nLesson `{result.name}` of latlab, after {result.origin}."),
        *guess,
        _code(f"import latlab\n\nfound = latlab.lessons.{function}({options})\nfound"),
        _markdown("On the machine where this notebook was made: " + " ".join(result.answer)),
        _markdown("A figure by its name, and all of them as plain data:"),
        _code("{name: cell.shown for name, cell in found.cells.items()}"),
        _markdown("Its page with the pictures, which are drawn here and ask no server:"),
        _code("from latlab.lessons.display import Page\n\nPage(found)"),
    ]
    for program in result.programs:
        cells.append(_markdown(f"What it runs: `{program.name}`"))
        if program.language == "python":
            # Without its last part, which is for the command line.
            cells.append(_code(program.text.partition('\nif __name__ == "__main__"')[0].rstrip()))
        else:
            cells.append(_markdown(f"```{program.language}\n{program.text.rstrip()}\n```"))
    exercises = "\n".join(f"- {each.question} {each.then}" for each in result.exercises)
    cells.append(_markdown(f"What do you expect?\n\n{exercises}"))
    cells.append(_markdown("What to try next:\n\n" + "\n".join(f"- {line}" for line in result.further)))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    body = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(body, ensure_ascii=False, indent=1) + "\n"


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
