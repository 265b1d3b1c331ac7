"""What the interpreter's own operations cost: attributes, calls, objects, lists, strings, arrays."""

from __future__ import annotations

import altair as alt

from latlab.charts import dots
from latlab.charts.dots import Dot
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Table

ID = "python"
TITLE = "What does Python cost?"
PROBE = "python.object"
NAMES = {
    "attribute": "read an attribute",
    "call": "call a function",
    "method-call": "call a method",
    "small-object": "make a small object",
    "dict-lookup": "look up in a dict",
    "dict-insert": "insert into a dict",
    "list-literal": "list written out",
    "list-multiply": "list by [x] * n",
    "list-comprehension": "list by comprehension",
    "list-append": "list by append",
    "string-join": "string by join",
    "string-concatenate": "string by +=",
    "numpy-empty": "NumPy: array, not set",
    "numpy-zeros": "NumPy: array of zeros",
    "numpy-in-place": "NumPy: a += b",
    "numpy-temporary": "NumPy: a = a + b",
}


def name(record: Record) -> str:
    """What an operation is called, with the number of elements where it has some."""
    operation = record.point.operation or ""
    called = NAMES.get(operation, operation)
    elements = record.point.elements
    if not elements:
        return called
    return f"{called}, {format_count(elements)} {'entries' if operation.startswith('dict') else 'elements'}"


def lines(run: Run) -> list[Dot]:
    """A row for each operation, in the order of the list above, then whatever else was measured."""
    order = list(NAMES)
    records = [
        record
        for kind in ("batch_mean", "per_op")
        for record in with_figures(run, PROBE, kind)
        if record.unit == "ns"
    ]
    records.sort(
        key=lambda record: (
            order.index(record.point.operation) if record.point.operation in NAMES else len(order),
            record.point.elements or 0,
        )
    )
    return [dots.dot(name(record), record) for record in records]


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if lines(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.LayerChart | None:
    """One row an operation."""
    return dots.chart(lines(run), "one operation, logarithmic")


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    words = "; ".join(dots.spoken(row) for row in lines(run)[: dots.MOST_ROWS])
    return f"Dot chart on a logarithmic axis: time of operations of the Python interpreter. {words}."


def table(run: Run) -> Table:
    """Every operation."""
    return dots.table(lines(run), "operation")
