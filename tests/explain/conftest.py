"""One program, explained once at each end of what can be seen; many tests look at the result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import msgspec
import pytest
from tests.conftest import Calibrated
from tests.explain.in_process import explain

from latlab.explain.model import Explained

#: Tests of what is measured of this machine to explain programs by, and kept.
MEASURE_IT: Final = ("test_kept", "test_limits")

READ_BYTES: Final = 4 << 20
WRITTEN_BYTES: Final = 1_000_000

PROGRAM = """
import sys, threading, time
import latlab

input, output = sys.argv[1:]
sleeper = threading.Thread(target=time.sleep, args=(0.6,))
sleeper.start()
with latlab.stage("read"):
    file = open(input, "rb", buffering=0)
    while file.read(65536):
        time.sleep(0.001)
    time.sleep(0.15)
with latlab.stage("work"):
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        with latlab.stage("part"):
            sum(range(20_000))
with latlab.stage("write"):
    target = open(output, "wb", buffering=0)
    for _ in range(100):
        target.write(bytes(10_000))
    time.sleep(0.15)
sleeper.join()
sys.exit(3)
"""


@pytest.fixture(autouse=True)
def has_the_calibration(request: pytest.FixtureRequest, calibrated: Calibrated, own_home: Path) -> None:
    """Each test's own home, but where the measuring itself is tested."""
    if request.path.stem not in MEASURE_IT:
        calibrated(own_home / "data")


@pytest.fixture(scope="session", params=[pytest.param(level, marks=pytest.mark.slow) for level in "13"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A program that reads, works and writes in stages, at the highest tracing level and at the lowest."""
    folder = tmp_path_factory.mktemp(f"explained-{request.param}")
    names = {kind: folder / f"where.{kind}" for kind in ("json", "html", "trace", "firefox")}
    source, target = folder / "input data", folder / "output <data>"
    source.write_bytes(bytes(READ_BYTES))
    outputs = [word for kind, path in names.items() for word in (f"--{kind}", str(path))]
    program = [sys.executable, "-c", PROGRAM, str(source), str(target)]
    done = explain("--no-limits", "--level", request.param, *outputs, "--", *program)
    texts = {kind: path.read_text(encoding="utf-8") for kind, path in names.items()}
    return SimpleNamespace(
        returned=done.returncode,
        explained=msgspec.json.decode(texts["json"], type=Explained),
        ledger=json.loads(texts["json"]),
        html=texts["html"],
        trace=json.loads(texts["trace"]),
        firefox=json.loads(texts["firefox"]),
        input=source,
        output=target,
        read_bytes=READ_BYTES,
        written_bytes=WRITTEN_BYTES,
    )
