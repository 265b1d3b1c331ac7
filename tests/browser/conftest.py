"""The report in a real browser: Debian's Chromium, driven without a window and without a network."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from latlab.report import html
from latlab.report.build import build
from latlab.report.probes import Probes, from_json
from latlab.run.run import Run, load

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: Charts of a short page, many more than a window has room for.
SHORT = 12
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed, so nobody looks at the page"
    )
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium): the page is not looked at")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, headless=True, args=_ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def words() -> Probes:
    probe = {
        "id": "memory.load.dependent",
        "title": "Dependent loads",
        "method": "A chain.",
        "method_version": 1,
    }
    return from_json(json.dumps([probe]))


@pytest.fixture(scope="session")
def page_file(root: Path, tmp_path_factory: pytest.TempPathFactory, words: Probes) -> Path:
    run = load(root / "tests/data/run-small.latlab.jsonl")
    return written(run, words, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def short_file(root: Path, tmp_path_factory: pytest.TempPathFactory, words: Probes) -> Path:
    """The first screen and SHORT charts, each in a section that is not folded, the steady stream's last."""
    whole = build(load(root / "tests/data/run-small.latlab.jsonl"), words)
    drawn = [own for own in whole.sections if len(own.figures) == 1]
    last = next(own for own in whole.sections if own.id == "storage_steady")
    few = replace(whole, sections=(*drawn[: SHORT - 1], last), chapters=())
    assert sum(len(own.figures) for own in few.sections) == SHORT
    path = tmp_path_factory.mktemp("short") / "report.html"
    path.write_text(html.render(few), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile_file(root: Path, tmp_path_factory: pytest.TempPathFactory, words: Probes) -> Path:
    folder = tmp_path_factory.mktemp("hostile-page")
    poison = poisoning(root)
    source = (root / "tests/data/run-small.latlab.jsonl").read_text(encoding="utf-8")
    target = folder / "run.latlab.jsonl"
    target.write_text(
        "".join(f"{poison.poisoned_line(line)}\n" for line in source.splitlines()), encoding="utf-8"
    )
    return written(load(target), words, folder)


def poisoning(root: Path) -> ModuleType:
    """The module that makes a run file hostile, shared with the tests of the report."""
    specification = importlib.util.spec_from_file_location("poison", root / "tests/report/poison.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def written(run: Run, probes: Probes, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(html.render(build(run, probes)), encoding="utf-8")
    return path


@pytest.fixture
def complaints() -> list[Any]:
    """What the page said on its console, threw, or asked the network for."""
    return []
