"""The programs that benches/explain compares the ledger with know what they say of themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the programs read /proc"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The compiled program."""
    program = tmp_path_factory.mktemp("known") / "known"
    source = root / "benches/explain/known.c"
    subprocess.run(
        ["gcc", "-O2", "-DLESS=15", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-lpthread"],
        check=True,
    )
    return program


def said(*words: str | Path) -> dict[str, Any]:
    result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    parts: dict[str, Any] = json.loads(result.stdout)
    return parts


@pytest.mark.parametrize("name", ["list", "faults", "warm", "random", "mapped"])
def test_the_parts_of_one_thread_are_no_longer_than_the_whole(known: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    whole = said(known, name, file)
    sums = [part["cpu"] + part["wait"] + part["queue"] for part in whole["parts"].values()]
    assert 0 < sum(sums) <= whole["total"] * 1.001
    assert all(part["cpu"] >= 0 for part in whole["parts"].values())


def test_threads_at_one_mutex_wait_while_another_works(known: Path) -> None:
    whole = said(known, "lock")
    assert 0 < whole["busy"] <= whole["total"]
    assert whole["parts"]["lock"]["wait"] > 0


def test_what_comes_after_the_slow_stage_of_a_pipeline_waits_longer_than_it(known: Path) -> None:
    whole = said(known, "pipeline")
    waits = [process["pipe"] for process in whole["processes"]]
    # Where others use the CPUs, the first stage may be the slow one, which never waits.
    assert all(0 <= wait <= whole["total"] for wait in waits)
    # The last one waits for all that the slow stage waits for, and for its work.
    assert waits[1] < waits[2]


def test_words_are_counted_and_the_reading_is_known(tmp_path: Path, root: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"one two three " * 20_000)
    whole = said(sys.executable, root / "benches/explain/words.py", text)
    assert whole["words"] == 60_001, "and an empty one at the end"
    assert whole["parts"]["read"]["cpu"] > 0
