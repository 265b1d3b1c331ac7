"""Every command of docs/how-to/gate-in-ci.md runs as it stands, with run files in place of measuring."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types are another package
from tests.pages import ROOT, shell_blocks

from latlab.compare.gate import read

PAGE = ROOT / "docs/how-to/gate-in-ci.md"

#: The command; where it measures, a copy of a run is kept as it would be.
INSTEAD = """\
#!{python}
import inspect, json, os, sys, time
from pathlib import Path
from latlab.__main__ import main
given = sys.argv[1:]
if given[0] == "measure":
    from latlab.cli.measure import command
    asked = command.make_context("measure", given[1:]).params
    header, rest = Path({run!r}).read_text(encoding="utf-8").split("\\n", 1)
    own = f"run-{{time.time_ns()}}"
    settings = json.loads(header)["settings"] | {{"profile": asked["profile"]}}
    header = json.dumps(json.loads(header) | {{"id": own, "settings": settings}})
    runs = Path.home() / ".local/share/latlab/runs"
    runs.mkdir(parents=True, exist_ok=True)
    target = Path(asked["out"] or runs / f"{{own}}.latlab.jsonl")
    target.write_text(f"{{header}}\\n{{rest}}", encoding="utf-8")
else:
    main()
"""


def blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the page's shell is that of Linux")
def test_every_command_of_the_page_runs(tmp_path: Path, own_home: Path, root: Path) -> None:
    programs, place = tmp_path / "bin", tmp_path / "place"
    programs.mkdir()
    place.mkdir()
    run = str(root / "tests/data/run-small.latlab.jsonl")
    (programs / "latlab").write_text(INSTEAD.format(python=sys.executable, run=run), encoding="utf-8")
    (programs / "latlab").chmod(0o755)
    summary = tmp_path / "summary.md"
    known = {name: value for name, value in os.environ.items() if name != "XDG_DATA_HOME"}
    known |= {"HOME": str(own_home), "GITHUB_STEP_SUMMARY": str(summary)}
    known |= {"PATH": f"{programs}:{os.environ['PATH']}"}
    (workflow,) = (yaml.safe_load(block) for block in blocks("yaml"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert len(steps) == 2
    for command in (*shell_blocks(PAGE), *steps):
        result = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=place,
            env=known,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr[-2000:]
    assert re.match(r"Passed: \d+ held\.\n", result.stdout)
    assert summary.read_text(encoding="utf-8").count("| held |") >= 5


def test_the_gate_file_of_the_page_is_one(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "gates.toml").write_text(text, encoding="utf-8")
    gates = read(tmp_path / "gates.toml")
    assert (len(gates.gates), gates.undecided) == (4, "measure")
    assert {each.level for each in gates.gates} == {"error", "warn"}
