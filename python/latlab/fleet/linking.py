"""One host's end of the links to others: `python -m latlab.fleet.linking`.

It serves as `latlab serve` does, and measures towards others that serve: a JSON object a line in, one out.

    {"bind": "10.0.0.1", "secret": "…"}     listens there; answers {"address": "10.0.0.1:4711"}
    {"towards": "10.0.0.2:4712", "most_s": 0.3}
                                            answers {"rtt_ns": …, "to": …, "from": …}, bytes a second
    {"served": true}                        answers {"refused": …}: requests without the secret

The shared secret never crosses the network: each request proves that it is known (HMAC-SHA256 over a
challenge), as crates/latlab-net/src/serve/guard.rs describes. It ends, and its server with it, when standard
input does.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import sys
import time
from typing import Any, Final

from latlab import _core

#: Round trips of a link. The tenth percentile counts: what delays the processes of both ends is not the link.
_TRIPS: Final = 100
_SHARE: Final = 0.1
#: Of a pair's time; each direction has half of the rest.
_TRIPS_TIME: Final = 0.2
#: Transfers grow until one takes so long, and so many round trips: TCP has found its rate. They become so
#: many times larger at most: small ones are of its slow start.
_TRANSFER_S: Final = 0.02
_TRANSFER_TRIPS: Final = 10
_GROWTH: Final = 4
_FIRST_BYTES: Final = 64 << 10
_MOST_BYTES: Final = 256 << 20
#: Nothing of a link that works takes longer.
_PATIENCE_S: Final = 5.0
_BLOCK: Final = 256 << 10


class LinkError(Exception):
    """A link could not be measured."""


class Client:
    """A connection to another end."""

    def __init__(self, address: str, secret: bytes) -> None:
        """Connects, and asks for the challenge.

        Raises:
            OSError: The other end cannot be reached.
            LinkError: It does not answer as an end does.
        """
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = address
        self._secret = secret
        self._number = 0
        self._buffer = bytearray(_BLOCK)
        self._challenge = ""
        self._socket.sendall(self._request("GET", "/challenge"))
        self._challenge = self._answer().decode("ascii", "replace").strip()

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def round_trip_ns(self, most_s: float) -> float:
        """The tenth percentile of the time of a request for one byte, until its answer is there."""
        times: list[int] = []
        end = time.monotonic() + most_s
        # The first one finds caches and timers cold.
        while len(times) <= _TRIPS and (len(times) < 4 or time.monotonic() < end):  # noqa: PLR2004 - three that are warm
            request = self._request("GET", "/bytes/1")
            begun = time.perf_counter_ns()
            self._socket.sendall(request)
            self._answer()
            times.append(time.perf_counter_ns() - begun)
        own = sorted(times[1:])
        return float(own[int(_SHARE * len(own))])

    def rate(self, rtt_ns: float, most_s: float, *, upload: bool) -> float:
        """Bytes a second in one direction: of the fastest transfer that is long enough."""
        end_ns = time.perf_counter_ns() + most_s * 1e9
        least_ns = max(_TRANSFER_S * 1e9, _TRANSFER_TRIPS * rtt_ns)
        size = _FIRST_BYTES
        while (took_ns := self._took_ns(size, upload=upload)) < least_ns and size < _MOST_BYTES:
            size = min(size * min(_GROWTH, 1 + int(least_ns / took_ns)), _MOST_BYTES)
        # The fastest of two counts, of three if there is time: what disturbs one is not the link.
        took_ns = min(took_ns, self._took_ns(size, upload=upload))
        if time.perf_counter_ns() + took_ns < end_ns:
            took_ns = min(took_ns, self._took_ns(size, upload=upload))
        return size / took_ns * 1e9

    def _took_ns(self, size: int, *, upload: bool) -> int:
        begun = time.perf_counter_ns()
        (self._put if upload else self._get)(size)
        return time.perf_counter_ns() - begun

    def _get(self, size: int) -> None:
        self._socket.sendall(self._request("GET", f"/bytes/{size}"))
        self._answer(keep=False)

    def _put(self, size: int) -> None:
        self._socket.sendall(self._request("POST", "/sink", size))
        block = memoryview(self._buffer)
        for begin in range(0, size, _BLOCK):
            self._socket.sendall(block[: min(_BLOCK, size - begin)])
        self._answer()

    def _request(self, method: str, target: str, size: int = 0) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._address}"]
        if self._challenge:
            signed = f"latlab serve 1\n{self._challenge}\n{self._number}\n{method}\n{target}"
            code = hmac.new(self._secret, signed.encode(), hashlib.sha256).hexdigest()
            lines.append(f"Authorization: latlab {self._challenge} {self._number} {code}")
            self._number += 1
        if method == "POST":
            lines.append(f"Content-Length: {size}")
        return "\r\n".join([*lines, "", ""]).encode()

    def _answer(self, *, keep: bool = True) -> bytes:
        """The body of an answer, which is read to its end.

        Raises:
            LinkError: There is none, or it is a refusal.
        """
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            more = self._socket.recv(_BLOCK)
            if not more or len(data) > _BLOCK:
                raise LinkError("the other end closed the connection")
            data += more
        first, *fields = data[:end].decode("latin-1").split("\r\n")
        if " 200 " not in f"{first} ":
            raise LinkError(f"the other end refused: {first[:80]}")
        length = next((field for field in fields if field.lower().startswith("content-length:")), "x:")
        left = int(length.partition(":")[2]) - (len(data) - end - 4)
        body = data[end + 4 :]
        while left > 0:
            count = self._socket.recv_into(self._buffer, min(left, _BLOCK))
            if not count:
                raise LinkError("the other end closed the connection")
            left -= count
            if keep:
                body += self._buffer[:count]
        return body


class End:
    """What can be asked."""

    def __init__(self) -> None:
        self._server: _core.Server | None = None
        self._secret = b""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Does what is asked for.

        Raises:
            OSError: The network does not allow it.
            ValueError: The address is not one of this host.
            LinkError: The link does not work.
        """
        if "bind" in asked:
            self._secret = asked["secret"].encode()
            host = f"[{asked['bind']}]" if ":" in asked["bind"] else asked["bind"]
            # Its threads get another CPU than this one: if both ends of a round trip share a CPU only now and
            # then, as on one machine, it has two lengths.
            both = cpus()
            _stay_on(both[-1:])
            self._server = _core.Server(f"{host}:0", self._secret)
            _stay_on(both[:1])
            return {"address": json.loads(self._server.listening)["address"]}
        if "towards" in asked:
            client = Client(asked["towards"], self._secret)
            try:
                rtt_ns = client.round_trip_ns(_TRIPS_TIME * asked["most_s"])
                most_s = (1 - _TRIPS_TIME) / 2 * asked["most_s"]
                rates = {way: client.rate(rtt_ns, most_s, upload=way == "to") for way in ("to", "from")}
                return {"rtt_ns": rtt_ns, **rates}
            finally:
                client.close()
        served = json.loads((self._server.close() if self._server is not None else None) or "{}")
        return {"refused": served.get("refused", 0)}


def cpus() -> list[int]:
    """The last two CPUs that this process may use, or the only one; none where the system does not say."""
    return sorted(os.sched_getaffinity(0))[-2:] if hasattr(os, "sched_getaffinity") else []


def _stay_on(own: list[int]) -> None:
    if own:
        os.sched_setaffinity(0, own)


def main() -> None:
    """Answers until there is no more input."""
    end = End()
    for line in sys.stdin:
        try:
            answer = end.answer(json.loads(line))
        except TimeoutError:
            answer = {"failed": f"no answer within {_PATIENCE_S:.0f} s"}
        except (OSError, ValueError, LinkError) as error:
            answer = {"failed": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
