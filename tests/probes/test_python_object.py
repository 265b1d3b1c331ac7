"""The programs of `python.object` in the interpreter of the tests; the probe by the installed command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "crates/latlab-probes-compute/src/python/programs"
LITERAL = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def of_turns(n: int, elements: int) -> int:
    """What a program returns that fills its lists with the number of the turn."""
    if elements <= 100:
        last = n // 16 - 1
        return 16 * last + 2 * elements + last
    return 2 * (n - 1) + elements + (n - 1)


def of_literals(n: int, elements: int) -> int:
    if elements <= 100:
        return 16 * (elements - 1) + 2 * elements + (n // 16 - 1)
    return (elements - 1) + elements + (n - 1)


# Program: what `n` operations must give, the sizes tried, the numbers of operations tried.
EXPECTED: dict[str, tuple[Callable[[int, int], int], tuple[int, ...], tuple[int, ...]]] = {
    "loop": (lambda n, _: n // 16, (0,), (16, 1600)),
    "attribute": (lambda n, _: n % 61, (0,), (16, 160, 1600)),
    "call": (lambda n, _: n // 16, (0,), (16, 1600)),
    "method_call": (lambda n, _: n // 16, (0,), (16, 1600)),
    "small_object": (lambda n, _: 16 * (n // 16 - 1), (0,), (32, 1600)),
    "dict_insert": (lambda n, _: n, (0,), (1024, 4096)),
    "dict_lookup": (lambda n, _: n * 389 % 1024, (0,), (16, 1600)),
    "list_comprehension": (of_turns, (10, 1000), (16, 64)),
    "list_multiply": (of_turns, (10, 1000), (16, 64)),
    "list_append": (lambda n, elements: 3 * (n - 1) + elements, (10, 1000), (1, 5)),
    "list_literal": (of_literals, (10, 1000), (16, 64)),
    "string_concatenate": (lambda n, elements: 8 * elements * n, (10, 1000), (1, 5)),
    "string_join": (lambda n, elements: 8 * elements * n, (10, 1000), (1, 5)),
    "numpy_in_place": (lambda n, _: 2 * n, (10, 1000), (1, 5, 64)),
    "numpy_temporary": (lambda n, _: 2 * n, (10, 1000), (1, 5, 64)),
    "numpy_empty": (lambda _, elements: elements, (10, 1000), (1, 5, 64)),
    "numpy_zeros": (lambda _, elements: elements, (10, 1000), (1, 5, 64)),
}


def text_of(name: str, elements: int) -> str:
    """As the probe prepares it."""
    text = (PROGRAMS / f"{name}.py").read_text()
    text = re.sub(r"^ELEMENTS = \d+$", f"ELEMENTS = {elements}", text, flags=re.MULTILINE)
    return text.replace(LITERAL, str(list(range(elements)))) if elements not in {0, 10} else text


def audited(name: str, elements: int) -> str:
    return text_of(name, elements) + "\nrun = audit\n"


def loaded(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "latlab_probe"}
    exec(compile(text, "<probe>", "exec"), names)
    return names


def test_every_program_is_tried_here() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {*EXPECTED, "numpy_import"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_returns_what_its_work_must_give(name: str) -> None:
    expected, sizes, counts = EXPECTED[name]
    for elements in sizes:
        program = loaded(text_of(name, elements))
        for n in counts:
            assert program["run"](n) == expected(n, elements), (elements, n)
            if "audit" in program:
                assert loaded(audited(name, elements))["run"](n) == n * elements


def unrolled(text: str) -> list[int]:
    """The lines that stand sixteen times in a row, alike but for the names."""
    lines = text.splitlines()
    shapes = [
        re.sub(r"\b[a-r]\b|\bturn\b|\d+", "_", line) if line.startswith(" " * 8) else "" for line in lines
    ]
    runs = [
        first
        for first in range(len(lines) - 15)
        if shapes[first] and len(set(shapes[first : first + 16])) == 1 and re.search(r" \+?= ", lines[first])
    ]
    return [runs[0] + step for step in range(16)] if runs else []


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_that_leaves_one_step_out_gives_itself_away(name: str) -> None:
    expected, sizes, _ = EXPECTED[name]
    elements = sizes[0]
    text = text_of(name, elements)
    lines = text.splitlines()
    steps = unrolled(text)
    if name == "loop":
        lines = text.replace("range(n // 16)", "range(n // 16 - 1)").splitlines()
        steps = [-1]
    elif not steps:
        # What is done piece by piece: one piece less each time.
        for whole, less in (
            ("in pieces", "in pieces[1:]"),
            ("join(pieces", "join(pieces[1:]"),
            ("range(el", "range(1, el"),
        ):
            if whole in text:
                lines = text.replace(whole, less).splitlines()
                steps = [-1]
    assert steps, "nothing to leave out"
    for step in steps:
        shorter = [line for number, line in enumerate(lines) if number != step]
        program = loaded("\n".join(shorter))
        n = 2048
        try:
            right = program["run"](n) == expected(n, elements)
            if "audit" in program:
                right = program["audit"](n) == n * elements
        except NameError:
            # The probe takes an error for the answer 0.
            continue
        assert not right, f"without line {step + 1}"


def test_numpy_is_imported_from_the_folder_that_the_probe_is_given(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("__version__ = '7.8.9rc1'\n")
    text = (
        (PROGRAMS / "numpy_import.py").read_text().replace('PACKAGES = ""', f"PACKAGES = {str(tmp_path)!r}")
    )
    program = f"{text}\nprint([run(part) for part in range(4)], os.environ['OPENBLAS_NUM_THREADS'])\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split("]")[0] == "[7, 8, 0, 0"
    assert done.stdout.split()[-1] == "1"


@pytest.mark.slow
def test_the_installed_command_measures_and_proves_it(tmp_path: Path, latlab: str) -> None:
    pytest.importorskip("latlab._core")
    command = [
        latlab,
        "measure",
        "--only",
        "python.object",
        "--profile",
        "quick",
        "--budget",
        "5s",
        "--json",
        "--no-report",
        "--quiet",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    measured = [record for record in records if record.get("summary")]
    operations = {record["point"]["operation"] for record in measured}
    assert {"loop", "attribute", "call", "list-comprehension"} <= operations
    for record in measured:
        assert record["unit"] == "ns"
        assert record["kind"] == "batch_mean"
        assert record["engine"].startswith("CPython 3.")
        assert record["summary"]["p50"] > 0
        assert record["checks"]
        assert all(check["ok"] for check in record["checks"]), record["checks"]
        if elements := record["point"].get("elements"):
            # Of one round, which is near the figure.
            assert 0 < record["findings"]["per_element_ns"] * elements <= record["summary"]["max"]
        if record["point"]["operation"].startswith("numpy-"):
            assert "NumPy" in record["engine"]
    assert not [
        record for record in records if record.get("error", {}).get("kind") in {"failed", "proof_failed"}
    ]
    (derived,) = (record for record in records if record["kind"] == "derived")
    assert derived["findings"]["loop_ns"] > 0
    shares = {entry["operation"]: entry["loop_share"]["value"] for entry in derived["findings"]["operations"]}
    assert 0 < shares["call"] < 1
