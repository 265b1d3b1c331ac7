"""One end of a lesson's transfers, in a process of its own: a JSON object a line in, one out.

    {"enter": ...}     goes to one end of a path, before anything else
    {"serve": ...}     starts the server of `programs/downloads_server.py`, for as long as the input lasts
    {"transfer": ...}  lets `programs/downloads.py` do some transfers, and compares what came

Standard library only. A process can change its user namespace only while it has a single thread, hence one of
its own for each end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import ssl
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any, Final

from latlab.lessons.programs import downloads, downloads_server

# sched.h and linux/prctl.h.
_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1
#: What comes from a stranger's server is not kept beyond this.
MOST_BYTES: Final = 256 << 20


def main() -> None:
    """Answers until there is no more input."""
    # Ctrl-C is for the process that asks: it ends this one's input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    end = End()
    for line in sys.stdin:
        try:
            ((what, asked),) = json.loads(line).items()
            reported: dict[str, Any] = {"ok": getattr(end, what)(**asked)}
        except Exception as error:
            reported = {"failed": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reported) + "\n")
        answers.flush()
    # Threads of a server may still wait for somebody.
    os._exit(0)


class End:
    """What can be asked."""

    def __init__(self) -> None:
        self.servers: list[downloads_server.Server] = []

    def enter(self, process: int, user: int | None, network: int) -> None:
        """Goes to an end of the path that the process keeps; the numbers are its descriptors."""
        kinds = [(user, _NEW_USER)] if user is not None else []
        opened = [
            (os.open(f"/proc/{process}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC), kind)
            for number, kind in [*kinds, (network, _NEW_NETWORK)]
        ]
        system = ctypes.CDLL(None, use_errno=True)
        for descriptor, kind in opened:
            if system.setns(descriptor, kind):
                code = ctypes.get_errno()
                raise OSError(code, f"entering a namespace: {os.strerror(code)}")
            os.close(descriptor)
        # A change of credentials clears it.
        _end_with_parent()

    def serve(self, host: str, wait_s: float, origin_s: float) -> str:
        """Starts a server; returns its URL."""
        server = downloads_server.Server(host, wait_s, origin_s)
        self.servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://{host}:{server.server_port}"

    def transfer(
        self,
        urls: dict[str, str],
        by: str,
        patience: float,
        workers: int | None = None,
        folder: str | None = None,
        file_bytes: int | None = None,
        upload: bool = False,
    ) -> dict[str, Any]:
        """Transfers, one after another or by so many workers; `file_bytes` is what each must hold.

        Raises:
            ValueError: something came that is not what it must be.
        """
        store = Store(folder)
        if upload:
            content = downloads_server.body(file_bytes or 0)
            work = downloads.uploading(downloads.post_by_urllib, next(iter(urls.values())), content, patience)
        else:
            work = downloads.downloading(_client(by), urls, store.save, patience)
        names = list(urls)
        try:
            seconds, done = (
                downloads.one_after_another(work, names)
                if workers is None
                else downloads.by_a_pool(work, names, workers)
            )
            if not upload and file_bytes is not None:
                _compare(store, done, file_bytes)
        finally:
            store.clear()
        return {"seconds": seconds, "done": done}

    def warm(self) -> None:
        """Pays what only the first request of a process pays, and reports nothing."""
        with urllib.request.urlopen("data:,") as answer:  # noqa: S310 - it asks nobody
            answer.read()
        ssl.create_default_context()
        with contextlib.suppress(OSError):
            socket.getaddrinfo("localhost", 9)
        downloads.by_a_pool(lambda _: 0, ["a", "b"], 2)

    def has(self, package: str) -> bool:
        """Whether a package can be imported here; it is then, and costs nothing later."""
        try:
            __import__(package)
        except ImportError:
            return False
        return True


class Store:
    """Where downloads go: files of a folder, or memory where there is none."""

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.kept: dict[str, bytes] = {}
        self.saved: set[str] = set()

    def save(self, name: str, content: bytes) -> None:
        """Keeps it.

        Raises:
            OSError: it cannot be written, or is longer than anything that was asked for.
        """
        if len(content) > MOST_BYTES:
            raise OSError(f"{len(content)} bytes: more than a lesson keeps")
        self.saved.add(name)
        if self.folder is None:
            self.kept[name] = content
        else:
            (self.folder / name).write_bytes(content)

    def content(self, name: str) -> bytes:
        """What was kept."""
        return self.kept[name] if self.folder is None else (self.folder / name).read_bytes()

    def clear(self) -> None:
        """Forgets all of it."""
        self.kept.clear()
        if self.folder is not None:
            for name in self.saved:
                (self.folder / name).unlink(missing_ok=True)


def _client(by: str) -> downloads.Fetch:
    if by == "as-published":
        return _as_published
    if by == "kept":
        return downloads.Kept()
    return downloads.by_requests if by == "requests" else downloads.by_urllib


def _as_published(url: str, patience: float) -> bytes:
    """`requests.get` without a look at the status, as the published program has it; but with a time-out."""
    import requests  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - it may not be there

    content: bytes = requests.get(url, timeout=patience).content
    return content


def _compare(store: Store, done: list[downloads.Done], file_bytes: int) -> None:
    wanted = downloads_server.body(file_bytes)
    for each in done:
        if not each["error"] and store.content(each["name"]) != wanted:
            raise ValueError(f"{each['name']}: {each['size']} bytes that differ from the server's")


def _end_with_parent() -> None:
    """Where the kernel can, it ends this process with the one that started it, not only its input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
