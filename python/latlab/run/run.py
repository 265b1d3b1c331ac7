"""A run as Python sees it: look at it, select from it, hand it to pandas, Arrow or a file.

run = latlab.load("last")
run.levels[0].latency_ns
run.select("memory.*", pages="4k", order="random").to_pandas()
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, overload

import msgspec

from latlab.run import model
from latlab.run.core import matches
from latlab.run.fold import folded
from latlab.run.model import Footer, Header, Level, Machine, Record
from latlab.text import clean, listed

if TYPE_CHECKING:
    import pandas

    from latlab.run.rung import Rung
    from latlab.run.samples import Sample
    from latlab.run.sanity import Broken

LATENCY_PROBE: Final = "memory.load.dependent"


class Records(Sequence[Record]):
    """Some records of a run, in the order in which they were taken. Cannot be changed."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Record]) -> None:
        self._items = tuple(items)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Record]:
        return reversed(self._items)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Records: ...
    def __getitem__(self, place: int | slice) -> Record | Records:
        return Records(self._items[place]) if isinstance(place, slice) else self._items[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self._items == other._items

    def __hash__(self) -> int:
        return hash((len(self._items), self.probes))

    def __repr__(self) -> str:
        probes = ", ".join(clean(probe, most=60) for probe in self.probes)
        return f"<{len(self)} records of {probes or 'nothing'}>"

    def _repr_html_(self) -> str:
        from latlab.notebook import display  # noqa: PLC0415 - only in a notebook

        return display.records_html(self)

    @property
    def probes(self) -> tuple[str, ...]:
        """Ids of the probes, in the order in which they first occur."""
        return tuple(dict.fromkeys(record.probe for record in self._items))

    def select(
        self,
        probe: str = "*",
        /,
        *,
        kind: model.Kind | None = None,
        unit: model.Unit | None = None,
        **point: object,
    ) -> Records:
        """The records whose probe matches a glob and whose point has these fields.

        Args:
            probe: id, glob or the beginning of an id: `memory.*`, `memory`.
            kind: `batch_mean`, `per_op`, `derived` or `absent`.
            unit: `ns` or `bytes_per_s`.
            **point: a value for a field of the point, a list or set of values, or None for "does not apply":
                `working_set_bytes=[16384, 262144]`, `pages="4k"`.

        Raises:
            TypeError: a field that no point has.
        """
        unknown = set(point) - set(model.Point.__struct_fields__)
        if unknown:
            names = ", ".join(model.Point.__struct_fields__)
            raise TypeError(f"no point has {', '.join(sorted(unknown))}; fields: {names}")
        return Records(
            record
            for record in self._items
            if matches(record.probe, probe)
            and kind in {None, record.kind}
            and unit in {None, record.unit}
            and all(_matches(getattr(record.point, name), wanted) for name, wanted in point.items())
        )

    def measured(self) -> Records:
        """Those with a headline figure."""
        return Records(record for record in self._items if record.value is not None)

    def rows(self) -> list[dict[str, model.Json]]:
        """One flat dict a record, all with the same keys; see `latlab.run.export.COLUMNS`."""
        from latlab.run import export  # noqa: PLC0415 - only when something is exported

        return export.rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame, one row a record.

        Raises:
            UserError: pandas is not installed.
        """
        from latlab.run import export  # noqa: PLC0415

        return export.to_pandas(self)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """CSV text, also written to `path`. Text that a spreadsheet would run as a formula is quoted."""
        from latlab.run import export  # noqa: PLC0415

        return export.to_csv(self, path)

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Raw values and histograms as numpy arrays, to be read with `numpy.load(path)` (no pickle)."""
        from latlab.run import export  # noqa: PLC0415

        export.to_npz(self, path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's interface for exchange: `pyarrow.table(run)`, `polars.DataFrame(run)`, duckdb."""
        from latlab.run import export  # noqa: PLC0415

        return export.arrow_stream(self, requested_schema)


class Run:
    """One run: what was measured on which machine, and every figure.

    Attributes:
        header: machine, clock, settings, plan, doctor's findings.
        records: the figures: what the rounds fold into, one a point, and what was concluded from them.
        lines: what happened: the records of each round, in the order in which they were taken.
        footer: how it ended; None when it was cut short.
        path: the run file; None while it is only in memory.
        notes: what the reader or the writer of the file has to say, each one sentence.
        write_error: why the file does not hold everything; None when it does.
    """

    def __init__(
        self,
        header: Header,
        records: Iterable[Record],
        footer: Footer | None = None,
        *,
        lines: Iterable[Record] = (),
        path: Path | None = None,
        notes: Iterable[str] = (),
        write_error: str | None = None,
    ) -> None:
        self.header = header
        self.records = Records(records)
        self.lines = Records(lines)
        self.footer = footer
        self.path = path
        self.notes = tuple(notes)
        self.write_error = write_error

    @classmethod
    def of_lines(
        cls,
        header: Header,
        lines: Iterable[Record],
        footer: Footer | None = None,
        *,
        path: Path | None = None,
        notes: Iterable[str] = (),
        write_error: str | None = None,
    ) -> Self:
        """A run from what happened: its figures are the fold of the lines."""
        lines = tuple(lines)
        figures, doubts = folded(header, lines, footer)
        notes = (*notes, *doubts)
        return cls(header, figures, footer, lines=lines, path=path, notes=notes, write_error=write_error)

    def whole(self) -> Run:
        """The run with its rounds and distributions, which a run that was read in short left in its file.

        Raises:
            RunFileError: the file is not there any more, or damaged.
        """
        return self if self.lines or self.path is None else load(self.path)

    @property
    def id(self) -> str:
        """Unique name of the run."""
        return self.header.id

    @property
    def machine(self) -> Machine:
        """What it was measured on."""
        return self.header.machine

    @property
    def clock(self) -> model.ClockFacts:
        """The clock as it measured itself."""
        return self.header.clock

    @property
    def settings(self) -> model.Settings:
        """What was asked for."""
        return self.header.settings

    @property
    def disturbed_blocks(self) -> tuple[int, int]:
        """How many blocks of its figures something else disturbed, and how many there are."""
        blocks = [block.disturbed for record in self.records for block in record.blocks]
        return sum(blocks), len(blocks)

    @property
    def stopped_by(self) -> str:
        """`completed`, `interrupted`, `deadline`, `failed: ...`, or `cut short` without a footer."""
        return self.footer.stopped_by if self.footer is not None else "cut short"

    @property
    def partial(self) -> bool:
        """Whether it did not come to its planned end."""
        return self.footer is None or self.footer.stopped_by not in {"completed", "deadline"}

    @functools.cached_property
    def rounds(self) -> dict[int, int]:
        """The rounds that its figures were measured in, each with its CPU."""
        return dict(sorted({(own.round, own.cpu) for record in self.records for own in record.rounds}))

    @property
    def made_of(self) -> str:
        """`6 rounds on CPUs 0 and 1`; `4 of 6 rounds` where it was cut short."""
        done = len(self.rounds)
        if done <= 1 and self.header.rounds <= 1:
            return "one round"
        count = f"{done} of {self.header.rounds}" if done < self.header.rounds else f"{done}"
        cpus = [str(cpu) for cpu in sorted(set(self.rounds.values()))]
        where = f" on CPU{'s' if len(cpus) > 1 else ''} {listed(cpus)}" if cpus else ""
        return f"{count} rounds{where}"

    @property
    def probes(self) -> tuple[str, ...]:
        """Ids of the probes that have records."""
        return self.records.probes

    @property
    def absent(self) -> Records:
        """What was not measured, each with its reason in `error`."""
        return self.records.select(kind="absent")

    @property
    def levels(self) -> list[Level]:
        """The memory hierarchy as found from the latency curve; empty when it was not measured."""
        for record in reversed(self.records.select(LATENCY_PROBE, kind="derived")):
            found = record.finding("levels")
            if isinstance(found, list):
                # A file of version 1 has numbers without a range.
                levels = [
                    {**level, "latency_ns": {"value": level["latency_ns"]}}
                    if isinstance(level, dict) and isinstance(level.get("latency_ns"), int | float)
                    else level
                    for level in found
                ]
                try:
                    return msgspec.convert(levels, list[Level])
                except msgspec.ValidationError:
                    continue
        return []

    @functools.cached_property
    def broken(self) -> tuple[Broken, ...]:
        """The rules of plain sense that its figures break; they stop headlines."""
        from latlab.run import sanity  # noqa: PLC0415 - only when asked for

        return sanity.broken(self)

    def __getitem__(self, probe: str) -> Records:
        """The records of one probe.

        Raises:
            KeyError: the run has none of it.
        """
        found = Records(record for record in self.records if record.probe == probe)
        if not found:
            raise KeyError(f"no record of {probe!r}; probes: {', '.join(self.probes) or 'none'}")
        return found

    def __contains__(self, probe: object) -> bool:
        return any(record.probe == probe for record in self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        cpu = clean(self.machine.text("cpu.model_name") or "unknown CPU", most=60)
        end = clean(self.stopped_by, most=200)
        return f"<latlab run {clean(self.id, most=80)}: {len(self.records)} records on {cpu}, {end}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        mine = (self.header, self.lines, self.records, self.footer)
        return mine == (other.header, other.lines, other.records, other.footer)

    def __hash__(self) -> int:
        return hash(self.id)

    def select(
        self,
        probe: str = "*",
        /,
        *,
        kind: model.Kind | None = None,
        unit: model.Unit | None = None,
        **point: object,
    ) -> Records:
        """Some of the records: `run.select("memory.*", pages="4k", order="random")`; see `Records.select`."""
        return self.records.select(probe, kind=kind, unit=unit, **point)

    def ladder(self) -> list[Rung]:
        """Every level that data passes through, as data; the terminal and the report draw it."""
        return list(self._rungs)

    @functools.cached_property
    def _rungs(self) -> tuple[Rung, ...]:
        from latlab.run.ladder import ladder  # noqa: PLC0415 - only when asked for

        return tuple(ladder(self))

    @functools.cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Its figures as comparisons of runs take them: medians, and p99 of what was timed one by one."""
        from latlab.run.samples import samples  # noqa: PLC0415 - only when asked for

        return samples(self)

    def rows(self) -> list[dict[str, model.Json]]:
        """One flat dict a record."""
        return self.records.rows()

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame, one row a record; see `Records.to_pandas`."""
        return self.records.to_pandas()

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """CSV text, also written to `path`; see `Records.to_csv`."""
        return self.records.to_csv(path)

    def to_npz(self, path: str | os.PathLike[str]) -> None:
        """Raw values and histograms as numpy arrays; see `Records.to_npz`."""
        self.records.to_npz(path)

    def to_json(self) -> str:
        """The run as one JSON object, as `measure --json` prints it; `latlab.load` reads it back."""
        from latlab.run import export  # noqa: PLC0415

        return export.to_json(self)

    def anonymous(self) -> Run:
        """The same run without host name, user, directories and disks: for sharing."""
        from latlab.run import export  # noqa: PLC0415

        return export.anonymous(self)[0]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the run file anew, for a run that is only in memory or that was made anonymous.

        Raises:
            RunFileError: the file exists or cannot be written.
        """
        from latlab.run import export  # noqa: PLC0415

        return export.save(self, path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's interface for exchange; see `Records`."""
        return self.records.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from latlab.notebook import display  # noqa: PLC0415 - only in a notebook

        return display.run_html(self)


def load(run: str | os.PathLike[str] = "last", *, in_short: bool = False) -> Run:
    """Reads a run: a path, an id, the beginning of one, or `last`.

    Args:
        run: Which.
        in_short: Without rounds and distributions, ten times as fast; `Run.whole` reads them.

    Raises:
        UserError: there is no such run.
        RunFileError: its file cannot be read as a run; one line says why.
    """
    from latlab.run import reader, store  # noqa: PLC0415 - they know each other

    return reader.read(store.Store().resolve(run), in_short=in_short)


def _matches(value: object, wanted: object) -> bool:
    if isinstance(wanted, list | tuple | set | frozenset | range):
        return value in wanted
    return value == wanted
