"""A run in other forms: rows, CSV, pandas, Arrow, numpy, JSON, and without private fields."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from latlab.errors import RunFileError, UserError
from latlab.run import model, saving
from latlab.run.sharing import Anonymous, Sharing
from latlab.run.writer import RunWriter
from latlab.text import clean

if TYPE_CHECKING:
    import pandas

    from latlab.run.model import Record
    from latlab.run.run import Run

_FIGURES: Final = ("min", "p50", "p90", "p99", "p999", "p9999", "max", "mean", "std")
#: Those that may have an interval.
_WITH_ENDS: Final = ("p50", "p90", "p99", "p999", "p9999", "mean")

COLUMNS: Final[dict[str, type]] = {
    "probe": str,
    "method": int,
    **{name: str if kind.startswith("str") else int for name, kind in model.Point.__annotations__.items()},
    "unit": str,
    "kind": str,
    "rank": str,
    "rounds": int,
    "samples": int,
    "ops_per_sample": int,
    **dict.fromkeys(_FIGURES, float),
    **{f"{name}_{end}": float for name in _WITH_ENDS for end in ("lo", "hi")},
    "resolution_ns": float,
    "engine": str,
    "proved": bool,
    "disturbed": bool,
    "flags": str,
    "stopped_by": str,
    "convention": str,
    "error": str,
}
"""Columns of every table, with their types.

Figures are in the record's `unit`; one whose proof failed is None, as is what does not apply."""


def rows(records: Iterable[Record]) -> list[dict[str, model.Json]]:
    """One flat dict a record, with the keys of `COLUMNS` in their order."""
    return [_row(record) for record in records]


def _row(record: Record) -> dict[str, model.Json]:
    summary = record.summary if record.proved else None
    ends = summary.intervals if summary else {}
    values: dict[str, model.Json] = {
        "probe": record.probe,
        "method": record.method,
        **{name: getattr(record.point, name) for name in model.Point.__struct_fields__},
        "unit": record.unit,
        "kind": record.kind,
        "rank": record.rank,
        "rounds": len(record.rounds),
        "samples": record.samples,
        "ops_per_sample": record.ops_per_sample,
        **{name: getattr(summary, name) if summary else None for name in _FIGURES},
        **{
            f"{name}_{end}": ends[name][place] if name in ends else None
            for name in _WITH_ENDS
            for place, end in enumerate(("lo", "hi"))
        },
        "resolution_ns": record.resolution_ns,
        # Of what did the work and what was asked for, the first is the stronger statement.
        "engine": record.engine or record.point.engine,
        "proved": record.proved,
        "disturbed": record.disturbed,
        "flags": "; ".join(record.flags) or None,
        "stopped_by": record.stopped_by,
        "convention": record.work.convention,
        "error": record.error.text if record.error else None,
    }
    return {name: values[name] for name in COLUMNS}


def to_csv(records: Iterable[Record], path: str | os.PathLike[str] | None = None) -> str:
    """CSV with a header line; no cell is a formula to a spreadsheet."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows(records):
        table.writerow([_cell(value) for value in row.values()])
    if path is not None:
        saving.save(Path(path), text.getvalue().encode())
    return text.getvalue()


def _cell(value: model.Json) -> model.Json:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    shown = clean(value)
    # A spreadsheet runs a cell that begins so, also after blanks; the quote makes it text.
    return f"'{shown}" if shown.lstrip().startswith(("=", "+", "-", "@", "|", "%")) else shown


def to_pandas(records: Iterable[Record]) -> pandas.DataFrame:
    """A data frame with nullable columns of the types in `COLUMNS`."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError:
        raise UserError("pandas is not installed: `pip install pandas`") from None
    names = {str: "string", int: "Int64", float: "float64", bool: "bool"}
    frame = pd.DataFrame(rows(records), columns=list(COLUMNS))
    return frame.astype({name: names[kind] for name, kind in COLUMNS.items()})


def arrow_stream(records: Iterable[Record], requested_schema: object = None) -> object:
    """An `arrow_array_stream` capsule."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError:
        raise UserError("Arrow needs pyarrow: `pip install 'latlab[arrow]'`") from None
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    return pa.Table.from_pylist(rows(records), schema=schema).__arrow_c_stream__(requested_schema)


def to_npz(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Arrays of figures, and the shape of each.

    `index` names the figures; `p50`, `p50_lo`, `p50_hi`, `rounds` and `rank` are theirs, in each one's unit.
    `<number>/values` is in the record's unit; of single operations there are `low_ns`, `high_ns`, `counts`.
    """
    import numpy as np  # noqa: PLC0415 - a tenth of a second

    records = list(records)
    table = rows(records)
    arrays: dict[str, Any] = {
        name: np.array([row[name] for row in table], dtype=np.float64) for name in ("p50", "p50_lo", "p50_hi")
    }
    arrays["rounds"] = np.array([row["rounds"] for row in table], dtype=np.int64)
    arrays["rank"] = np.array([row["rank"] or "" for row in table], dtype=np.str_)
    labels = []
    for number, record in enumerate(records):
        labels.append(clean(record.label, most=200))
        if record.values is not None:
            arrays[f"{number}/values"] = np.array(record.values, dtype=np.float64)
        if record.histogram is not None:
            buckets = record.buckets()
            arrays[f"{number}/low_ns"] = np.array([low for low, _, _ in buckets], dtype=np.float64)
            arrays[f"{number}/high_ns"] = np.array([high for _, high, _ in buckets], dtype=np.float64)
            arrays[f"{number}/counts"] = np.array([count for _, _, count in buckets], dtype=np.uint64)
        if record.tail:
            arrays[f"{number}/tail_at_ns"] = np.array(
                [sample.at_ns for sample in record.tail], dtype=np.float64
            )
            arrays[f"{number}/tail_values"] = np.array(
                [sample.value for sample in record.tail], dtype=np.float64
            )
    buffer = io.BytesIO()
    np.savez_compressed(buffer, index=np.array(labels, dtype=np.str_), allow_pickle=False, **arrays)
    saving.save(Path(path), buffer.getvalue())


def to_json(run: Run) -> str:
    """The run as one object: the header's fields, `records` (figures), `lines` (of the rounds), `footer`."""
    header = _untagged(run.header)
    records, lines = (b",\n".join(map(_untagged, some)) for some in (run.records, run.lines))
    # What the footer holds for readers without a core is under `records`.
    footer = b"null" if run.footer is None else _untagged(msgspec.structs.replace(run.footer, figures=()))
    whole = [
        header[:-1],
        b',"records":[\n',
        records,
        b'\n],"lines":[\n',
        lines,
        b'\n],"footer":',
        footer,
        b"}",
    ]
    return b"".join(whole).decode()


def _untagged(line: model.Line) -> bytes:
    """A line's JSON without the field that says which line it is: the first one."""
    return b"{" + model.ENCODER.encode(line).partition(b",")[2]


def save(run: Run, path: str | os.PathLike[str]) -> Path:
    """Writes a new run file: what happened; a reader folds it again."""
    with RunWriter(path) as writer:
        writer.header(run.header)
        for record in run.lines:
            writer.record(record)
        if run.footer is not None:
            writer.footer(_footer(run, run.footer))
        if writer.error is not None:
            raise RunFileError(f"{clean(writer.path)} is not complete: {writer.error}")
        return writer.path


def _footer(run: Run, footer: model.Footer) -> model.Footer:
    """Its footer; of a run that has figures without lines it holds all of them."""
    return footer if run.lines else msgspec.structs.replace(footer, figures=tuple(run.records))


def to_lines(run: Run) -> bytes:
    """The run as the text of a run file."""
    lines = [run.header, *run.lines, *([] if run.footer is None else [_footer(run, run.footer)])]
    return b"".join(model.ENCODER.encode(line) + b"\n" for line in lines)


def anonymous(*runs: Run) -> list[Run]:
    """The runs without what names host, user or files, in all of them the same word for the same name."""
    names = Anonymous()
    return [_anonymous(run, names) for run in runs]


def _anonymous(run: Run, names: Anonymous) -> Run:
    from latlab.run.run import Run  # noqa: PLC0415 - they know each other

    sharing = Sharing(run.header, names)
    for record in run.lines or run.records:
        # What the last record names is in the first one too.
        sharing.learn(record)
    footer = None if run.footer is None else sharing.footer(run.footer)
    records = [sharing.record(record) for record in run.lines or run.records]
    make = Run.of_lines if run.lines else Run
    return make(sharing.header, records, footer, notes=("private fields were left out",))
