"""Stacks of programs without frame pointers are whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.explain.in_process import explain

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here"),
    pytest.mark.slow,
]

#: CPU time of the program: recording begins some milliseconds after it, later on a busy machine.
SPINS_NS: Final = 400_000_000
#: What a call needs is in registers that the function has to keep, so `rbp` is one of many for anything.
NESTED: Final = """
#include <time.h>
#define KEPT __attribute__((noinline, noclone))
KEPT unsigned long inner(unsigned long sum) {
    for (unsigned i = 0; i < 1000000; i++) __asm__ volatile("" : "+r"(sum));
    return sum;
}
KEPT unsigned long middle(unsigned long a, unsigned long b, unsigned long c) {
    unsigned long d = inner(a), e = inner(b), f = inner(c);
    return a * b + c * d + e * f;
}
KEPT unsigned long outer(unsigned long a, unsigned long b) {
    unsigned long c = middle(a, b, 1), d = middle(b, a, 2);
    return a * d + b * c;
}
int main(void) {
    struct timespec now;
    unsigned long sum = 0;
    do {
        sum += outer(sum, 3);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec == 0 && now.tv_nsec < %d);
    return sum == 3;
}
"""


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three functions, each called by the one before it."""
    folder = tmp_path_factory.mktemp("nested")
    (folder / "nested.c").write_text(NESTED % SPINS_NS, encoding="ascii")
    options = ["-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables"]
    subprocess.run(["gcc", *options, "-o", "nested", "nested.c"], cwd=folder, check=True)
    return folder / "nested"


def sampled(program: Path, level: str) -> dict[str, Any]:
    """Its ledger at this level; skips where nothing may be sampled."""
    result = program.with_suffix(f".{level}.json")
    options = ["--no-limits", "--overhead", "unlimited", "--level", level, "--json", str(result)]
    done = explain(*options, "--", str(program))
    assert done.returncode == 0, done.stderr
    ledger: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    if str(ledger["level"]) != level:
        reasons = [rung["reason"] for rung in ledger["levels"] if rung["level"] == int(level)]
        pytest.skip(f"this user may not sample at level {level}: {reasons}")
    return ledger


@pytest.mark.parametrize("level", ["1", "2"])
def test_a_function_without_frame_pointers_has_all_its_callers(nested: Path, level: str) -> None:
    ledger = sampled(nested, level)
    inside = [stack for stack in ledger["stacks"] if "inner" in stack["frames"]]
    callers = ["main", "outer", "middle", "inner"]
    whole = [stack for stack in inside if [name for name in stack["frames"] if name in callers] == callers]
    total = sum(stack["share"] for stack in inside)
    assert total > 0
    assert sum(stack["share"] for stack in whole) / total == pytest.approx(1.0, abs=0.01)
    assert ledger["observer"]["lost"] == 0
