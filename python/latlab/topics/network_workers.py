"""Ten files by more and more workers: how much faster, and what the number ten allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from latlab.run.findings import ends, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.topics import transfers
from latlab.view.plot import Drawing, Row
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart

if TYPE_CHECKING:
    from latlab.view.drawing import AnyChart

Sets = Mapping[str, Sequence[Machine]]
FILES: Final = 10
_CEILING, _IDEAL = "ten files allow: 10 / batches", "ideal"
_WIDTH, _HEIGHT = 720, 320


def sets(run: Run) -> dict[str, list[Machine]]:
    """Speed-ups by latlab's own client, by kind of connection and path, ascending in workers."""
    found: dict[str, list[Machine]] = {}
    for row in transfers.rows(run, "ten_files"):
        kind = transfers.kind_of(Machine({**row, "protocol": "http/1.1"}))
        usable = transfers.count(row, "workers") is not None and positive(row, "speed_up") is not None
        if kind is not None and usable and row.text("engine") == "latlab":
            found.setdefault(kind.name, []).append(row)
    # A single number of workers is a figure and no curve.
    return {name: sorted(own, key=_workers) for name, own in found.items() if len(own) > 1}


def _workers(row: Machine) -> int:
    return transfers.count(row, "workers") or 1


def ceiling(workers: int) -> float:
    """Ten files by so many take whole batches."""
    return FILES / math.ceil(FILES / workers)


def _picture(found: Sets) -> Drawing:
    parts = []
    for name, own in found.items():
        figures = ", ".join(f"{positive(row, 'speed_up') or 1:.2f} with {_workers(row)}" for row in own)
        parts.append(f"{name}: {figures}")
    about = (
        "Line chart: how many times as fast ten files are by several workers as by one, over the staircase"
        " 10 / ceil(10 / workers) and the ideal line."
    )
    return Drawing(f"{about} {'; '.join(parts)}.", lambda: _drawn(found))


def _drawn(found: Sets) -> AnyChart:
    """Measured speed-ups over the staircase that ten files make, and the straight line of the ideal."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view.curves import series_encodings  # noqa: PLC0415 - as above
    from latlab.view.drawing import inline, layered  # noqa: PLC0415 - as above

    values: list[Row] = []
    for name, own in found.items():
        measured = [(1, 1.0, None), *((_workers(r), positive(r, "speed_up") or 1.0, r) for r in own)]
        for workers, value, row in measured:
            low, high = (row is not None and ends(row, "speed_up")) or (value, value)
            text = f"{name}, {workers} workers: {value:.2f} times as fast"
            values.append(
                {"series": name, "x": workers, "value": value, "low": low, "high": high, "text": text}
            )
    steps = [
        {"kind": kind, "series": name, "x": workers, "value": value}
        for workers in range(1, FILES + 1)
        for kind, name, value in (("ceiling", _CEILING, ceiling(workers)), ("ideal", _IDEAL, float(workers)))
    ]
    x = alt.X(
        "x:Q",
        title="workers",
        scale=alt.Scale(domain=[1, FILES], nice=False),
        axis=alt.Axis(values=list(range(1, FILES + 1)), format="d", grid=True),
    )
    y = alt.Y(
        "value:Q", title="times as fast as one", scale=alt.Scale(domain=[0, FILES]), axis=alt.Axis(grid=True)
    )
    color, shape = series_encodings([*found, _CEILING, _IDEAL], 2)
    base, drawn = alt.Chart(inline(values)), alt.Chart(inline(steps))
    layers = [
        drawn.transform_filter("datum.kind == 'ideal'")
        .mark_line(strokeDash=[2, 4], strokeWidth=1)
        .encode(x=x, y=y, color=color),
        drawn.transform_filter("datum.kind == 'ceiling'")
        .mark_line(interpolate="step-after", strokeDash=[6, 3], strokeWidth=1.2)
        .encode(x=x, y=y, color=color),
        base.mark_rule(strokeWidth=3, opacity=0.4).encode(
            x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=color
        ),
        # Between two numbers of workers there is nothing: the line only leads the eye.
        base.mark_line(strokeWidth=1, opacity=0.5).encode(x=x, y=y, color=color),
        base.mark_point(size=40, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")
        ),
    ]
    return layered(layers, width=_WIDTH, height=_HEIGHT)


def _table(found: Sets) -> Table:
    return table_of(
        [(name, row) for name, own in found.items() for row in own],
        ("transfers", "text", lambda at: at[0]),
        ("workers", "count", lambda at: _workers(at[1])),
        ("by one", "ns", lambda at: positive(at[1], "sequential_ns")),
        ("by all", "ns", lambda at: positive(at[1], "pool_ns")),
        ("times as fast", "number", lambda at: positive(at[1], "speed_up")),
        ("at most", "number", lambda at: ceiling(_workers(at[1]))),
    )


CHART: Final = Chart(
    id="network_workers",
    title="How much faster do several workers download ten files?",
    caption="Ten files of 100 KiB. w workers fetch ten files in ceil(10 / w) batches: the staircase "
    "is the maximum, 5 times with five to nine workers. Bars at six: 95 % interval.",
    probe=transfers.PROBE,
    measured=sets,
    picture=_picture,
    table=_table,
)
