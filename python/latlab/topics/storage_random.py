"""Random blocks of a disk: how often one takes how long, and what more of them under way gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from latlab.run.findings import findings, found, positive
from latlab.run.model import Machine, Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_bytes, format_count, format_ns
from latlab.view.plot import Axis, Beside, Plane, Stair, Stairs
from latlab.view.points import Spot, is_disturbed, quantile
from latlab.view.table import Listing, Table, listed, table_of
from latlab.view.topic import Chart, StairsOfSeveral, Topic

READ, WRITE = "storage.read.random", "storage.write.random"
_VERBS: Final = {READ: "read", WRITE: "write"}
_BLOCK: Final = 4096
#: One request at a time, and what saturates most devices.
_DEPTHS: Final = (1, 32)
_MOST_CURVES: Final = 6
#: Of the highest rate.
_NEARLY: Final = 0.95
#: A queue that needs the deepest that was tried may need a deeper one.
_TRIED: Final[Mapping[bool | None, str]] = {True: "yes", False: "no: more depth may give more"}

Kinds: TypeAlias = dict[str, list[Record]]


def distributions(run: Run) -> dict[str, Record]:
    """Records of 4 KiB blocks at the depths that are drawn, by name."""
    drawn: dict[str, Record] = {}
    for probe, verb in _VERBS.items():
        for depth in _DEPTHS:
            for record in disk.timed(run, probe):
                fits = record.point.block_bytes == _BLOCK and (record.point.queue_depth or 1) == depth
                if fits and record.histogram is not None:
                    drawn.setdefault(f"{verb}, depth {depth}", record)
    return drawn


def _stairs(own: Mapping[str, Record]) -> Stairs:
    return Stairs(
        [Stair("", name, name, record) for name, record in own.items()],
        x="a block of 4 KiB takes at least this long",
        y="share of blocks",
        about="Staircase chart, both axes logarithmic: share of random 4 KiB blocks that take at least a"
        " time.",
    )


def kinds(run: Run) -> Kinds:
    """Records by block size and operation, ascending in depth; the smallest blocks first."""
    own: dict[tuple[int, str], list[Record]] = {}
    for probe, verb in _VERBS.items():
        for record in disk.timed(run, probe):
            if record.point.queue_depth and record.point.block_bytes and rate(record) is not None:
                own.setdefault((record.point.block_bytes, verb), []).append(record)
    return {
        f"{verb} {format_bytes(size)}": sorted(records, key=lambda record: record.point.queue_depth or 0)
        for (size, verb), records in sorted(own.items())[:_MOST_CURVES]
    }


def rate(record: Record) -> float | None:
    """Blocks a second."""
    return positive(found(record), "rate_per_s")


def of_smallest(own: Kinds) -> Kinds:
    """Those of which latency is drawn: of the smallest block."""
    smallest = min(records[0].point.block_bytes or 0 for records in own.values())
    return {name: records for name, records in own.items() if records[0].point.block_bytes == smallest}


def _by_depth(own: Kinds) -> Beside:
    """Rate against depth, and latency against depth: median solid, p99 thin."""
    rates = {
        name: [
            Spot(r.point.queue_depth or 1, per_s, per_s, per_s, r.samples, is_disturbed(r))
            for r in records
            if (per_s := rate(r)) is not None
        ]
        for name, records in own.items()
    }
    medians, slow = (
        {name: list(_at(records, which)) for name, records in of_smallest(own).items()}
        for which in ("p50", "p99")
    )
    depths = sorted({int(spot.x) for spots in rates.values() for spot in spots})
    ticks = tuple(depths) if len(depths) > 1 else (depths[0], 2 * depths[0])
    x = Axis("requests under way", "count", 1.1, 1.1, ticks=ticks)
    plane = partial(Plane, x, width=312, height=280, columns=2)
    left = plane(
        Axis("blocks a second", "per_s"), rates, "depth {x}: {y} a second", title="requests completed"
    )
    right = plane(
        Axis("one block", "ns"),
        medians,
        "depth {x}: {y}",
        slow=slow,
        names=list(rates),
        title="how long each takes: median filled, p99 hollow",
    )
    about = (
        "Two line charts, axes logarithmic: blocks a second and time of one block against requests"
        " under way. "
    )
    return Beside((left, right), f"{about}{'; '.join(map(_ends, own, own.values()))}.")


def _at(records: Sequence[Record], which: str) -> Iterator[Spot]:
    for record in records:
        spot = disk.latency(record, record.point.queue_depth or 1, which)
        if spot is not None:
            yield spot


def _ends(name: str, records: Sequence[Record]) -> str:
    ends = [
        f"{format_count(rate(r))} a second at depth {r.point.queue_depth}" for r in (records[0], records[-1])
    ]
    return f"{name}: {' to '.join(dict.fromkeys(ends))}"


def _depths_table(own: Kinds) -> Table:
    return table_of(
        [(name, record) for name, records in own.items() for record in records],
        ("blocks", "text", lambda at: at[0]),
        ("asked depth", "count", lambda at: at[1].point.queue_depth),
        ("achieved depth", "number", lambda at: positive(found(at[1]), "achieved_depth")),
        ("a second", "count", lambda at: rate(at[1])),
        ("bytes a second", "bytes_per_s", lambda at: positive(found(at[1]), "bytes_per_s")),
        ("median", "ns", lambda at: at[1].value),
        ("p99", "ns", lambda at: quantile(at[1], "p99")),
        ("blocks timed", "count", lambda at: at[1].samples),
        ("engine", "text", lambda at: at[1].engine or at[1].point.engine),
    )


def prose(run: Run) -> Iterator[str]:
    """One at a time, then as many as do nearly as much as any number: beyond, requests only wait."""
    alone = distributions(run).get("read, depth 1")
    if alone is None or alone.value is None or not disk.sound(run, [alone]):
        return
    p99 = quantile(alone, "p99")
    slow = f", one in a hundred takes {format_ns(p99)} or longer" if p99 else ""
    yield f"A random block of 4 KiB is read in {format_ns(alone.value)}{slow}."
    depths = disk.sound(run, kinds(run).get("read 4 KiB", []))
    if len(depths) < 2:  # noqa: PLR2004 - nothing to compare
        return
    best, one = max(rate(record) or 0.0 for record in depths), depths[0]
    most = next(record for record in depths if (rate(record) or 0.0) >= _NEARLY * best)
    if most is one:
        yield "More requests in flight gain nothing here."
    else:
        yield (
            f"With {format_count(most.point.queue_depth)} in flight the disk reads "
            f"{format_count(rate(most))} a second instead of {format_count(rate(one))}, and each takes "
            f"{format_ns(most.value)}."
        )


def _listings(run: Run) -> Iterator[Listing]:
    def known(entry: Machine) -> bool:
        return all(positive(entry, name) for name in ("block_bytes", "depth", "rate_per_s"))

    yield from listed(
        "Depth at which the disk reaches 90 % of the highest rate measured",
        [
            (verb, entry)
            for probe, verb in _VERBS.items()
            for entry in findings(run, probe).sections("saturation")
            if known(entry)
        ],
        ("operation", "text", lambda at: at[0]),
        ("block", "bytes", lambda at: positive(at[1], "block_bytes")),
        ("from depth", "count", lambda at: positive(at[1], "depth")),
        ("blocks a second there", "count", lambda at: positive(at[1], "rate_per_s")),
        ("deeper ones were tried", "text", lambda at: _TRIED.get(at[1].flag("reached"))),
    )
    yield from disk.device_times(run, READ, WRITE)


def _evidence(run: Run) -> Iterator[str]:
    drawn = distributions(run)
    yield from disk.tail_words(drawn.get("read, depth 1"))
    yield from disk.evidence(run, READ, WRITE)
    yield from disk.commands(drawn.values())


TOPIC: Final = Topic(
    Chart(
        id="storage_random",
        title="How often is a random block of the disk slow?",
        caption="Reads and writes bypass the page cache. Shapes mark 1 in 10, 1 in 100 and so on, and the"
        " slowest block.",
        probe=READ,
        measured=distributions,
        picture=_stairs,
        table=lambda own: _stairs(own).table("a block takes"),
        several=StairsOfSeveral(distributions, "a block of 4 KiB takes at least this long"),
    ),
    others=(
        Chart(
            id="storage_depth",
            title="How many requests should be in flight at once?",
            caption="The number of requests in flight is held constant. The achieved number follows "
            "from rate and latency (Little's law) and is in the table. Where the left lines are flat, "
            "more requests only wait.",
            probe=READ,
            measured=kinds,
            picture=_by_depth,
            table=_depths_table,
        ),
    ),
    probes=(READ, WRITE),
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, READ, WRITE),
    evidence=_evidence,
)
