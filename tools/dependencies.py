"""The page of dependencies: names and versions from the lock files, licences of what is shipped.

A licence is asked of cargo, or of the installed package, when a version is new; the page keeps it. So the
page can be checked where neither is at hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path

ALLOWED = frozenset(
    (
        *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause"),
        *("BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"),
        *("Unicode-3.0", "Unicode-DFS-2016", "Unlicense", "Zlib"),
    )
)
"""What may be shipped with a program under MIT or Apache 2.0."""
PAGE = "docs/reference/dependencies.md"
_CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

Package = tuple[str, str]
"""Name and version."""


class LicenceError(Exception):
    """A dependency has no licence, or one that is not allowed."""


def page(root: Path) -> str:
    """The page.

    Raises:
        LicenceError: One line a dependency.
    """
    known = _known(root / PAGE)
    crates, tools = _crates(root)
    run, dev = _pins(root, "run"), _pins(root, "dev")
    bundles = _bundles(root)
    rows = [
        ("Rust, in the extension", _licensed(crates, known, "Rust", lambda: _of_cargo(root))),
        (
            "Python, at run time and for its extras",
            _licensed(run, known, "Python", lambda: _of_installed(run)),
        ),
        ("JavaScript, in the report", _licensed(bundles, {}, "JavaScript", lambda: bundles)),
    ]
    wrong = [
        f"{name} {version}: {said or 'no licence'}"
        for _, each in rows
        for name, version, said in each
        if not permitted(said)
    ]
    if wrong:
        raise LicenceError("; ".join(wrong))
    parts = [
        "# Dependencies\n",
        "From `Cargo.lock`, `requirements/` and `tools/vendor-assets/package-lock.json`. What is shipped or\n"
        "installed with latlab must have one of these licences, or `make lint` fails:\n"
        f"{', '.join(sorted(ALLOWED))}.\n",
    ]
    for title, each in rows:
        lines = "\n".join(f"| {name} | {version} | {said} |" for name, version, said in each)
        parts.append(f"## {title}\n\n| name | version | licence |\n| --- | --- | --- |\n{lines}\n")
    for title, packages in (
        ("Rust, for tests only", tools),
        ("Python, for development only", set(dev) - set(run)),
    ):
        lines = "\n".join(f"| {name} | {version} |" for name, version in sorted(packages))
        parts.append(f"## {title}\n\n| name | version |\n| --- | --- |\n{lines}\n")
    return "\n".join(parts)


def permitted(expression: str) -> bool:
    """Whether an SPDX expression (or an old one with `/`) lets us choose allowed licences alone."""
    words = re.findall(r"[()]|[^\s()/]+|/", expression)
    try:
        found = _any(words)
    except IndexError:
        return False
    return found and not words


def _any(words: list[str]) -> bool:
    found = _all(words)
    while words and words[0] in {"OR", "/"}:
        del words[0]
        # Both are read, whatever the first one is.
        found = _all(words) or found
    return found


def _all(words: list[str]) -> bool:
    found = _one(words)
    while words and words[0] == "AND":
        del words[0]
        found = _one(words) and found
    return found


def _one(words: list[str]) -> bool:
    word = words.pop(0)
    if word == "(":
        found = _any(words)
        return words.pop(0) == ")" and found
    if words and words[0] == "WITH":
        del words[0]
        word = f"{word} WITH {words.pop(0)}"
    return word in ALLOWED


def _licensed(
    packages: Iterable[Package],
    known: dict[tuple[str, str, str], str],
    language: str,
    ask: Callable[[], dict[Package, str]],
) -> list[tuple[str, str, str]]:
    """Rows with licences: those of the page, and those that are asked for because a version is new."""
    wanted = sorted(packages)
    said = {each: known[language, *each] for each in wanted if (language, *each) in known}
    if len(said) < len(wanted):
        said = {**ask(), **said}
    return [(name, version, said.get((name, version), "")) for name, version in wanted]


def _known(page: Path) -> dict[tuple[str, str, str], str]:
    """Licences by language, name and version."""
    found, language = {}, ""
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
        if line.startswith("## "):
            language = line[3:].partition(",")[0]
        elif row := re.fullmatch(r"\| (\S+) \| (\S+) \| (.+) \|", line):
            found[language, row[1], row[2]] = row[3]
    return found


def _crates(root: Path) -> tuple[set[Package], set[Package]]:
    """Crates of others: what the workspace's crates depend on, and what only their tests do."""
    locked = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    manifests = [tomllib.loads(path.read_text(encoding="utf-8")) for path in root.glob("crates/*/Cargo.toml")]
    own = {manifest["package"]["name"] for manifest in manifests}
    needs = {(each["name"], each["version"]): each.get("dependencies", []) for each in locked}
    direct = {name for manifest in manifests for name in _dependencies(manifest)} - own
    # A lock names both for a crate of the workspace: which are of its tests only, its manifest says.
    of_own = [
        need for (name, _), each in needs.items() if name in own for need in each if need.split()[0] in direct
    ]
    found: set[Package] = set()
    waiting = [*of_own]
    while waiting:
        name, *version = waiting.pop().split()
        for package, its in needs.items():
            if package[0] == name and package[1] in (version or [package[1]]) and package not in found:
                found.add(package)
                waiting += its
    others = {package for package in needs if package[0] not in own}
    return found, others - found


def _dependencies(manifest: dict[str, object]) -> Iterator[str]:
    tables = [manifest, *_tables(manifest.get("target"))]
    for table in tables:
        for kind in ("dependencies", "build-dependencies"):
            for name, said in _items(table.get(kind)):
                yield str(said.get("package", name)) if isinstance(said, dict) else name


def _tables(value: object) -> list[dict[str, object]]:
    return [each for _, each in _items(value) if isinstance(each, dict)]


def _items(value: object) -> list[tuple[str, object]]:
    return list(value.items()) if isinstance(value, dict) else []


def _pins(root: Path, name: str) -> list[Package]:
    text = (root / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return sorted(
        {(each[1], each[2]) for each in re.finditer(r"^([a-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE)}
    )


def _bundles(root: Path) -> dict[Package, str]:
    text = (root / "tools/vendor-assets/package-lock.json").read_text(encoding="utf-8")
    return {
        (path.rpartition("node_modules/")[2], each["version"]): each.get("license", "")
        for path, each in json.loads(text)["packages"].items()
        if path and not each.get("dev")
    }


def _of_cargo(root: Path) -> dict[Package, str]:
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LicenceError(f"cargo does not tell the licences of new crates: {done.stderr.strip()[-300:]}")
    return {
        (each["name"], each["version"]): each["license"] or "" for each in json.loads(done.stdout)["packages"]
    }


def _of_installed(packages: Iterable[Package]) -> dict[Package, str]:
    """By name: of a package that is pinned to two versions, one is installed."""
    found = {}
    for name, version in packages:
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        classified = [
            _CLASSIFIED.get(each.rpartition(" :: ")[2], "")
            for each in about.get_all("Classifier") or []
            if each.startswith("License :: ")
        ]
        said = [*(about.get_all("License-Expression") or []), *(about.get_all("License") or []), *classified]
        found[name, version] = next(filter(permitted, said), " ".join(said)[:60].strip())
    return found
