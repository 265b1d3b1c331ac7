"""`latlab fleet survey` beside Dask's own `benchmark_hardware`, on one cluster with one host behind a delay.

    .venv/bin/python benches/fleet_beside.py [--save]

Six network namespaces at a switch have a Dask worker each, with TLS; the link of one has 5 ms each way and
200 Mbit/s (tests/fleet/test_namespaces.py makes them; needs root). Each tool is run three times, in turn: its
wall time, the median of three, and which hosts it names. `--save` keeps the table in benches/results.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fleet.test_namespaces import FAR, HOSTS, Network
from tools import evidence

_TIMES: Final = 3
_ADDRESS: Final = "tls://192.0.2.1:8786"
#: Asks Dask for its own figures; it prints which it has.
_DASK: Final = """
import json, sys
from distributed import Client
from distributed.security import Security
files = dict(zip(("tls_ca_file", "tls_client_cert", "tls_client_key"), sys.argv[2:], strict=True))
with Client(sys.argv[1], security=Security(require_encryption=True, **files)) as client:
    print(json.dumps({name: list(own) for name, own in client.benchmark_hardware().items()}))
"""


def links(network: Network) -> list[str]:
    """The hosts that `latlab fleet survey --links` names."""
    return named(network, "--links")


def hosts(network: Network) -> list[str]:
    """Those that a survey of one probe names; the hosts share a machine and take turns."""
    return named(network, "--profile", "quick", "--only", "kernel.syscall")


def named(network: Network, *options: str) -> list[str]:
    """The hosts that a survey names, as `far host` and `another host`."""
    done = network.survey(*options, "--json")
    if done.returncode not in {0, 1}:
        raise SystemExit(done.stderr)
    return [
        "the host behind the delay" if FAR in name else "another host"
        for name in json.loads(done.stdout)["named"]
    ]


def hardware(network: Network) -> list[str]:
    """Dask's means over all workers; it names no host."""
    _, authority, _, certificate, _, key = network.tls()
    command = ["nsenter", f"--net={network.switch}", sys.executable, "-c", _DASK, _ADDRESS]
    subprocess.run([*command, authority, certificate, key], check=True, capture_output=True, timeout=300)
    return []


_TOOLS: Final[dict[str, Callable[[Network], list[str]]]] = {
    "latlab fleet survey --links": links,
    "latlab fleet survey --profile quick --only kernel.syscall": hosts,
    "Dask: client.benchmark_hardware()": hardware,
}


def started(stack: contextlib.ExitStack, folder: Path) -> Network:
    """The cluster: a scheduler at the switch, and a worker on each host."""
    network = Network(stack, folder)
    scheduler = ("--host", "tls://192.0.2.1", "--port", "8786", "--no-dashboard")
    network.start(network.switch, "distributed.cli.dask_scheduler", *scheduler)
    for address, namespace in network.hosts.items():
        own = ("--host", f"tls://{address}", "--no-nanny", "--nthreads", "1", "--no-dashboard")
        network.start(
            namespace, "distributed.cli.dask_worker", _ADDRESS, *own, "--local-directory", str(folder)
        )
    while (folder / "log").read_text().count("Register worker") < HOSTS:
        time.sleep(0.1)
    return network


def rows() -> Iterator[dict[str, object]]:
    """A row for each tool."""
    seconds: dict[str, list[float]] = {tool: [] for tool in _TOOLS}
    said: dict[str, Counter[str]] = {tool: Counter() for tool in _TOOLS}
    with contextlib.ExitStack() as stack:
        network = started(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for _ in range(_TIMES):
            for tool, run in _TOOLS.items():
                begun = time.monotonic()
                said[tool].update(run(network))
                seconds[tool].append(time.monotonic() - begun)
    for tool in _TOOLS:
        yield {
            "tool": tool,
            "seconds": f"{statistics.median(seconds[tool]):.1f}",
            "names": ", ".join(f"{who}, {count} of {_TIMES} times" for who, count in said[tool].items())
            or "nobody",
        }


if __name__ == "__main__":
    evidence.table("fleet-beside.csv", "benches/fleet_beside.py", __doc__, rows)
