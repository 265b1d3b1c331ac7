"""A run file's lines as Python sees them: frozen structs that mirror the Rust types, which own the schema.

Decoding is strict: a wrong type is an error, an unknown field of a newer minor version is ignored, and NaN or
infinity cannot occur, since JSON has neither. What the machine is stays JSON (`Machine`): it grows with every
reader of a system, and an old run must stay readable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from latlab import units
from latlab.errors import RunFileError
from latlab.run.machine import Estimate, Level, Machine
from latlab.run.meanwhile import Meanwhile
from latlab.run.point import Point
from latlab.run.values import LARGEST_INTEGER, Count, Json, Model, check_json
from latlab.text import clean

#: What readers of a run take from here, though it is written in a file of its own.
__all__ = ["LARGEST_INTEGER", "Count", "Estimate", "Json", "Level", "Machine", "Model", "Point"]

SCHEMA_NAME: Final = "latlab.run"
SCHEMA_MAJOR: Final = 2
SCHEMA_VERSION: Final = "2.0"

Unit: TypeAlias = Literal["ns", "bytes_per_s"]
Rank: TypeAlias = Literal["headline", "curve", "detail", "once"]
Reach: TypeAlias = Literal["first", "private", "shared", "disturbances"]
Kind: TypeAlias = Literal["batch_mean", "per_op", "derived", "absent"]
StoppedBy: TypeAlias = Literal[
    "narrow_interval", "deadline", "planned", "interrupted", "not_reached", "unsupported", "failed"
]
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
"""The quantiles that a summary may hold, by the name of their field."""


class Tool(Model, frozen=True, kw_only=True):
    """What made the file."""

    version: str
    build: str
    commit: str | None = None


class Settings(Model, frozen=True, kw_only=True):
    """What the user asked for, after defaults."""

    profile: str = "standard"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    dir: str | None = None
    file: str | None = None
    first_touch: str | None = None
    drop_caches: bool = False
    budget_s: float | None = None
    max_bytes: Count | None = None
    cpus: tuple[Count, ...] | None = None
    delay_ms: float | None = None
    rate_mbit: float | None = None
    distance: str | None = None
    url: str | None = None
    secret_file: str | None = None
    requests_per_s: Count | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    gentle: bool = False

    def __post_init__(self) -> None:
        """Keeps the seed to the 64 bits that the core knows."""
        if self.seed > LARGEST_INTEGER:
            raise ValueError("the seed has more than 64 bits")


class PlannedProbe(Model, frozen=True, kw_only=True):
    """One line of the plan; sizes in bytes."""

    id: str
    points: Count
    seconds: float
    memory_bytes: Count
    written_bytes: Count
    cpus: Count


class Finding(Model, frozen=True, kw_only=True, omit_defaults=True):
    """One thing on this machine that distorts figures."""

    id: str
    severity: Literal["note", "caution", "warning"]
    title: str
    effect: str
    remedy: str | None = None


class ClockOverhead(Model, frozen=True, kw_only=True):
    """What an empty timed region reads, ns."""

    mean: float
    p50: float
    p99: float
    min: float
    samples: Count


class ClockFacts(Model, frozen=True, kw_only=True):
    """The clock as it measured itself."""

    kind: str
    fences: str
    ticks_per_ns: float
    rate_error_ppm: float
    quantum_ns: float
    overhead_ns: ClockOverhead
    invariant: bool | None = None
    why_not_hardware: str | None = None
    backwards: Count = 0


class Absence(Model, frozen=True, kw_only=True):
    """Why a record has no figure: a stable kind, and one sentence."""

    kind: str
    text: str


class Summary(Model, frozen=True, kw_only=True, omit_defaults=True):
    """Order statistics and moments, in the record's unit.

    A quantile without enough samples is None; a figure names it in `refused`, with the reason.
    """

    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    p9999: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    intervals: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    between_blocks: tuple[float, float] | None = None


class EncodedHistogram(Model, frozen=True, kw_only=True):
    """Counts of single operations; `latlab.run.Record.buckets` decodes them."""

    encoding: str
    unit: str
    data: Annotated[str, msgspec.Meta(max_length=2**20)]


class TailSample(Model, frozen=True, kw_only=True, omit_defaults=True):
    """A single slow operation; `at_ns` since the run began."""

    at_ns: float
    value: float
    cause: str | None = None


class TailCause(Model, frozen=True, kw_only=True):
    """One cause's share of a tail; `explained_ns` of its `ns` are covered by evidence."""

    cause: str
    count: Count
    ns: float
    explained_ns: float


class TailPart(Model, frozen=True, kw_only=True):
    """A cause's part in the time of all slow samples of what waits; more of it may be its own, at most."""

    cause: str
    ns: float
    at_most_more_ns: float | None = None


class TailCauses(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What the samples above a threshold are made of; `unexplained` is a row of its own."""

    level: str
    threshold_ns: float
    causes: tuple[TailCause, ...]
    parts: tuple[TailPart, ...] = ()


class BlockSummary(Model, frozen=True, kw_only=True, omit_defaults=True):
    """Samples that were taken in one go."""

    at_ns: float
    duration_ns: float
    samples: Count
    p50: float
    core_ghz: float | None = None
    disturbed: bool = False


class Work(Model, frozen=True, kw_only=True):
    """What was done, counted."""

    ops: Count = 0
    bytes: Count = 0
    device_bytes: Count | None = None
    convention: str | None = None


class Check(Model, frozen=True, kw_only=True):
    """One proof that the work was done."""

    name: str
    ok: bool
    detail: str


class Observed(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What else happened on the measuring thread. None = could not be read."""

    voluntary_switches: Count | None = None
    involuntary_switches: Count | None = None
    minor_faults: Count | None = None
    major_faults: Count | None = None
    run_queue_delay_ns: Count | None = None
    steal_ns: Count | None = None
    throttled_ns: Count | None = None


class Overhead(Model, frozen=True, kw_only=True):
    """Timer overhead in a record."""

    region_ns: float
    share: float


class Channel(Model, frozen=True, kw_only=True):
    """A part of each operation with a distribution of its own: a phase, or the time in service."""

    name: str
    samples: Count
    summary: Summary
    histogram: EncodedHistogram | None = None


class RoundFigure(Model, frozen=True, kw_only=True):
    """A figure's median in one of the rounds that it was measured in, in the record's unit."""

    round: Count
    cpu: Count
    p50: float


class CpuFigure(Model, frozen=True, kw_only=True):
    """A figure as one CPU has it: the median over its rounds, in the record's unit."""

    cpu: Count
    p50: float
    rounds: Count


class Spread(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What a figure's rounds differ by: standard deviations of the logarithm (0.05 is 5 %).

    `differ` is there where its CPUs differ by more than run-to-run variation, and names the reason.
    """

    within: float | None = None
    rounds: float | None = None
    cpus: float | None = None
    by_cpu: tuple[CpuFigure, ...] = ()
    differ: str | None = None


class Record(Model, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="record"):
    """One point of one probe: a line of the file, which one round measured, or a figure, which all did.

    A line has `round` and `cpu`; a figure has `rounds` and `spread`.
    """

    probe: str
    method: Count
    unit: Unit
    kind: Kind
    stopped_by: StoppedBy
    point: Point = Point()
    rank: Rank | None = None
    reach: Reach | None = None
    round: Count | None = None
    cpu: Count | None = None
    rounds: tuple[RoundFigure, ...] = ()
    spread: Spread | None = None
    ops_per_sample: Count = 0
    samples: Count = 0
    resolution_ns: float | None = None
    engine: str | None = None
    summary: Summary | None = None
    histogram: EncodedHistogram | None = None
    values: tuple[float, ...] | None = None
    tail: tuple[TailSample, ...] = ()
    tail_threshold: float | None = None
    tail_dropped: Count = 0
    tail_causes: TailCauses | None = None
    channels: tuple[Channel, ...] = ()
    blocks: tuple[BlockSummary, ...] = ()
    work: Work = Work()
    checks: tuple[Check, ...] = ()
    observed: Observed = Observed()
    flags: tuple[str, ...] = ()
    overhead: Overhead | None = None
    findings: Json = None
    error: Absence | None = None

    def __post_init__(self) -> None:
        """Bounds what no type bounds."""
        if self.findings is not None:
            check_json(self.findings)

    def _repr_html_(self) -> str:
        from latlab.notebook import display  # noqa: PLC0415 - only in a notebook

        return display.record_html(self)

    @property
    def label(self) -> str:
        """Probe and point in words."""
        point = self.point.label()
        return f"{self.probe} · {point}" if point else self.probe

    @property
    def value(self) -> float | None:
        """The headline figure in the record's unit: the median, unless a proof failed."""
        return self.summary.p50 if self.summary is not None and self.proved else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `value`; None where nothing tells it."""
        if self.value is None or self.summary is None:
            return None
        return self.summary.intervals.get("p50")

    @property
    def ends(self) -> tuple[float | str, float | None]:
        """The ends of `interval` as two cells of a table, or why there is none."""
        return self.interval or (self.why_no_interval, None)

    @property
    def why_no_interval(self) -> str:
        """In few words: no CPU measured it twice, or its rounds differ too much."""
        if len(self.rounds) <= 1:
            return units.ONCE
        cpus = {own.cpu for own in self.rounds}
        return "once per CPU" if len(cpus) == len(self.rounds) else "unstable"

    def stated(self, write: Callable[[float], str] | None = None) -> str:
        """`1.06 ns (1.05–1.07 ns)`."""
        return units.format_stated(self.value, self.interval, write, self.why_no_interval)

    @property
    def apart(self) -> tuple[CpuFigure, ...]:
        """Its CPUs, the fastest first, where they differ by more than run-to-run variation; else none."""
        spread = self.spread
        if self.value is None or spread is None or spread.differ is None:
            return ()
        # A damaged file may say anything.
        if len(spread.by_cpu) < 2 or any(own.p50 <= 0 for own in spread.by_cpu):  # noqa: PLR2004 - to differ
            return ()
        return tuple(sorted(spread.by_cpu, key=lambda own: own.p50, reverse=self.unit != "ns"))

    @property
    def proved(self) -> bool:
        """Whether every check held; a record without checks has nothing against it."""
        return all(check.ok for check in self.checks)

    @property
    def disturbed(self) -> bool:
        """Whether something else was seen to run while this was measured."""
        return "disturbed" in self.flags

    def buckets(self) -> list[tuple[float, float, int]]:
        """Lowest ns, highest ns and count of every occupied bucket, ascending; empty without a histogram.

        Raises:
            RunFileError: the histogram is damaged.
        """
        if self.histogram is None:
            return []
        from latlab import _core  # noqa: PLC0415 - reading a run needs no core until it is asked for this

        try:
            return _core.decode_histogram(self.histogram.encoding, self.histogram.data)
        except ValueError as error:
            raise RunFileError(f"{clean(self.label, most=200)}: {clean(error, most=200)}") from None

    def ccdf(self) -> list[tuple[float, float]]:
        """The complementary distribution: values in the record's unit, ascending, and the share above each.

        Of single operations by the upper edge of each bucket, of window means by each value. The last point,
        which has nothing above it, is left out: a logarithmic axis has no place for 0. Empty where nothing
        was measured.

        Raises:
            RunFileError: the histogram is damaged.
        """
        if self.histogram is not None:
            steps = [(high, count) for _, high, count in self.buckets()]
        else:
            steps = [(value, 1) for value in sorted(self.values or ())]
        total = above = sum(count for _, count in steps)
        shares: dict[float, float] = {}
        for value, count in steps:
            above -= count
            if above > 0:
                shares[value] = above / total
        return list(shares.items())

    def finding(self, name: str) -> Json:
        """One entry of `findings`, or None."""
        return self.findings.get(name) if isinstance(self.findings, dict) else None


class Totals(Model, frozen=True, kw_only=True):
    """Sums over the run."""

    records: dict[str, Count] = msgspec.field(default_factory=dict)
    seconds: float = 0.0
    written_bytes: Count = 0
    disturbed_blocks: Count = 0
    worker_restarts: Count = 0


class Footer(Model, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag="footer"):
    """Last line of a complete run file."""

    ended: str
    stopped_by: str
    totals: Totals = Totals()
    fold: Count = 0
    figures: tuple[Record, ...] = ()
    meanwhile: Meanwhile | None = None


class Header(Model, frozen=True, kw_only=True, tag_field="line", tag="header"):
    """First line of a run file."""

    schema: str
    id: str
    started: str
    tool: Tool
    machine: Machine
    clock: ClockFacts
    settings: Settings = Settings()
    plan: tuple[PlannedProbe, ...] = ()
    rounds: Count = 0
    cpus: tuple[Count, ...] = ()
    doctor: tuple[Finding, ...] = ()


def is_one_round(header: Header) -> bool:
    """Whether its file is of version 1, whose records were measured once each."""
    return header.schema.startswith(f"{SCHEMA_NAME}/1")


Line: TypeAlias = Header | Record | Footer


class WholeRun(Header, frozen=True, kw_only=True, tag=False):
    """A whole run as one object, as `measure --json` prints it: figures, and the lines that they are of."""

    records: tuple[Record, ...]
    lines: tuple[Record, ...] = ()
    footer: Footer | None = None


def to_machine(kind: type, value: Json) -> Machine:
    """For msgspec: the machine from its JSON object."""
    if kind is not Machine or not isinstance(value, dict):
        raise TypeError("Expected `object`")
    check_json(value)
    return Machine(value)


def from_machine(value: object) -> dict[str, Json]:
    """For msgspec: the machine as its JSON object."""
    if isinstance(value, Machine):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} is no part of a run")


LINE: Final = msgspec.json.Decoder(Line, dec_hook=to_machine)
"""Reads one line."""
WHOLE: Final = msgspec.json.Decoder(WholeRun, dec_hook=to_machine)
"""Reads a run that is one object."""
ENCODER: Final = msgspec.json.Encoder(enc_hook=from_machine)
"""Writes any struct of this module."""
