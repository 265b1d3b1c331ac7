"""Imports go one way along the flow of ARCHITECTURE.md: what measures knows nothing of what reads."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.rust_imports import Crate

# Each may import those to its left, never those to its right.
CRATES = [
    "latlab-stats",
    "latlab-clock",
    "latlab-machine",
    "latlab-record",
    "latlab-stages",
    "latlab-perf",
    "latlab-observe",
    "latlab-explain",
    "latlab-storage",
    "latlab-net",
    "latlab-harness",
    "latlab-probes-shared",
    "latlab-probes-testing",
    "latlab-probes-compute",
    "latlab-probes-kernel",
    "latlab-probes-storage",
    "latlab-probes-network",
    "latlab-probes",
    "latlab-python",
]
MODULES = [
    "latlab._core",
    "latlab.environment",
    "latlab.errors",
    "latlab.installed",
    "latlab.text",
    "latlab.masking",
    "latlab.nearest",
    "latlab.paths",
    "latlab.signals",
    "latlab.units",
    "latlab.stages",
    "latlab.run",
    "latlab.findings",
    "latlab.stats",
    "latlab.doctor",
    "latlab.view",
    "latlab.topics",
    "latlab.compare",
    "latlab.fleet",
    "latlab.charts",
    "latlab.predict",
    "latlab.report",
    "latlab.explain",
    "latlab.elsewhere",
    "latlab.duet",
    "latlab.pytest_plugin",
    "latlab.notebook",
    "latlab.lessons",
    "latlab.cli",
]


# Against the flow, each for a reason, and only inside the function that needs it.
SEAMS = {
    ("latlab.run.conduct", "latlab.doctor"): "a run file's header holds what the doctor found before the run",
    ("latlab.run.measure", "latlab.notebook"): "progress goes into the cell when there is one",
    ("latlab.run.model", "latlab.notebook"): "a record displays itself in a cell",
    ("latlab.run.run", "latlab.notebook"): "a run displays itself in a cell",
}


def test_a_crate_depends_only_on_crates_before_it_in_the_flow(root: Path) -> None:
    manifests = [tomllib.loads(path.read_text(encoding="utf-8")) for path in root.glob("crates/*/Cargo.toml")]
    assert sorted(manifest["package"]["name"] for manifest in manifests) == sorted(CRATES)
    against = [
        f"{name} -> {dependency}"
        for name, dependencies in ((m["package"]["name"], dependencies_of(m)) for m in manifests)
        for dependency in dependencies
        if dependency in CRATES and CRATES.index(dependency) >= CRATES.index(name)
    ]
    assert not against


def test_files_of_a_crate_import_one_way(root: Path) -> None:
    assert [circle for name in CRATES for circle in Crate(root / "crates" / name).circles()] == []


def test_a_circle_between_files_is_seen_through_what_hands_on(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "upper").mkdir(parents=True)
    files = {
        "lib.rs": "mod lower;\nmod upper;\npub use upper::{Inner as Handed, Own};\n",
        "lower.rs": "use crate::Handed; // crate::Own\n#[cfg(test)]\nmod tests {\n    use crate::Own;\n}\n",
        "upper.rs": "mod inner;\npub use inner::Inner;\npub struct Own(super::lower::Low);\n",
        "upper/inner.rs": "use std::fmt;\npub struct Inner;\n",
    }
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    crate = Crate(tmp_path)
    assert crate.imports() == {
        (): set(),
        ("lower",): {("upper", "inner")},
        ("upper",): {("lower",)},
        ("upper", "inner"): set(),
    }
    [circle] = crate.circles()
    assert {"::".join(file) for file in circle} == {"lower", "upper"}
    # A part of a file may use what the file has.
    (source / "lower.rs").write_text("pub struct Low;\n", encoding="utf-8")
    (source / "upper/inner.rs").write_text("use super::Own;\npub struct Inner;\n", encoding="utf-8")
    assert Crate(tmp_path).circles() == []


def test_a_python_module_imports_only_modules_before_it_in_the_flow(root: Path) -> None:
    against = []
    for path in sorted((root / "python/latlab").rglob("*.py")):
        module = module_name(path, root)
        layer = layer_of(module)
        if layer is None:
            continue
        for imported, at_once in imports_of(path, root):
            target = layer_of(imported)
            if target is None or MODULES.index(target) <= MODULES.index(layer):
                continue
            if at_once or (module, target) not in SEAMS:
                against.append(f"{module} imports {imported}")
    assert not against


def test_every_python_module_has_its_place_in_the_flow(root: Path) -> None:
    # The package itself is the public face of them all; the worker stands alone in a bare interpreter.
    outside = {"latlab", "latlab.worker", "latlab.__main__"}
    names = {module_name(path, root) for path in (root / "python/latlab").rglob("*.py")}
    assert {name for name in names if layer_of(name) is None} <= outside


def test_the_worker_imports_nothing_of_latlab_but_the_core(root: Path) -> None:
    worker = root / "python/latlab/worker.py"
    ours = {name for name, _ in imports_of(worker, root) if name.split(".")[0] == "latlab"}
    assert ours <= {"latlab._core"}


def dependencies_of(manifest: dict[str, Any]) -> set[str]:
    """What a crate is linked with on any system; what only its tests use does not count."""
    systems = manifest.get("target", {}).values()
    return {name for part in [manifest, *systems] for name in part.get("dependencies", {})}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str | None:
    return next((layer for layer in MODULES if module == layer or module.startswith(layer + ".")), None)


def imports_of(path: Path, root: Path) -> Iterator[tuple[str, bool]]:
    """Everything that a file imports, and whether it does so as soon as it is imported itself."""
    package = module_name(path, root).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, at_once = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", at_once) for alias in node.names)
        at_once = at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        # What is no statement imports nothing.
        waiting += [(each, at_once) for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)]
