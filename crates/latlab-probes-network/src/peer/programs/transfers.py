"""Transfers as a Python program does them: a library, a pool of threads. A JSON object a line in, one out."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

BLOCK_BYTES = 256 << 10
MASK = (1 << 64) - 1
GOOD = 200


def block() -> bytes:
    """What every body consists of, over and over (xorshift64)."""
    state, words = 0x9E3779B97F4A7C15, []
    for _ in range(BLOCK_BYTES // 8):
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        words.append(state.to_bytes(8, "little"))
    return b"".join(words)


def client_of(library: str) -> Callable[[], Any]:
    """A session of the library; by a name, as only one of the two may be there."""
    if library == "python-requests":
        requests = importlib.import_module("requests")

        def of_requests() -> Any:  # noqa: ANN401 - the library is not there when types are checked
            own = requests.Session()
            # A proxy of the environment would be measured instead.
            own.trust_env = False
            return own

        return of_requests
    httpx = importlib.import_module("httpx")
    # Each request brings its own time-out.
    return lambda: httpx.Client(trust_env=False)


class Job:
    """Transfers of one kind, by threads that stay and sessions that do not."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.session = client_of(asked["library"])
        self.pool = ThreadPoolExecutor(asked["workers"])
        length = asked["bytes"]
        self.expected = (block() * (length // BLOCK_BYTES + 1))[:length]

    def one(self, _: int) -> tuple[int, int, int, bytes]:
        """One transfer: when it was begun and ended (ns), its status, its body."""
        begun = time.monotonic_ns()
        if self.asked["kept"]:
            session = getattr(self.own, "session", None)
            if session is None:
                session = self.own.session = self.session()
                self.sessions.append(session)
            answer = session.get(self.asked["url"], timeout=self.asked["patience_s"])
            body = answer.content
        else:
            with self.session() as session:
                answer = session.get(self.asked["url"], timeout=self.asked["patience_s"])
                body = answer.content
        ended = time.monotonic_ns()
        return begun, ended, answer.status_code, body

    def run(self, count: int) -> dict[str, Any]:
        """So many transfers, checked.

        Raises:
            ValueError: A body or a status is not what was expected.
        """
        self.own, self.sessions = threading.local(), []
        done = list(self.pool.map(self.one, range(count)))
        for *_, status, body in done:
            if status != GOOD or body != self.expected:
                raise ValueError(f"status {status}, {len(body)} bytes: not what was expected")
        connections = len(self.sessions) if self.asked["kept"] else count
        for session in self.sessions:
            session.close()
        return {"ok": {"stamps": [own[:2] for own in done], "connections": connections}}


def main() -> None:
    """Serves until there is no more input."""
    sys.path.append(sys.argv[1])
    jobs: dict[str, Job] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "prepare" in asked:
                # The first time there are threads to be started too; over a long path a turn takes its time.
                turns = 1 if line in jobs else 2
                if line not in jobs:
                    jobs[line] = Job(asked["prepare"])
                job = jobs[line]
                told = job.run(turns * job.asked["workers"])
            else:
                told = job.run(asked["count"])
        # Whatever it is, the parent is told.
        except Exception as error:
            told = {"failed": f"the Python program: {type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


main()
