"""Transfers as a Python program does them: a library, a pool of threads. One JSON object a line in, one out."""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

BLOCK_BYTES = 256 << 10
MASK = (1 << 64) - 1


def block():
    """What every body consists of, over and over (xorshift64)."""
    state, words = 0x9E3779B97F4A7C15, []
    for _ in range(BLOCK_BYTES // 8):
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        words.append(state.to_bytes(8, "little"))
    return b"".join(words)


def client_of(library):
    """A session that keeps connections, and the call that uses none."""
    if library == "python-requests":
        import requests

        def session():
            own = requests.Session()
            # A proxy of the environment would be measured instead.
            own.trust_env = False
            return own
    else:
        import httpx

        def session():
            return httpx.Client(trust_env=False, timeout=None)

    return session


class Job:
    """Transfers of one kind, by threads that stay and sessions that do not."""

    def __init__(self, asked):
        self.asked = asked
        self.session = client_of(asked["library"])
        self.pool = ThreadPoolExecutor(asked["workers"])
        length = asked["bytes"]
        self.expected = (block() * (length // BLOCK_BYTES + 1))[:length]

    def one(self, _):
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

    def run(self, count):
        self.own, self.sessions = threading.local(), []
        done = list(self.pool.map(self.one, range(count)))
        for *_, status, body in done:
            if status != 200 or body != self.expected:
                raise ValueError(f"status {status}, {len(body)} bytes: not what was expected")
        connections = len(self.sessions) if self.asked["kept"] else count
        for session in self.sessions:
            session.close()
        return {"done": {"stamps": [own[:2] for own in done], "connections": connections}}


def main():
    sys.path.append(sys.argv[1])
    job = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "prepare" in asked:
                if job is not None:
                    job.pool.shutdown()
                job = Job(asked["prepare"])
                told = job.run(2 * job.asked["workers"])
            else:
                told = job.run(asked["count"])
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told
            told = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


main()
