"""Every dependency is on a page with its version, and what is shipped has a licence that allows it."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from tools import dependencies
from tools.dependencies import LicenceError, permitted


@pytest.mark.parametrize(
    "expression",
    [
        *("MIT", "MIT/Apache-2.0", "Apache-2.0 / MIT", "MIT OR GPL-3.0-only", "GPL-2.0 OR MIT"),
        *("(MIT OR GPL-2.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception", "BSD-3-Clause AND 0BSD"),
    ],
)
def test_a_licence_that_can_be_chosen_is_permitted(expression: str) -> None:
    assert permitted(expression)


@pytest.mark.parametrize(
    "expression",
    [
        *("", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT", "MIT)", "MIT MIT", "OR", "proprietary"),
        *("GPL-2.0 WITH Classpath-exception-2.0", "Apache-2.0 WITH Other-exception", "LGPL-2.1 OR AGPL-3.0"),
    ],
)
def test_a_licence_that_asks_for_more_is_not(expression: str) -> None:
    assert not permitted(expression)


def test_the_page_names_every_locked_version(root: Path) -> None:
    page = (root / dependencies.PAGE).read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (\S+) \| (\S+) \|", page, re.MULTILINE))
    locked = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    crates = {(each["name"], each["version"]) for each in locked if "source" in each}
    pins = set()
    for name in ("run", "dev"):
        text = (root / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
        pins |= set(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE))
    assert len(crates) > 50
    assert len(pins) > 20
    assert crates | pins <= listed
    assert not re.search(r"https?://|www\.", page)


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Path:
    """A copy of what the page is made from, and of the page."""
    names = ["Cargo.lock", dependencies.PAGE, "tools/vendor-assets/package-lock.json"]
    names += [str(path.relative_to(root)) for path in (root / "requirements").glob("*.txt")]
    names += [str(path.relative_to(root)) for path in root.glob("crates/*/Cargo.toml")]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_page_can_be_made_without_cargo_when_no_version_is_new(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    page = (project / dependencies.PAGE).read_text(encoding="utf-8")
    assert page.endswith(dependencies.page(project))


def test_a_licence_that_is_not_allowed_and_none_at_all_are_refused(project: Path) -> None:
    page = project / dependencies.PAGE
    row = re.search(r"^\| msgspec \| (\S+) \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    changed(page, row[0], f"| msgspec | {row[1]} | GPL-3.0 |")
    with pytest.raises(LicenceError, match=rf"^msgspec {re.escape(row[1])}: GPL-3\.0$"):
        dependencies.page(project)
    changed(project / "requirements/run.txt", f"msgspec=={row[1]}", "no-such-package==1.0")
    with pytest.raises(LicenceError, match=r"^no-such-package 1\.0: no licence$"):
        dependencies.page(project)
