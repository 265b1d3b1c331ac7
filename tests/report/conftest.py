from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from latlab.report import probes
from latlab.report.build import build
from latlab.report.document import Document
from latlab.report.probes import Probes
from latlab.run.run import Run, load


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture(scope="session")
def empty(run: Run) -> Run:
    """A run that was stopped before its first record."""
    return Run(run.header, (), None)


@pytest.fixture(scope="session")
def hostile(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same run with every free string made hostile."""
    source = root / "tests/data/run-small.latlab.jsonl"
    target = tmp_path_factory.mktemp("hostile") / "run.latlab.jsonl"
    poison = poisoning(root)
    lines = [poison.poisoned_line(line) for line in source.read_text(encoding="utf-8").splitlines()]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load(target)


def poisoning(root: Path) -> ModuleType:
    """The module that makes a run file hostile."""
    specification = importlib.util.spec_from_file_location("poison", root / "tests/report/poison.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def described() -> Probes:
    """Fixed words of the probes, so that the golden report changes only with the report."""
    method = "Each address is the value of the load before it.\n\nEvery line is visited once in a cycle."
    entries = [
        {"id": "memory.load.dependent", "title": "Dependent loads", "method": method, "method_version": 1},
        {"id": "memory.poke", "title": "Random pokes", "method": "One by one.", "method_version": 2},
        {
            "id": "network.latency",
            "title": "Random reads",
            "method": "Not part of the run.",
            "method_version": 1,
        },
    ]
    return probes.from_json(json.dumps(entries))


@pytest.fixture(scope="session")
def document(run: Run, described: Probes) -> Document:
    return build(run, described)


@pytest.fixture(scope="session")
def empty_document(empty: Run, described: Probes) -> Document:
    return build(empty, described)


@pytest.fixture(scope="session")
def hostile_document(hostile: Run, described: Probes) -> Document:
    return build(hostile, described)
