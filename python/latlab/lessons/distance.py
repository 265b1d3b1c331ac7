"""Between both sides of a lesson's transfers: a path of known delay, the loopback, or a server that waits.

    keeper (core) ─► one namespace ═══ 20 ms under the sockets ═══ another namespace
                          ▲                                             ▲
                       client (ends.py)               servers (the core's own, and ends.py)

A path is the core's, the same as of `latlab measure --delay`; a user without a core, or without namespaces,
gets a server that waits before it answers. That leaves out the round trips of connecting and of slow start,
and says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypedDict

from latlab.lessons.bench import Cannot
from latlab.text import clean

if TYPE_CHECKING:
    from latlab.lessons.programs.downloads import Done

Kind = Literal["path", "waits", "loopback", "real"]
#: The far end of a path (RFC 5737: an address that nothing real has), as the core gives it.
FAR: Final = "192.0.2.2"
#: Nothing that is asked takes as long, beside the transfers themselves.
_PATIENCE_S: Final = 20.0
_ENDS: Final = "import sys; sys.path[:] = sys.argv[1:]; from latlab.lessons.ends import main; main()"


class Stamps(TypedDict):
    """When each phase of a transfer by the core's client ended, ns; 0 for what there was not."""

    begun: int
    resolved: int
    connected: int
    secured: int
    requested: int
    first_byte: int
    last_byte: int


class Helper:
    """A process that answers a line of JSON with another; ended with the lesson."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and our own files
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
        )

    def ask(self, request: Mapping[str, Any], patience: float = _PATIENCE_S) -> Any:  # noqa: ANN401 - what JSON holds
        """Asks, and waits for the answer so long at most.

        Raises:
            Cannot: what the process says went wrong; or it ended, or was late and is ended.
        """
        late = threading.Timer(patience, self._process.kill)
        late.daemon = True
        late.start()
        try:
            line = self._line(json.dumps(request))
        finally:
            late.cancel()
        if not line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
            raise Cannot(f"a process of the lesson ended, or did not answer within {patience:.0f} s")
        reported = json.loads(line)
        if "failed" in reported:
            raise Cannot(clean(reported["failed"], most=300))
        return reported["ok"]

    def _line(self, request: str) -> str:
        pipes: tuple[IO[str] | None, IO[str] | None] = (self._process.stdin, self._process.stdout)
        try:
            if pipes[0] is not None and pipes[1] is not None:
                pipes[0].write(f"{request}\n")
                pipes[0].flush()
                return pipes[1].readline()
        except OSError:
            pass
        return ""

    def close(self) -> None:
        """Ends it."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class Way:
    """Both sides of transfers, and what lies between them.

    Attributes:
        kind: What lies between.
        label: The same in words.
        client: Does the transfers.
        files: URL of the server that hands out files and takes uploads.
        tricks: URL of the server that fails on purpose and has a cache.
        served_by: Whose server `files` is.
        native: The core's own client, where `files` is the core's own server.
        end: The namespaces of the client's end, as descriptors of the process that keeps them.
    """

    kind: Kind
    label: str
    client: Helper
    files: str = ""
    tricks: str = ""
    served_by: str = ""
    native: Helper | None = None
    end: Mapping[str, int | None] | None = None

    def transfer(
        self,
        urls: Mapping[str, str],
        *,
        by: str = "urllib",
        patience: float = 10.0,
        **asked: Any,  # noqa: ANN401 - see below
    ) -> tuple[float, list[Done]]:
        """Transfers, one after another without `workers`: seconds of all, and each as it was done.

        Args:
            urls: Names, and where files come from or go to.
            by: Whose client: see `ends`.
            patience: Seconds after which a server that says nothing is given up.
            asked: What else `End.transfer` takes.

        Raises:
            Cannot: what came is not what the server has, or the client ended.
        """
        asked |= {"urls": dict(urls), "by": by, "patience": patience}
        reported = self.client.ask({"transfer": asked}, _PATIENCE_S + patience * len(urls))
        return reported["seconds"], reported["done"]

    def must(self, urls: Mapping[str, str], **asked: Any) -> tuple[float, list[Done]]:  # noqa: ANN401 - those of transfer
        """The same, where none may fail.

        Raises:
            Cannot: one did; its error.
        """
        seconds, done = self.transfer(urls, **asked)
        for each in done:
            if each["error"]:
                raise Cannot(f"{each['name']}: {clean(each['error'], most=200)}")
        return seconds, done

    def try_out(self) -> None:
        """A byte from each server.

        Raises:
            Cannot: none came.
        """
        for server in {self.files, self.tricks}:
            self.must({"one byte": f"{server}/bytes/1"}, file_bytes=1)

    def by_core(self, size: int, count: int, workers: int, *, kept: bool) -> tuple[float, list[Stamps]]:
        """The same by the core's own client, which compares every byte: seconds, and each transfer's phases.

        Raises:
            Cannot: there is none, or a transfer went wrong.
        """
        if self.native is None:
            raise Cannot("the measuring core's client is not available")
        work = {
            "bytes": size,
            "workers": workers,
            "count": count,
            "protocol": "http/1.1",
            "patience": {"secs": 10, "nanos": 0},
            "library": None,
        }
        # What an earlier set kept is closed: opening belongs to the time.
        self.native.ask({"Prepare": work | {"kept": False}})
        reported: list[Stamps] = self.native.ask({"Transfer": work | {"kept": kept}})["stamped"]
        if len(reported) != count:
            raise Cannot(f"the core's client reported {len(reported)} transfers, not {count}")
        begun, ended = min(each["begun"] for each in reported), max(each["last_byte"] for each in reported)
        return (ended - begun) * 1e-9, reported


@contextlib.contextmanager
def path(rtt_s: float, origin_s: float, rate_bit_per_s: int | None = None) -> Iterator[Way]:
    """A path of that round trip under the sockets, with a client at one end and both servers at the other.

    Raises:
        Cannot: there is no core, or this process may have no namespaces.
    """
    with contextlib.ExitStack() as stack:
        keeper = _core(stack, "network.path")
        spec = {"rtt_us": round(rtt_s * 1e6), "rate_bit_per_s": rate_bit_per_s, "queue_bytes": None}
        found = keeper.ask({"spec": spec, "cpus": []})
        near, far = _end(stack), _end(stack)
        near.ask({"enter": found["client"]})
        far.ask({"enter": found["server"]})
        by = {"netem": "netem", "delay-line": "latlab's delay line"}.get(found["kind"], "a delay")
        rate = "" if rate_bit_per_s is None else f", {rate_bit_per_s / 1e6:g} Mbit/s"
        files, native = _web(stack, found["client"], found["server"], f"{FAR}:0")
        way = Way(
            "path",
            f"emulated: {rtt_s * 1e3:g} ms round trip{rate} by {by} between two namespaces"
            f" (measured: {found['least_rtt_ns'] / 1e6:.2f} ms)",
            near,
            files,
            far.ask({"serve": {"host": FAR, "wait_s": 0.0, "origin_s": origin_s}}),
            "latlab's own server",
            native,
            found["client"],
        )
        way.try_out()
        yield way


@contextlib.contextmanager
def loopback(origin_s: float, *, core: bool, wait_s: float = 0.0) -> Iterator[Way]:
    """This machine's loopback; with `wait_s`, servers that wait so long before each answer.

    Raises:
        Cannot: there is no loopback.
    """
    with contextlib.ExitStack() as stack:
        near, far = _end(stack), _end(stack)
        tricks = far.ask({"serve": {"host": "127.0.0.1", "wait_s": wait_s, "origin_s": origin_s}})
        files, served_by, native = tricks, "the server in plain Python", None
        if core:
            with contextlib.suppress(Cannot):
                files, native = _web(stack, None, None, "127.0.0.1:0", wait_s)
                served_by = "latlab's own server"
        label = (
            f"emulated: the server waits {wait_s * 1e3:g} ms before it answers;"
            " valid for time to first byte only"
            if wait_s
            else "the loopback"
        )
        way = Way("waits" if wait_s else "loopback", label, near, files, tricks, served_by, native)
        way.try_out()
        yield way


@contextlib.contextmanager
def real() -> Iterator[Way]:
    """A client in the network that this machine has, with the proxies that its user has set."""
    with contextlib.ExitStack() as stack:
        client = _end(stack, dict(os.environ))
        client.ask({"warm": {}})
        yield Way("real", "real network", client)


def _end(stack: contextlib.ExitStack, environment: Mapping[str, str] | None = None) -> Helper:
    """A process with this one's packages; no proxy stands between it and a server of ours."""
    _interpreter()
    own = environment or {
        **{name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")},
        "no_proxy": "*",
    }
    helper = Helper([sys.executable, "-I", "-c", _ENDS, *(os.path.abspath(each) for each in sys.path)], own)  # noqa: PTH100 - "" is the current folder
    stack.callback(helper.close)
    return helper


def _core(stack: contextlib.ExitStack, program: str) -> Helper:
    """One of the core's own programs, as a measurement starts them."""
    _interpreter()
    worker = importlib.util.find_spec("latlab.worker")
    if worker is None or worker.origin is None:
        raise Cannot("the measuring core is not available")
    helper = Helper([sys.executable, "-I", "-S", worker.origin, "--child", program])
    stack.callback(helper.close)
    return helper


def _web(
    stack: contextlib.ExitStack,
    near: Mapping[str, Any] | None,
    far: Mapping[str, Any] | None,
    bind: str,
    wait_s: float = 0.0,
) -> tuple[str, Helper]:
    """The core's own server at one end, its URL, and the core's own client at the other."""
    seconds, nanos = divmod(round(wait_s * 1e9), 1_000_000_000)
    answers_after = {"secs": seconds, "nanos": nanos}
    asked = {"place": {"end": far, "cpus": []}, "bind": bind, "answers_after": answers_after}
    listening = _core(stack, "network.web").ask({"Serve": asked})
    client = _core(stack, "network.client")
    client.ask({"Face": {"place": {"end": near, "cpus": []}, **listening}})
    return f"http://{listening['address']}", client


def _interpreter() -> None:
    if not sys.executable:
        raise Cannot("no Python interpreter could be started for the other side")
