"""What `network.transfer` concluded, read without trust, for the topics about it."""

from __future__ import annotations

from dataclasses import dataclass

from latlab.run.findings import findings, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.units import format_bytes

PROBE = "network.transfer"
#: What lies between client and server, by the point's `path`; what was asked for comes first.
PATHS = {"emulated": "emulated path", "loopback": "loopback"}
#: The same of probes that ask the server which the user names too.
ALL_PATHS = {"url": "URL", **PATHS}
CONNECTIONS = {"new": "new connections", "kept": "kept connections"}
PHASES = ("resolve", "connect", "tls", "request", "first-byte", "last-byte")
#: More of anything than this is no measurement.
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """Transfers that differ in nothing but how many there are at once."""

    path: str
    file_bytes: int
    connections: str
    protocol: str

    @property
    def name(self) -> str:
        """`100 KiB, new connections, emulated path`."""
        protocol = "" if self.protocol == "http/1.1" else f", {self.protocol}"
        return f"{self.size}, {CONNECTIONS[self.connections]}{protocol}, {PATHS[self.path]}"

    @property
    def size(self) -> str:
        """`100 KiB`."""
        return format_bytes(self.file_bytes)


def kind_of(row: Machine) -> Kind | None:
    """The kind that a row is about; none when it says something unknown."""
    path, connections, protocol = (row.text(name) for name in ("path", "connections", "protocol"))
    size = row.integer("file_bytes")
    known = path in PATHS and connections in CONNECTIONS and protocol in {"http/1.1", "https", "http/2"}
    if not known or size is None or size <= 0:
        return None
    return Kind(str(path), size, str(connections), str(protocol))


def rows(run: Run, name: str) -> list[Machine]:
    """The rows of one of its conclusions, of the path that was asked for before the loopback's."""
    own = [row for row in findings(run, PROBE).sections(name) if row.text("path") in PATHS]
    places = list(PATHS)
    return sorted(own, key=lambda row: places.index(row.text("path") or ""))


def count(row: Machine, name: str) -> int | None:
    """A small whole number above zero."""
    value = row.number(name)
    return round(value) if value is not None and 1 <= value <= _MOST else None


def ends(row: Machine, name: str) -> tuple[float, float] | None:
    """An interval of figures."""
    both = row.at(name)
    if not isinstance(both, list) or len(both) != 2:  # noqa: PLR2004 - two ends
        return None
    low, high = (positive(Machine({"end": end}), "end") for end in both)
    return None if low is None or high is None or low > high else (low, high)


def route_words(run: Run, path: str) -> str:
    """What a path was, as its records say."""
    for record in run.records:
        if record.probe == PROBE and record.point.path == path:
            own = [flag for flag in record.flags if flag.startswith("emulated: ")]
            if own:
                return own[0]
    return ""
