"""Schema and reference pages are made from the code, tables from results; a change shows in their diff."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_generator_would_change_nothing(root: Path) -> None:
    check = subprocess.run(
        [sys.executable, "tools/generate.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr
