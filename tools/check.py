"""Tests what changed and measures nothing: the last step of `make check`.

What changed is what differs from the last commit, or the last commit itself where nothing does. A crate's
unit tests run when one of its files changed, a folder of Python's tests when it or the package of its name
did; all of Python's quick tests when something that they share changed. Tests marked `slow` or `browser` are
left to `make test`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What decides about every test of Python.
SHARED = re.compile(r"pyproject\.toml|tests/[^/]+\.py|tests/data/.*|python/latlab/[^/]+\.py")


def lines(*command: str) -> list[str]:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def changed() -> list[str]:
    """Paths that differ from the last commit; those of the last commit where none does."""
    now = lines("git", "diff", "--name-only", "HEAD") + lines(
        "git", "ls-files", "--others", "--exclude-standard"
    )
    return now or lines("git", "show", "--format=", "--name-only", "HEAD")


def crates(paths: list[str]) -> list[str]:
    """The crates that these files belong to, by name."""
    named = {match[1] for path in paths if (match := re.match(r"crates/([^/]+)/", path))}
    # The binding has no tests of its own that run without an interpreter.
    return sorted(name for name in named - {"latlab-python"} if (ROOT / "crates" / name).is_dir())


def folders(paths: list[str]) -> list[str]:
    """The folders of Python's tests that these files are looked at by."""
    if any(SHARED.fullmatch(path) for path in paths):
        return ["tests"]
    named = {match[1] for path in paths if (match := re.match(r"(?:python/latlab|tests)/([^/]+)/", path))}
    return sorted(f"tests/{name}" for name in named if (ROOT / "tests" / name).is_dir())


def main() -> int:
    """Runs the tests; returns the first exit code that is not 0."""
    paths = changed()
    code = 0
    if packages := crates(paths):
        chosen = [word for name in packages for word in ("--package", name)]
        code = subprocess.run(
            ["cargo", "test", "--locked", "--lib", *chosen], cwd=ROOT, check=False
        ).returncode
    if tests := folders(paths):
        quick = ["-m", "not slow and not browser", "--numprocesses=2", "--dist=loadscope", "--quiet"]
        # No test at all is exit code 5: a folder may have slow ones only.
        python = subprocess.run([sys.executable, "-m", "pytest", *quick, *tests], cwd=ROOT, check=False)
        code = code or python.returncode % 5
    if not packages and not tests:
        print("no crate and no module of Python changed")
    return code


if __name__ == "__main__":
    sys.exit(main())
