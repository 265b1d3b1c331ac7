"""Where in the space of a probe's parameters a record was taken, and how people write it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from latlab import units
from latlab.run.values import Count, Model


class Point(Model, frozen=True, kw_only=True, omit_defaults=True):
    """Where in the space of a probe's parameters a record was taken. A field that does not apply is None."""

    working_set_bytes: Count | None = None
    pages: str | None = None
    order: str | None = None
    draw: Count | None = None
    nodes: Count | None = None
    threads: Count | None = None
    operation: str | None = None
    timing: str | None = None
    stride_bytes: Count | None = None
    isa: str | None = None
    clock: str | None = None
    size_bytes: Count | None = None
    elements: Count | None = None
    chains: Count | None = None
    distance: Count | None = None
    offset_bytes: Count | None = None
    delay_steps: Count | None = None
    read_percent: Count | None = None
    from_cpu: Count | None = None
    to_cpu: Count | None = None
    placement: str | None = None
    between: str | None = None
    sleep_ns: Count | None = None
    allocator: str | None = None
    state: str | None = None
    block_bytes: Count | None = None
    queue_depth: Count | None = None
    path: str | None = None
    engine: str | None = None
    file_bytes: Count | None = None
    files: Count | None = None
    rate_per_s: Count | None = None
    transport: str | None = None
    message_bytes: Count | None = None
    concurrency: Count | None = None
    connections: str | None = None
    protocol: str | None = None
    streams: Count | None = None
    sync: str | None = None

    def fields(self) -> dict[str, int | str]:
        """The fields that apply, in the order of the schema."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in pairs if value is not None}

    def label(self) -> str:
        """A short name for tables and progress: `16 MiB, 4k pages, random`."""
        return _label(self)


@lru_cache(maxsize=1 << 13)
def _label(point: Point) -> str:
    """Of each point once: runs that are compared have the same ones."""
    own = point.fields()
    if "from_cpu" in own and "to_cpu" in own:
        own["to_cpu"] = f"CPU {own.pop('from_cpu')} and {own['to_cpu']}"
    return ", ".join(text(own[name]) for name, text in _LABEL.items() if name in own)


def _counted(word: str) -> Callable[[Any], str]:
    return lambda number: f"{number} {word}{'' if number == 1 else 's'}"


#: The parts of a label in their order: field, and its value as people write it.
_LABEL: Final[dict[str, Callable[[Any], str]]] = {
    "clock": str,
    "operation": str,
    "allocator": str,
    "files": _counted("file"),
    "file_bytes": lambda size: f"file {units.format_bytes_as_asked(size)}",
    "block_bytes": lambda size: f"block {units.format_bytes_as_asked(size)}",
    "queue_depth": lambda depth: f"depth {depth}",
    "rate_per_s": lambda rate: f"{rate} a second",
    "transport": str,
    "message_bytes": lambda size: f"messages of {units.format_bytes_as_asked(size)}",
    "streams": lambda count: f"{count} stream{'' if count == 1 else 's'}",
    "concurrency": lambda many: f"{many} at once",
    "connections": lambda which: f"{which} connections",
    "protocol": str,
    "path": str,
    "sync": str,
    "engine": str,
    "size_bytes": units.format_bytes_of_point,
    "elements": lambda number: f"{number} elements",
    "sleep_ns": lambda ns: f"after {units.format_ns(ns)}",
    "state": str,
    "between": str,
    "placement": str,
    "to_cpu": str,
    "working_set_bytes": units.format_bytes_of_point,
    "nodes": lambda number: f"{number} nodes",
    "stride_bytes": lambda size: f"stride {units.format_bytes(size)}",
    "pages": lambda size: f"{size} pages",
    "order": str,
    "chains": _counted("chain"),
    "distance": lambda ahead: f"prefetch {ahead} ahead" if ahead else "no prefetch",
    "offset_bytes": lambda size: f"offset {units.format_bytes(size)}",
    "read_percent": lambda share: f"{share} % reads",
    "delay_steps": lambda steps: f"delay {steps}",
    "timing": lambda how: {"each": "one by one", "batch": "in batches"}.get(how, how),
    "threads": _counted("thread"),
}
