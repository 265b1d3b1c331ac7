"""Every command of docs/how-to/compare-programs.md runs as it stands, on small programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pages import ROOT, shell_blocks

PAGE = ROOT / "docs/how-to/compare-programs.md"
SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the page is about Linux")
def test_every_command_of_the_page_runs(
    tmp_path: Path, latlab: str, own_home: Path, calibrated: Callable[[Path], None]
) -> None:
    calibrated(own_home / "data")
    setting, seen = tmp_path / "enabled", tmp_path / "seen"
    setting.write_text("always [madvise] never\n", encoding="ascii")
    programs = dict.fromkeys(("old", "new"), "#!/bin/sh\n")
    programs["prog"] = f"#!/bin/sh\ncat {setting} >> {seen}\n"
    builds = {f"{build}-build/latlab": "#!/bin/sh\n" for build in programs if build != "prog"}
    for name, text in (programs | builds).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    blocks = shell_blocks(PAGE)
    for block in blocks:
        assert "latlab duet" in block
        # The page's folders have the names of its programs; a setting of this machine is a file here.
        commands = re.sub(r"\b(old|new)/bin/latlab", r"\1-build/latlab", block).replace(SETTING, str(setting))
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands.replace("latlab duet", "latlab duet --pairs 3")],
            cwd=tmp_path,
            env=os.environ | {"PATH": f"{Path(latlab).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "\n3 pairs in random order on CPU" in done.stdout
    assert len(blocks) == 4
    # One warm-up run of each, then three pairs; the setting is then as it was before.
    last = seen.read_text(encoding="ascii").split()[-8:]
    assert last[:2] == ["always", "never"]
    assert all(set(last[place : place + 2]) == {"always", "never"} for place in range(2, 8, 2))
    assert setting.read_text(encoding="ascii") == "madvise\n"
