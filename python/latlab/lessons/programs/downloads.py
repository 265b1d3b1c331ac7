"""Many files over the network: one after another, or by a pool of threads; what became of each, and when."""

from __future__ import annotations

import http.client
import importlib
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypedDict
from urllib.parse import urlsplit

#: Does one transfer of that name; returns its bytes.
Work = Callable[[str], int]
Fetch = Callable[[str, float], bytes]
Post = Callable[[str, bytes, float], bytes]


class Done(TypedDict):
    """One file: when it was begun and ended (seconds from the start of all), and what went wrong."""

    name: str
    began: float
    ended: float
    size: int
    error: str


def by_urllib(url: str, patience: float) -> bytes:
    """A new connection for each file. Without a time-out it would wait for ever."""
    with urllib.request.urlopen(url, timeout=patience) as answer:
        content: bytes = answer.read()
    return content


def by_requests(url: str, patience: float) -> bytes:
    """The same with the library: `requests.get` opens a new connection too."""
    answer = importlib.import_module("requests").get(url, timeout=patience)
    answer.raise_for_status()  # without it, the page that says "404 not found" is taken for the file
    content: bytes = answer.content
    return content


class Kept:
    """One connection for each thread, kept from file to file."""

    def __init__(self) -> None:
        self.own = threading.local()

    def __call__(self, url: str, patience: float) -> bytes:
        """A request on this thread's connection."""
        place = urlsplit(url)
        if not hasattr(self.own, "connection"):
            self.own.connection = http.client.HTTPConnection(place.netloc, timeout=patience)
        self.own.connection.request("GET", place.path)
        answer = self.own.connection.getresponse()
        content: bytes = answer.read()
        if answer.status != 200:
            raise http.client.HTTPException(f"{answer.status} {answer.reason}")
        return content


def post_by_urllib(url: str, content: bytes, patience: float) -> bytes:
    """An upload; returns what the server says."""
    head = {"Content-Type": "application/octet-stream"}
    asked = urllib.request.Request(url, content, head, method="POST")
    with urllib.request.urlopen(asked, timeout=patience) as answer:
        said: bytes = answer.read()
    return said


def downloading(
    fetch: Fetch, urls: Mapping[str, str], save: Callable[[str, bytes], Any], patience: float
) -> Work:
    """The work of a download: fetch, save."""

    def work(name: str) -> int:
        content = fetch(urls[name], patience)
        save(name, content)
        return len(content)

    return work


def uploading(post: Post, url: str, content: bytes, patience: float) -> Work:
    """The work of an upload: send, and see that all of it came."""

    def work(name: str) -> int:
        said = post(url, content, patience)
        if int(said) != len(content):
            raise OSError(f"{name}: the server has {int(said)} bytes of {len(content)}")
        return len(content)

    return work


def one(work: Work, name: str, start: float) -> Done:
    """One file. Its error is kept, so that the others go on."""
    began = time.perf_counter()
    try:
        size, error = work(name), ""
    except (OSError, http.client.HTTPException) as reason:
        # No such host, refused, reset, time-out, 404: each library's errors are one of these two.
        size, error = 0, f"{type(reason).__name__}: {reason}"
    return Done(name=name, began=began - start, ended=time.perf_counter() - start, size=size, error=error)


def one_after_another(work: Work, names: list[str]) -> tuple[float, list[Done]]:
    """Seconds for all, and each file in the order in which it was done."""
    start = time.perf_counter()
    done = [one(work, name, start) for name in names]
    return time.perf_counter() - start, done


def by_a_pool(work: Work, names: list[str], workers: int) -> tuple[float, list[Done]]:
    """The same by a pool of threads: while one waits for the network, others do too."""
    start = time.perf_counter()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        jobs = [pool.submit(one, work, name, start) for name in names]
        done = [job.result() for job in as_completed(jobs)]
        seconds = time.perf_counter() - start
    return seconds, done


if __name__ == "__main__":
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Waits(BaseHTTPRequestHandler):
        """In place of a distance: waits 20 ms, and then answers."""

        def do_GET(self) -> None:
            """Some bytes."""
            time.sleep(0.02)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(bytes(10_000))

        def log_message(self, *_: object) -> None:
            """Nothing."""

    asked = [word for word in sys.argv[1:] if word.startswith("http")]
    if not asked:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Waits)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked = [f"http://127.0.0.1:{server.server_port}/{number}" for number in range(10)]
    kept: dict[str, bytes] = {}
    files = {f"{number:02}": url for number, url in enumerate(asked)}
    job = downloading(by_urllib, files, kept.__setitem__, 10.0)
    # The pool first and last, so that it is not the only one to find everything warm.
    for way in ("pool", "alone", "alone", "pool"):
        took, all_done = (
            by_a_pool(job, list(files), 6) if way == "pool" else one_after_another(job, list(files))
        )
        print(f"{way:5} {took:.3f} s:", " ".join(each["name"] for each in all_done))
        for each in all_done:
            if each["error"]:
                print(f"      {each['name']}: {each['error']}")
