"""Blocks that were read for the first time, and again: how often a reading takes how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from latlab.run.findings import findings, found, positive
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics import disk
from latlab.units import format_bytes, format_count
from latlab.view.plot import Stair, Stairs
from latlab.view.points import quantile
from latlab.view.prose import sentence
from latlab.view.table import Listing, listed
from latlab.view.topic import Chart, Topic

PROBE: Final = "storage.first_touch"
_READINGS: Final = ("first", "second")

Readings: TypeAlias = Mapping[int, Mapping[str, Record]]


def readings(run: Run) -> Readings:
    """Both readings by size of block, where both are there."""
    own: dict[int, dict[str, Record]] = {}
    for record in disk.timed(run, PROBE):
        if record.histogram is not None and record.point.operation in _READINGS and record.point.block_bytes:
            own.setdefault(record.point.block_bytes, {})[record.point.operation or ""] = record
    both = {size: pair for size, pair in sorted(own.items()) if len(pair) == len(_READINGS)}
    return {size: {word: pair[word] for word in _READINGS} for size, pair in both.items()}


def _stairs(own: Readings) -> Stairs:
    """One panel a size on the same axes: what moves to the right is slower."""
    return Stairs(
        [
            Stair(f"blocks of {format_bytes(size)}", word, f"{word}, {format_bytes(size)}", record)
            for size, pair in own.items()
            for word, record in pair.items()
        ],
        x="a block takes at least",
        y="share of blocks",
        about="Staircase charts, both axes logarithmic: share of blocks that take at least a time, first"
        " reading and second.",
        names=_READINGS,
        fewer=70,
        height=300,
    )


def prose(run: Run) -> tuple[str, ...]:
    """What the probe concluded, where no rule is broken."""
    if disk.notices(run, PROBE) or not readings(run):
        return ()
    reported = [entry.text("detail") for entry in findings(run, PROBE).sections("ratios")]
    lines = tuple(_said(text) for text in reported if text)
    return lines or ("Too few blocks were read twice to compare.",)


def _said(text: str) -> str:
    return sentence(f"{text[:1].upper()}{text[1:]}")


def _listings(run: Run) -> tuple[Listing, ...]:
    return listed(
        "First reading and second",
        list(readings(run).items()),
        ("blocks of", "text", lambda at: format_bytes(at[0])),
        ("first", "ns", lambda at: at[1]["first"].value),
        ("p99", "ns", lambda at: quantile(at[1]["first"], "p99")),
        ("second", "ns", lambda at: at[1]["second"].value),
        ("p99", "ns", lambda at: quantile(at[1]["second"], "p99")),
        ("total time, times", "number", lambda at: positive(found(at[1]["first"]), "ratio")),
        ("95 % from", "number", lambda at: _end(at[1]["first"], 0)),
        ("95 % to", "number", lambda at: _end(at[1]["first"], 1)),
    )


def _end(record: Record, which: int) -> float | None:
    ends = found(record).at("interval")
    whole = isinstance(ends, list | tuple) and len(ends) == 2  # noqa: PLR2004 - both ends
    return end if whole and isinstance(end := ends[which], int | float) else None


def _evidence(run: Run) -> Iterator[str]:
    """With what cannot be known, and what is left for another time."""
    if since := findings(run, PROBE).text("since"):
        yield _said(since)
    regions, sizes = (
        [
            number
            for r in disk.timed(run, PROBE)
            if (number := found(r).number(name)) is not None and number >= 0
        ]
        for name in ("left_regions", "left_bytes")
    )
    if regions and sizes:
        yield (
            f"Each region can be read first only once; {format_count(min(regions))} regions "
            f"({format_bytes(min(sizes))}) are left."
        )
    yield from disk.evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="storage_first_touch",
        title="What does the first read of a block cost?",
        caption="The same blocks, read for the first time in this run and again immediately after. Where "
        "the lines diverge, first reads waited for something that second reads did not.",
        probe=PROBE,
        measured=readings,
        picture=_stairs,
        table=lambda own: _stairs(own).table("a block takes"),
    ),
    prose=prose,
    listings=_listings,
    notices=lambda run: disk.notices(run, PROBE),
    evidence=_evidence,
)
