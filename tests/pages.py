"""The pages of the documentation, and the code that they show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)])


def shell_blocks(page: Path) -> list[str]:
    """Fenced blocks of shell commands."""
    return _blocks(page, "sh|console")


def python_blocks(page: Path) -> list[str]:
    """Fenced blocks of Python."""
    return _blocks(page, "python")


def lesson_of(page: Path) -> str | None:
    """The lesson that a page's Python runs."""
    named = re.search(r"latlab\.lessons\.(\w+)\(", "".join(python_blocks(page)))
    return None if named is None else named[1].replace("_", "-")


def run_python(page: Path) -> None:
    """Runs the Python of a page, block after block."""
    names: dict[str, object] = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), names)


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```(?:{language})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
