"""How fast one core computes, in five kinds of code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_ns
from latlab.view.plot import yes_or_no
from latlab.view.points import is_disturbed, median_and_ends, quantile, with_figures
from latlab.view.table import Listing, listed
from latlab.view.topic import Topic

PROBE: Final = "cpu.mix"
_KINDS: Final = {
    "integer-chain": "dependent integer multiplications and additions",
    "unpredictable-branch": "branches that cannot be predicted",
    "interpreter": "instructions of a byte-code interpreter",
    "float-chain": "dependent floating-point multiplications and additions",
    "float-sums": "independent floating-point multiplications and additions",
}


def records(run: Run) -> list[Record]:
    """One record a kind of code, in the order of the probe."""
    found = {record.point.operation: record for record in with_figures(run, PROBE, "batch_mean")}
    return [found[kind] for kind in _KINDS if kind in found]


def prose(run: Run) -> Iterator[str]:
    """What a branch that is predicted wrongly adds, and what overlap saves."""
    ns = {record.point.operation: quantile(record, "p50") for record in records(run)}
    chain, branch = ns.get("integer-chain"), ns.get("unpredictable-branch")
    if chain and branch and branch > chain:
        yield (
            f"A branch that cannot be predicted adds {format_ns(branch - chain)} to a step: half of them are"
            " predicted wrongly."
        )
    apart, together = ns.get("float-chain"), ns.get("float-sums")
    if apart and together and apart > together:
        times = apart / together
        yield f"Independent floating-point steps run {times:.1f} times as fast as dependent ones."


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "Computing on one core, by kind of code",
        records(run),
        ("code", "text", lambda record: _KINDS[str(record.point.operation)]),
        *median_and_ends("ns", "one step, median"),
        ("samples", "count", lambda record: record.samples),
        ("disturbed", "text", lambda record: yes_or_no(is_disturbed(record))),
    )


TOPIC: Final = Topic(
    id="cpu_mix",
    title="How fast does one core compute?",
    probes=(PROBE,),
    shown=records,
    prose=prose,
    listings=_listings,
)
