"""Two variables on one cache line by accident."""

from __future__ import annotations

from typing import Final

from latlab.run.findings import findings, positive, stated
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_digits, format_ns
from latlab.view.plot import yes_or_no
from latlab.view.points import is_disturbed, median_and_ends, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "memory.false_sharing"
_WRITES: Final = {"store": "store", "add": "atomic add"}


def records(run: Run) -> list[Record]:
    """By distance of the two variables."""
    return sorted(
        with_figures(run, PROBE, "batch_mean"),
        key=lambda r: (r.point.operation or "", r.point.threads or 1, r.point.offset_bytes or 0),
    )


def _where(record: Record) -> str:
    if (record.point.threads or 1) == 1:
        return "one thread alone"
    apart = record.point.offset_bytes
    return f"{format_bytes(apart)} apart" if apart is not None else ""


def prose(run: Run) -> list[str]:
    """The plain store first: it is what programs do without thinking of it."""
    found = []
    for operation, called in (("store", "store to"), ("add", "add atomically to")):
        for entry in findings(run, PROBE).sections("operations"):
            same, own = positive(entry, "same_line_ns"), positive(entry, "own_line_ns")
            times = stated(entry, "slowdown", lambda value: format_digits(value, 2))
            if entry.text("operation") == operation and same is not None and own is not None and times:
                found.append(
                    f"Two threads that {called} their own variables need {format_ns(same)} each time "
                    f"when these share a line and {format_ns(own)} when they do not: {times} times as "
                    "long."
                )
    return found[:2]


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Threads that each write their own variable",
        records(run),
        ("write", "text", lambda r: _WRITES.get(r.point.operation or "", r.point.operation)),
        ("the two variables", "text", _where),
        ("threads", "count", lambda r: r.point.threads or 1),
        *median_and_ends("ns", "one write, median"),
        ("disturbed", "text", lambda r: yes_or_no(is_disturbed(r))),
    )


TOPIC: Final = Topic(
    id="false_sharing",
    title="What does false sharing of a cache line by two threads cost?",
    probes=(PROBE,),
    shown=records,
    prose=prose,
    listings=_listings,
)
