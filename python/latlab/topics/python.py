"""What the interpreter's own operations cost: attributes, calls, objects, lists, strings, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns
from latlab.view.evidence import evidence
from latlab.view.plot import Dot, Dots, dot
from latlab.view.points import place_in, with_figures
from latlab.view.topic import Chart, Topic

PROBE: Final = "python.object"
_NAMES: Final = {
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
    called = _NAMES.get(operation, operation)
    elements = record.point.elements
    if not elements:
        return called
    return f"{called}, {format_count(elements)} {'entries' if operation.startswith('dict') else 'elements'}"


def lines(run: Run) -> list[Dot]:
    """A row for each operation, in the order of the list above, then whatever else was measured."""
    records = [
        record
        for kind in ("batch_mean", "per_op")
        for record in with_figures(run, PROBE, kind)
        if record.unit == "ns"
    ]
    records.sort(key=lambda record: (place_in(_NAMES, record.point.operation), record.point.elements or 0))
    return [dot(name(record), record) for record in records]


def _picture(own: Sequence[Dot]) -> Dots:
    return Dots(
        own,
        "one operation, logarithmic",
        "Dot chart on a logarithmic axis: time of operations of the Python interpreter.",
    )


def prose(run: Run) -> Iterator[str]:
    """A call and an object; an array made anew against one that is kept."""
    own = {record.point.operation or "": record for record in with_figures(run, PROBE, "batch_mean")}
    costs = {operation: record.value or 0.0 for operation, record in own.items()}
    if "call" in costs:
        small = costs.get("small-object")
        also = f" and making a small object {format_ns(small)}" if small is not None else ""
        yield f"Calling a function that does nothing costs {format_ns(costs['call'])}{also}."
    fresh, kept = own.get("numpy-temporary"), own.get("numpy-in-place")
    if fresh is not None and kept is not None and (fresh.point.elements or 0) == (kept.point.elements or 0):
        new, same = fresh.value or 0.0, kept.value or 0.0
        if new > 1.1 * same:
            yield (f"An array operation costs {format_ns(new)} with a new array, {format_ns(same)} in place.")


def _evidence(run: Run) -> Iterator[str]:
    engines = {record.engine for record in with_figures(run, PROBE, "batch_mean") if record.engine}
    yield from (f"Measured in {engine}." for engine in sorted(engines))
    yield from evidence(run, PROBE)


TOPIC: Final = Topic(
    Chart(
        id="python",
        title="What do Python's basic operations cost?",
        caption="Logarithmic axis. A row with many elements shows the time for all of them together.",
        probe=PROBE,
        measured=lines,
        picture=_picture,
        table=lambda own: _picture(own).table("operation"),
    ),
    prose=prose,
    evidence=_evidence,
)
