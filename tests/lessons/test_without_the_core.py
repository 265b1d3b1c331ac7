"""Every lesson without the measuring core, and without what only the core's runs need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.pages import ROOT
from tests.some import some

from latlab import lessons

#: All in one process, and what starts many programs in one round: a spread is no matter of the core.
PROGRAM = """
import contextlib, dataclasses, sys
sys.modules['latlab._core'] = None
from latlab.cli.main import run
from latlab.lessons.experiments import downloads, small_files
from latlab.lessons.experiments.io_bottleneck.workshop import PLANS
PLANS['small'] = dataclasses.replace(PLANS['small'], rounds=1)
downloads.PLANS['small'] = dataclasses.replace(downloads.PLANS['small'], rounds=1, sweep=1)
small_files.PAIRS['small'] = tuple(dataclasses.replace(pair, rounds=1) for pair in small_files.PAIRS['small'])
folder, answers, *names = sys.argv[1:]
for name in names:
    with open(f'{answers}/{name}', 'w', encoding='utf-8') as file, contextlib.redirect_stdout(file):
        code = run(['lesson', name, '--small', '--plain', '--dir', folder, '--json'])
    heavy = {'altair', 'msgspec', 'latlab.run.model'} & set(sys.modules)
    assert not (code or heavy), (name, code, heavy)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each lesson found."""
    measured, answers = tmp_path_factory.mktemp("measured"), tmp_path_factory.mktemp("answers")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(measured), str(answers), *lessons.LESSONS],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    assert not list(measured.iterdir())
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons.LESSONS)
def test_it_runs_without_the_measuring_core(answers: Path, name: str) -> None:
    body: dict[str, Any] = json.loads((answers / name).read_text(encoding="utf-8"))
    assert body["plain"] is True
    cells = [cell for table in body["tables"] for row in table["rows"] for cell in row["cells"].values()]
    # On a busy machine one that rounds cannot tell from another is empty, and so is what follows from it.
    assert all(cell["value"] is not None or cell["why"] for cell in cells)
    assert sum(cell["value"] is not None for cell in cells) >= len(cells) / 5
    assert any("--plain" in part["why"] for part in body["missing"])


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons.LESSONS)
def test_it_has_the_figures_that_its_page_shows(answers: Path, name: str) -> None:
    tables = json.loads((answers / name).read_text(encoding="utf-8"))["tables"]
    page = (ROOT / "docs/lessons" / f"{name}.md").read_text(encoding="utf-8")
    for shown in some(re.findall(r'found\["(.+?)"\]', page)):
        table, row, *column = shown.split(".")
        (rows,) = (each["rows"] for each in tables if each["name"] == table)
        (cells,) = (each["cells"] for each in rows if each["name"] == row)
        assert column[0] in cells if column else len(cells) == 1
