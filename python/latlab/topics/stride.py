"""Nanoseconds an access in sequential, strided and random order, one curve an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_bytes, format_ns
from latlab.view.plot import Drawing, Row, yes_or_no
from latlab.view.points import Spot, spots, with_figures
from latlab.view.table import Table, of_range, table_of
from latlab.view.topic import Chart, Topic

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

#: For each array, its figure in each order.
Lines = Mapping[str, Mapping[str, Spot]]
PROBE: Final = "memory.stride"
_SEQUENTIAL, _RANDOM = "sequential", "random"
_ORDERS: Final = (_SEQUENTIAL, "strided", _RANDOM)


def _order(record: Record) -> str:
    if record.point.order == "strided":
        return format_bytes(record.point.stride_bytes)
    return record.point.order or ""


def lines(run: Run) -> Lines:
    """For each array, smallest first, its figure in each order, the friendliest first."""
    records = [record for record in with_figures(run, PROBE, "batch_mean") if record.point.order in _ORDERS]
    records.sort(key=lambda record: (_ORDERS.index(record.point.order or ""), record.point.stride_bytes or 0))
    names = list(dict.fromkeys(map(_order, records)))
    found = {}
    for size in sorted({record.point.working_set_bytes or 0 for record in records}):
        chosen = [record for record in records if (record.point.working_set_bytes or 0) == size]
        curve = spots(chosen, lambda record: names.index(_order(record)))
        found[format_bytes(size)] = {names[int(spot.x)]: spot for spot in curve}
    return found


def _picture(found: Lines) -> Drawing:
    parts = [
        f"{size}: " + ", ".join(f"{_spoken(order)} {format_ns(spot.value)}" for order, spot in curve.items())
        for size, curve in found.items()
    ]
    about = (
        "Line chart, vertical axis logarithmic: time of one access by the order of accesses and the array."
    )
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(found))


def _spoken(order: str) -> str:
    return order if order in {_SEQUENTIAL, _RANDOM} else f"every {order}"


def _drawn(found: Lines) -> AnyChart:
    """One curve an array, over the orders as steps of an axis."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes, curves, drawing  # noqa: PLC0415 - as above

    orders = dict(sorted((spot.x, order) for curve in found.values() for order, spot in curve.items()))
    values = [row for number, (size, curve) in enumerate(found.items()) for row in _rows(number, size, curve)]
    bottom, top = axes.widened(end for row in values for end in (row["low"], row["high"]))
    x = alt.X(
        "order:N",
        title="order: sequential, one access every so many bytes, random",
        scale=alt.Scale(domain=list(orders.values())),
        axis=alt.Axis(labelAngle=0, grid=True),
        sort=None,
    )
    y, low = (axes.duration_y(field, "one access, median", bottom, top) for field in ("value", "low"))
    color, shape = curves.series_encodings(list(found))
    base = alt.Chart()
    tip = alt.Tooltip("text:N")
    layers = [
        base.mark_area(opacity=0.18).encode(x=x, y=low, y2=alt.Y2("high:Q"), color=color),
        *(line.encode(x=x, y=y, color=color) for line in curves.dashed_lines(len(found))),
        base.mark_point(size=45, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=tip
        ),
        base.transform_filter("datum.doubt == 1")
        .mark_point(shape="cross", size=140, angle=45, style="crossed")
        .encode(x=x, y=y, tooltip=tip),
    ]
    return drawing.layered(layers, data=drawing.inline(values), width=curves.WIDTH, height=curves.HEIGHT)


def _rows(number: int, size: str, curve: Mapping[str, Spot]) -> list[Row]:
    return [
        {
            "series": size,
            "number": number,
            "order": order,
            "value": spot.value,
            "low": spot.low,
            "high": spot.high,
            "doubt": int(spot.disturbed),
            "text": f"{size}, {order}: {format_ns(spot.value)}",
        }
        for order, spot in curve.items()
    ]


def _table(found: Lines) -> Table:
    return table_of(
        [(size, order, spot) for size, curve in found.items() for order, spot in curve.items()],
        ("array", "text", lambda at: at[0]),
        ("order", "text", lambda at: at[1]),
        ("one access, median", "ns", lambda at: at[2].value),
        *of_range("ns", lambda at: at[2]),
        ("samples", "count", lambda at: at[2].samples),
        ("disturbed", "text", lambda at: yes_or_no(at[2].disturbed)),
    )


def prose(run: Run) -> Iterator[str]:
    """Of the largest array."""
    for size, curve in list(lines(run).items())[-1:]:
        sequential, random = curve.get(_SEQUENTIAL), curve.get(_RANDOM)
        if sequential is not None and random is not None:
            fast, slow = sequential.value, random.value
            times = f": {slow / fast:.0f} times as much" if slow > 2 * fast else ""
            yield (
                f"Over {size}, one access costs {format_ns(fast)} in sequential order and {format_ns(slow)}"
                f" in random order{times}."
            )


TOPIC: Final = Topic(
    Chart(
        id="stride",
        title="How much does the order of accesses matter?",
        caption="The same array, the same number of accesses; only their order differs. Prefetching "
        "hides the difference.",
        probe=PROBE,
        measured=lines,
        picture=_picture,
        table=_table,
    ),
    prose=prose,
)
