"""The Python rows of `network.transfer`: their program, with each library, against latlab's own server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "crates/latlab-probes-network/src/peer/programs/transfers.py"
LIBRARIES = {"python-requests": "requests", "python-httpx": "httpx"}
BYTES, WORKERS, FILES = 300_000, 2, 10
PATIENCE_S = 60


@pytest.fixture(scope="module")
def address(latlab: str) -> Iterator[str]:
    """Where latlab's server listens."""
    with subprocess.Popen([latlab, "serve", "--json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def reported(*requests: dict[str, Any], packages: str) -> list[dict[str, Any]]:
    """What the program answers, started as the probe starts it."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM.read_text(), packages],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def work(library: str, address: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - a field of the request
    return {
        "prepare": {
            "library": library,
            "workers": WORKERS,
            "kept": False,
            "bytes": BYTES,
            "url": f"http://{address}/bytes/{BYTES}",
            "patience_s": PATIENCE_S,
            **changes,
        }
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_fetches_ten_files_whose_bytes_are_compared(library: str, address: str) -> None:
    module = pytest.importorskip(LIBRARIES[library])
    packages = str(Path(module.__file__).parents[1])
    warm, new, kept_warm, kept, again, shorter = reported(
        *(work(library, address), {"count": FILES}),
        *(work(library, address, kept=True), {"count": FILES}),
        work(library, address),
        work(library, address, url=f"http://{address}/bytes/{BYTES - 1}"),
        packages=packages,
    )
    assert len(warm["ok"]["stamps"]) == len(kept_warm["ok"]["stamps"]) == 2 * WORKERS
    assert len(again["ok"]["stamps"]) == WORKERS, "its threads are there"
    for done, connections in ((new, {FILES}), (kept, {1, WORKERS})):
        assert done["ok"]["connections"] in connections
        assert len(done["ok"]["stamps"]) == FILES
        assert all(begun < ended for begun, ended in done["ok"]["stamps"])
    assert f"{BYTES - 1} bytes: not what was expected" in shorter["failed"]
