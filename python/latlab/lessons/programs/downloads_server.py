"""A server to try downloads against: it counts uploads, fails on purpose, and its cache is cold at first."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen


def _block() -> bytes:
    """256 KiB that do not compress (xorshift64): what each body consists of, over and over."""
    state, mask, words = 0x9E3779B97F4A7C15, (1 << 64) - 1, []
    for _ in range((256 << 10) // 8):
        state ^= (state << 13) & mask
        state ^= state >> 7
        state ^= (state << 17) & mask
        words.append(state.to_bytes(8, "little"))
    return b"".join(words)


BLOCK = _block()


def body(size: int) -> bytes:
    """What a file of this size holds."""
    return (BLOCK * (size // len(BLOCK) + 1))[:size]


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: str, wait_s: float = 0.0, origin_s: float = 0.0) -> None:
        """Waits `wait_s` before each answer, and `origin_s` for what its cache does not have."""
        super().__init__((host, 0), Answers)
        self.wait_s, self.origin_s = wait_s, origin_s
        self.cached: set[str] = set()
        self.over = threading.Event()

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Closes without a goodbye: a connection whose lingering was set to nothing is reset."""
        self.close_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class Answers(BaseHTTPRequestHandler):
    """`GET /bytes/N`, `/cached/N/NAME`, `/forget`, `/reset`, `/silent`; `POST /sink`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 << 10
    server: Server

    def do_GET(self) -> None:
        """A file, or a failure."""
        time.sleep(self.server.wait_s)
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "reset":
            # Lingers for no time: what was sent and not yet read is thrown away, and the client told so.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        elif kind == "silent":
            self.server.over.wait(30)
            self.close_connection = True
        elif kind == "forget":
            self.server.cached.clear()
            self._say(b"forgotten")
        elif kind == "bytes":
            self._say(body(int(rest)))
        elif kind == "cached":
            if self.path not in self.server.cached:
                time.sleep(self.server.origin_s)
                self.server.cached.add(self.path)
            self._say(body(int(rest.partition("/")[0])))
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Takes an upload and says how many bytes came."""
        left = length = int(self.headers["Content-Length"])
        while left and (part := self.rfile.read(min(left, 64 << 10))):
            left -= len(part)
        time.sleep(self.server.wait_s)
        self._say(b"%d\n" % (length - left))

    def _say(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    server = Server("127.0.0.1", origin_s=0.05)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    for state in ("cold", "warm"):
        start = time.perf_counter()
        with urlopen(f"{here}/cached/10000/1") as answer:
            assert answer.read() == body(10_000)
        print(f"{state}: {time.perf_counter() - start:.3f} s")
    if "--small" not in sys.argv:
        print(f"serves {here} until Ctrl-C")
        threading.Event().wait()
