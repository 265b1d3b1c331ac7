"""What keeps programs from this CPU, and what that does to every figure."""

from __future__ import annotations

from latlab.charts import noise_causes, noise_spectrum, noise_timeline
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run import disturbances
from latlab.run.disturbances import PROBE, cause_name
from latlab.run.model import Record
from latlab.run.noise import Noise
from latlab.run.run import Run
from latlab.units import format_count, format_seconds
from latlab.view.evidence import evidence
from latlab.view.points import why_absent
from latlab.view.table import Cell, Column, Listing, Table

_CAUSES_CAPTION = (
    "Each gap counts for the cause that covers most of it. What no evidence names is unexplained and has a"
    " row of its own."
)
_TIME_CAPTION = (
    "One point a gap, the longest 120 of each cause. A row of points at one height and equal distances is"
    " periodic."
)
_SPECTRUM_CAPTION = (
    "How far the gaps are in step with a rate: 100 % if all of them came at the same phase of its period."
    " Above the dotted line once in twenty by chance. A comb also shows at multiples of its rate; named are"
    " the periods that were found."
)
#: Lengths of operations for which it is said how many meet a gap.
_OPERATIONS = (("100 ns", 1e2), ("1 µs", 1e3), ("10 µs", 1e4), ("100 µs", 1e5))


def section(run: Run, probes: Probes) -> Section:
    """How often, for how long, by what; then what the standing causes do to figures."""
    heard = disturbances.heard_in(run)
    noise = None if heard is None else heard[1]
    return Section(
        id="noise",
        title="What keeps a program from this CPU?",
        sentences=() if noise is None else _sentences(noise),
        listings=() if noise is None else _listings(noise),
        figures=(
            *figure(run, noise_causes.ID, _CAUSES_CAPTION),
            *figure(run, noise_timeline.ID, _TIME_CAPTION),
            *figure(run, noise_spectrum.ID, _SPECTRUM_CAPTION),
        ),
        evidence=() if heard is None else _evidence(run, *heard),
        methods=probes.methods_of(PROBE),
        absence=why_absent(run, PROBE) if noise is None else "",
    )


def _sentences(noise: Noise) -> tuple[str, ...]:
    explained = disturbances.with_causes(noise.explained)
    return (
        disturbances.verdict(noise),
        *((f"{explained[:1].upper()}{explained[1:]}.",) if explained else ()),
    )


def _listings(noise: Noise) -> tuple[Listing, ...]:
    standing = disturbances.standing_causes(noise)
    everything = disturbances.Standing("", noise.gaps / noise.seconds, noise.gaps_ns / max(noise.gaps, 1))
    rows = [(cause_name(one.cause), one) for one in standing]
    rows.append(("all gaps", everything))
    columns = (
        Column("what comes"),
        Column("times a second", "number"),
        Column("usually takes", "ns"),
        *(Column(f"hit, of {name}") for name, _ in _OPERATIONS),
        Column("in the p99.9 from", "ns"),
        Column("of every mean", "share"),
    )
    listed: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            float(f"{one.hz:.4g}"),
            # Of all of them together there is a mean, and nothing that is usual.
            None if one is everything else one.gap_ns,
            *(f"1 in {format_count(one.one_in(length))}" for _, length in _OPERATIONS),
            one.touches_from_ns(0.999),
            one.share,
        )
        for name, one in rows
        if one.hz > 0
    )
    title = "What comes regularly, and how many operations of each length meet it"
    return (Listing(title, Table(columns, listed)),) if listed else ()


def _evidence(run: Run, record: Record, noise: Noise) -> tuple[str, ...]:
    looked = (
        f"{format_count(noise.gaps)} gaps among {format_count(record.work.ops)} looks at the clock in"
        f" {format_seconds(noise.seconds)} on CPU {noise.cpu}."
    )
    # The first line counts operations, which these are not.
    return (looked, *evidence(run, PROBE)[1:], *_levels(noise))


def _levels(noise: Noise) -> tuple[str, ...]:
    used = [rung.level for rung in noise.levels if rung.available]
    missing = [f"without {rung.level}: {rung.reason}" for rung in noise.levels if not rung.available]
    return tuple(
        f"{text[:1].upper()}{text[1:]}."
        for text in [f"causes from {', '.join(reversed(used)) or 'nothing'}", *missing]
    )
