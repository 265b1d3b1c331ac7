"""Imports go one way along the flow of ARCHITECTURE.md: what measures knows nothing of what reads."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Each may import those to its left, never those to its right.
CRATES = [
    "latlab-clock",
    "latlab-machine",
    "latlab-stats",
    "latlab-record",
    "latlab-observe",
    "latlab-harness",
    "latlab-probes",
    "latlab-python",
]
MODULES = [
    "latlab._core",
    "latlab.errors",
    "latlab.text",
    "latlab.units",
    "latlab.stats",
    "latlab.run",
    "latlab.doctor",
    "latlab.charts",
    "latlab.report",
    "latlab.notebook",
    "latlab.cli",
]


def test_a_crate_depends_only_on_crates_before_it_in_the_flow(root: Path) -> None:
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    packages = json.loads(metadata.stdout)["packages"]
    assert sorted(package["name"] for package in packages) == sorted(CRATES)
    against = [
        f"{package['name']} -> {dependency['name']}"
        for package in packages
        for dependency in package["dependencies"]
        if dependency["name"] in CRATES
        and dependency["kind"] != "dev"
        and CRATES.index(dependency["name"]) >= CRATES.index(package["name"])
    ]
    assert not against


def test_a_python_module_imports_only_modules_before_it_in_the_flow(root: Path) -> None:
    against = []
    for path in sorted((root / "python/latlab").rglob("*.py")):
        layer = layer_of(module_name(path, root))
        if layer is None:
            continue
        for imported in imports_of(path, root):
            target = layer_of(imported)
            if target is not None and MODULES.index(target) > MODULES.index(layer):
                against.append(f"{path.relative_to(root)} imports {imported}")
    assert not against


def test_every_python_module_has_its_place_in_the_flow(root: Path) -> None:
    # The package itself is the public face of them all; the worker stands alone in a bare interpreter.
    outside = {"latlab", "latlab.worker", "latlab.__main__"}
    names = {module_name(path, root) for path in (root / "python/latlab").rglob("*.py")}
    assert {name for name in names if layer_of(name) is None} <= outside


def test_the_worker_imports_nothing_of_latlab_but_the_core(root: Path) -> None:
    worker = root / "python/latlab/worker.py"
    ours = {name for name in imports_of(worker, root) if name.split(".")[0] == "latlab"}
    assert ours <= {"latlab._core"}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str | None:
    return next((layer for layer in MODULES if module == layer or module.startswith(layer + ".")), None)


def imports_of(path: Path, root: Path) -> Iterator[str]:
    """Everything that a file imports, also inside functions and for type checking only."""
    package = module_name(path, root).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
