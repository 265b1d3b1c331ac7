"""Every command of the tutorials runs, one after another, at smaller sizes than on the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pages import ROOT, shell_blocks

TUTORIALS = sorted(ROOT.glob("docs/tutorial/*.md"))

#: The command, which measures for as short as it can.
SMALLER = """\
#!{python}
import re, sys
from latlab.__main__ import main
given = sys.argv[1:]
if not given or given[0].startswith("-"):
    given = ["measure", *given]
if given[0] == "measure":
    given += ["--budget", "1", "--beside", "--no-report"]
    # Of all probes at once a busy machine reaches no level of the ladder in so short a time.
    given += [] if "--only" in given else ["--only", "memory.load.dependent"]
elif given[0] == "lesson" and "--compare" not in given:
    given += ["--small", "--plain"]
elif given[0] == "noise":
    given[1:] = ["0.5"]
elif given[0] == "doctor":
    given += ["--no-listen"]
elif given[0] == "explain" and "--prove" not in given:
    given.insert(1, "--no-limits")
sys.argv[1:] = given
main()
"""


def test_every_audience_has_its_tutorial_on_the_first_page() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    for page in TUTORIALS:
        audience = page.read_text(encoding="utf-8").partition(":")[0].removeprefix("# ")
        assert f"- {audience}: [" in index
        assert f"](tutorial/{page.name})" in index


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the tutorials of engineers are about Linux")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_command_of_a_tutorial_runs(
    page: Path, tmp_path: Path, own_home: Path, calibrated: Callable[[Path], None]
) -> None:
    calibrated(own_home / "data")
    programs = tmp_path / "bin"
    programs.mkdir()
    scripts = {"latlab": SMALLER.format(python=sys.executable), "make": "#!/bin/sh\n"}
    # Another tool that is not installed here.
    scripts |= {tool: "#!/bin/sh\n" for tool in ("fio", "perf") if shutil.which(tool) is None}
    for name, text in scripts.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    commands = "\n".join(shell_blocks(page))
    for shown, smaller in {"256M": "64M", "--runtime=5": "--runtime=1", "00_000": "0_000"}.items():
        commands = commands.replace(shown, smaller)
    result = subprocess.run(
        ["bash", "-euc", commands],
        cwd=place,
        # The interpreter that has latlab is the first python3.
        env=os.environ | {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
