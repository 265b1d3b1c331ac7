"""Dependencies are pinned by version and hash; where they come from is for the one who installs to say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.some import some


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_requirement_is_pinned_with_a_hash(root: Path, name: str) -> None:
    text = (root / "requirements" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in some(filter(None, text.splitlines())):
        assert re.match(r"[a-z0-9._-]+==[^ ]+ .*--hash=sha256:[0-9a-f]{64}", line), line


def test_no_packaging_file_names_an_index_or_a_host(root: Path) -> None:
    files = [
        *(root / "requirements").iterdir(),
        root / "pyproject.toml",
        root / "Makefile",
        root / "Cargo.toml",
    ]
    files += (root / "tools").glob("*.sh")
    named = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"--(extra-)?index-url|find-links[ =]|https?://(?!rustup\.rs)", line)
        and "--no-emit" not in line
    ]
    assert not named


def test_what_runs_is_pinned_to_the_same_versions_as_what_is_tested(root: Path) -> None:
    def pins(name: str) -> set[str]:
        text = (root / "requirements" / name).read_text(encoding="utf-8")
        return set(re.findall(r"^([a-z0-9._-]+==\S+)", text, re.MULTILINE))

    assert pins("run.txt") <= pins("dev.txt")
