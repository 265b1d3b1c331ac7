"""`make test` tries once more, alone, what failed beside other tests; a defect still fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]

#: Passes for cargo: prints what the n-th call of it is to print, notes its arguments, and fails as told.
CARGO = """\
#!/bin/sh
folder=$(dirname "$0")
echo "$@" >>"$folder/calls"
n=$(wc -l <"$folder/calls")
cat "$folder/output.$n"
exit "$(cat "$folder/code.$n")"
"""

FAILS = """\
     Running unittests src/lib.rs (target/debug/deps/one-1)

running 2 tests
test a::first ... ok
test a::second ... FAILED

failures:

---- a::second stdout ----

thread 'a::second' panicked at src/lib.rs:1:1:
failures:
    of_nobody

failures:
    a::second

test result: FAILED. 1 passed; 1 failed; 0 ignored

error: test failed, to rerun pass `-p one --lib`
     Running tests/two.rs (target/debug/deps/two-2)

running 1 test
test third ... ok

test result: ok. 1 passed; 0 failed; 0 ignored

error: 1 target failed:
    `-p one --lib`
"""
HOLDS = """\
     Running unittests src/lib.rs (target/debug/deps/one-1)
test result: ok. 1 passed; 0 failed; 0 ignored
     Running tests/two.rs (target/debug/deps/two-2)
test result: ok. 0 passed; 0 failed; 0 ignored
"""
DIES = """\
     Running unittests src/lib.rs (target/debug/deps/one-1)

running 2 tests
error: test failed, to rerun pass `-p one --lib`

Caused by:
  process didn't exit successfully (signal: 11, SIGSEGV: invalid memory reference)
"""


def cargo(
    root: Path, folder: Path, *runs: tuple[str, int]
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What `run_tests.py cargo test --locked` does when cargo does this, and how it called cargo."""
    program = folder / "cargo"
    program.write_text(CARGO, encoding="utf-8")
    program.chmod(0o755)
    for n, (output, code) in enumerate(runs, 1):
        (folder / f"output.{n}").write_text(output, encoding="utf-8")
        (folder / f"code.{n}").write_text(str(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, root / "tools/run_tests.py", program, "test", "--locked"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done, (folder / "calls").read_text(encoding="utf-8").splitlines()


def test_what_passes_runs_once(root: Path, tmp_path: Path) -> None:
    done, calls = cargo(root, tmp_path, (HOLDS, 0))
    assert done.returncode == 0
    assert calls == ["test --no-fail-fast --locked"]


def test_what_fails_beside_others_and_holds_alone_is_said(root: Path, tmp_path: Path) -> None:
    done, calls = cargo(root, tmp_path, (FAILS, 101), (HOLDS, 0))
    assert done.returncode == 0
    assert calls[1] == "test --no-fail-fast --locked -- --exact --test-threads=1 a::second"
    assert "panicked at src/lib.rs:1:1" in done.stdout
    assert done.stdout.splitlines()[-1] == "held only alone: a::second"


@pytest.mark.parametrize(
    ("second", "why"),
    [((FAILS, 101), "it fails again"), ((HOLDS.replace("1 passed", "0 passed"), 0), "it was not run")],
)
def test_what_does_not_hold_alone_fails(
    root: Path, tmp_path: Path, second: tuple[str, int], why: str
) -> None:
    done, calls = cargo(root, tmp_path, (FAILS, 101), second)
    assert done.returncode != 0, why
    assert len(calls) == 2
    assert "failed alone too" in done.stdout


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (DIES, "a program died"),
        (FAILS + DIES, "a test failed and another program died"),
        ("error[E0425]: cannot find value\n", "it does not compile"),
        (
            FAILS.replace("    a::second\n", "".join(f"    a::{name}\n" for name in "abcdefghijklmnopqrstu")),
            "twenty-one failures are no neighbour's",
        ),
    ],
)
def test_what_is_no_matter_of_neighbours_is_not_tried_again(
    root: Path, tmp_path: Path, output: str, why: str
) -> None:
    done, calls = cargo(root, tmp_path, (output, 101))
    assert done.returncode == 101, why
    assert len(calls) == 1


def pytest_in(root: Path, folder: Path, test: str) -> Done:
    """Runs a test of this text in a project of its own, beside whatever runs this one."""
    (folder / "tests").mkdir()
    (folder / "tests/test_one.py").write_text(test, encoding="utf-8")
    # It is no worker of the tests beside it, and each of its processes would import all plugins for nothing.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [
            sys.executable,
            root / "tools/run_tests.py",
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "xdist.plugin",
            "-ra",
            "--numprocesses=1",
        ],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_of_python_that_holds_alone_is_said(root: Path, tmp_path: Path) -> None:
    done = pytest_in(
        root,
        tmp_path,
        'import os, pytest\n@pytest.mark.parametrize("name", ["a b", "c"])\n'
        'def test_alone(name):\n    assert name == "c" or "PYTEST_XDIST_WORKER" not in os.environ\n',
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "held only alone: tests/test_one.py::test_alone[a b]"


@pytest.mark.parametrize("test", ["def test_never():\n    assert False\n", "import nothing_of_this_name\n"])
def test_a_test_of_python_that_never_holds_fails(root: Path, tmp_path: Path, test: str) -> None:
    assert pytest_in(root, tmp_path, test).returncode != 0
