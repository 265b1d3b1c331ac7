"""What README and docs tell people to type exists, and what they point to is there."""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path

import click
import pytest
from tests import calling
from tests.pages import PAGES, ROOT, lesson_of, python_blocks, run_python, shell_blocks
from tests.some import some

import latlab as package
from latlab.cli.main import COMMANDS, group


def commands(program: str) -> list[tuple[str, str]]:
    """Every line of every block that starts `program`, with the page that shows it."""
    found = []
    for page in PAGES:
        for block in shell_blocks(page):
            for line in block.replace("\\\n", " ").splitlines():
                text = (
                    re.sub(r"^\$ ", "", line.strip()).split(" #")[0].split(" | ")[0].split(" > ")[0].strip()
                )
                if re.match(rf"(\S*/)?{program}( |$)", text):
                    found.append((str(page.relative_to(ROOT)), text))
    return sorted(set(found))


@functools.cache
def help_of(*words: str) -> str:
    """What `latlab WORDS --help` prints."""
    reported = calling.called([*words, "--help"], ROOT, os.environ)
    assert reported.returncode == 0, reported.stderr
    return reported.stdout


def parts_of(name: str) -> Collection[str]:
    """The commands within a command: `label` and `rm` of `latlab runs`."""
    found = group.get_command(click.Context(group), name)
    return found.commands if isinstance(found, click.Group) else ()


def test_a_latlab_command_in_the_docs_has_the_options_that_it_shows() -> None:
    tried = 0
    for page, line in some(commands("latlab"), 50):
        words = shlex.split(line)[1:]
        named = [word for word in words if not word.startswith("-")][:2]
        named[1:] = [word for word in named[1:] if word in parts_of(named[0])]
        # Options without a command are those of measure.
        text = help_of(*named) if named or words in (["--help"], ["--version"]) else help_of("measure")
        for option in (word.split("=")[0] for word in words if word.startswith("-")):
            tried += 1
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text), f"{page}: {line}: {option}"
    assert tried > 50


#: The tests on a page are run by pytest (tests/explain/test_pytest_plugin.py).
PAGES_OF_RUNS = [
    page
    for page in PAGES
    if python_blocks(page)
    and lesson_of(page) is None
    and "latlab_gate" not in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES_OF_RUNS, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_on_a_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = package.load(ROOT / "tests/data/run-small.latlab.jsonl")

    def measured(**options: object) -> package.Run:
        inspect.signature(real_measure).bind(**options)
        return run

    real_measure = package.measure
    monkeypatch.setattr(package, "measure", measured)
    monkeypatch.setattr(package, "load", lambda name: run)
    run_python(page)


def test_a_make_target_in_the_docs_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    named = {
        word
        for page in PAGES
        for word in re.findall(r"`make ([a-z0-9-]+)[^`]*`", page.read_text(encoding="utf-8"))
        + [
            line.split()[1]
            for block in shell_blocks(page)
            for line in block.splitlines()
            if re.match(r"make \w", line)
        ]
    }
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_relative_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    dead = [
        link
        for link in links
        if not re.match(r"[a-z]+:", link) and not (page.parent / link).resolve().exists()
    ]
    assert not dead


def test_the_pages_of_the_method_explain_in_few_words() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/method/*.md")))
    without_tables = re.sub(
        r"^<!-- table .*?^<!-- /table -->$|^\|[^\n]*$", "", pages, flags=re.DOTALL | re.MULTILINE
    )
    assert 4_000 < len(without_tables.split()) <= 8_000


def test_every_path_in_the_architectures_tree_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text tree\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert tree is not None
    named = [line.split()[0] for line in tree.group(1).splitlines() if line.strip()]
    missing = [path for path in named if "<" not in path and not (ROOT / path).exists()]
    assert not missing


def test_every_command_has_its_page_in_the_reference() -> None:
    reference = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    for name in some(COMMANDS):
        assert re.search(rf"^  {name}  ", help_of().partition("Commands:")[2], re.MULTILINE)
        assert f"## latlab {name}\n" in reference
