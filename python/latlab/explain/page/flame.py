"""A flame graph by category: wall time, what it went to, and the functions that samples found in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import altair as alt

from latlab.explain.answer import percent
from latlab.explain.model import Explained, Row
from latlab.explain.page.series import Series
from latlab.text import clean
from latlab.view.drawing import inline, layered
from latlab.view.table import Column, Table, table_of

TITLE: Final = "Which functions?"
_WIDTH, _ROW = 760, 19
_MOST_DEEP: Final = 32
_MOST_NODES: Final = 600
_LEAST: Final = 0.0015
"""Of wall time: a box a pixel wide."""
#: Characters that fit into the whole width.
_CHARACTERS: Final = 100


@dataclass(slots=True)
class Node:
    """A box: a name, its share of wall time, and what is called within it."""

    name: str
    share: float = 0.0
    inner: dict[str, Node] = field(default_factory=dict)

    def within(self, name: str) -> Node:
        """The inner box of that name."""
        return self.inner.setdefault(name, Node(name))


def tree(explained: Explained) -> list[tuple[str, Node]]:
    """One box a category, largest first. What is in them never sums to more than they are."""
    out = []
    for row in explained.categories:
        if row.share < _LEAST:
            continue
        node = Node(row.name, row.share)
        stacks = [stack for stack in explained.stacks if stack.name == row.name and stack.frames]
        if stacks:
            for stack in stacks:
                at = node
                for frame in stack.frames[:_MOST_DEEP]:
                    at = at.within(clean(frame, most=200))
                    at.share += stack.share
            _fit(node)
        else:
            _two_levels(row, node)
        out.append((row.name, node))
    return out


def _two_levels(row: Row, node: Node) -> None:
    if row.functions:
        for function in row.functions:
            node.within(clean(function.name, most=200)).share += function.share
        _fit(node)
    elif len(row.parts) > 1:
        for part in row.parts:
            node.within(clean(part.name, most=200)).share += part.share


def _fit(node: Node) -> None:
    """Samples estimate what the ledger may know better: its share is kept."""
    inner = sum(each.share for each in node.inner.values())
    if inner > node.share > 0:
        _scale(node, node.share / inner)


def _scale(node: Node, by: float) -> None:
    for each in node.inner.values():
        each.share *= by
        _scale(each, by)


def boxes(explained: Explained, series: Series) -> list[dict[str, Any]]:
    """All boxes that can be seen: left and right end, depth, name."""
    found: list[dict[str, Any]] = []
    at = 0.0
    for category, node in tree(explained):
        _place(node, at, 0, series.of(category), found)
        at += node.share
    # The deepest of what is too many say least.
    return sorted(found, key=lambda box: box["depth"])[:_MOST_NODES]


def _place(
    node: Node, at: float, depth: int, series: str, found: list[dict[str, Any]], least: float = _LEAST
) -> None:
    if node.share < least or depth > _MOST_DEEP:
        return
    room = int(_CHARACTERS * node.share)
    name = node.name if len(node.name) <= room else f"{node.name[: room - 1]}…"
    found.append(
        {
            "x": at,
            "x2": at + node.share,
            "left": at,
            "depth": depth,
            "series": series,
            "label": name if room > 4 else "",  # noqa: PLR2004 - fewer letters name nothing
            "text": f"{node.name}: {percent(node.share)} of wall time",
        }
    )
    for inner in sorted(node.inner.values(), key=lambda each: -each.share):
        _place(inner, at, depth + 1, series, found, least)
        at += inner.share


def chart(explained: Explained, series: Series) -> alt.LayerChart | None:
    """Boxes, the category at the bottom, callers below what they call."""
    rows = boxes(explained, series)
    return _drawn(rows, series.color({row["series"] for row in rows}))


def _drawn(rows: list[dict[str, Any]], color: alt.Color | None) -> alt.LayerChart | None:
    if not rows:
        return None
    deepest = max(row["depth"] for row in rows)
    for row in rows:
        row["low"], row["high"] = row["depth"] + 0.03, row["depth"] + 0.97
        row["middle"] = row["depth"] + 0.5
        # A little lighter at each second floor, so that boxes on top of each other can be told apart.
        row["light"] = 1.0 if row["depth"] % 2 == 0 else 0.86
    axis = alt.Axis(format="%", tickCount=10, grid=False)
    x = alt.X("x:Q", title="share of wall time", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)
    height = alt.Scale(domain=[0, deepest + 1], nice=False)
    y = alt.Y("low:Q", title=None, axis=None, scale=height)
    base = alt.Chart()
    layers = [
        base.mark_rect(style=["level", "box"]).encode(
            x=x,
            x2=alt.X2("x2:Q"),
            y=y,
            y2=alt.Y2("high:Q"),
            opacity=alt.Opacity("light:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0, 1])),
            tooltip=alt.Tooltip("text:N"),
            **({"color": color} if color is not None else {}),
        ),
        base.transform_filter("datum.label != ''")
        .mark_text(
            style="on-level",
            align="left",
            dx=3,
            fontSize=11,
            limit=alt.expr("width * (datum.x2 - datum.x) - 4"),
        )
        .encode(x=alt.X("left:Q"), y=alt.Y("middle:Q", scale=height), text=alt.Text("label:N")),
    ]
    return layered(layers, data=inline(rows), width=_WIDTH, height=max(_ROW * (deepest + 1), 60))


def caption(explained: Explained) -> str:
    """How to read it."""
    parts = ["Categories at the bottom, above them callers and callees; the width is the share of wall time."]
    if not explained.stacks:
        parts.append("There are no sampled stacks: above a category are its parts or functions.")
    else:
        parts.append("Waiting has no stacks: above it are its parts.")
    if explained.nameless_share:
        parts.append(
            f"{percent(explained.nameless_share)} of the samples of user code have no function name."
        )
    return " ".join(parts)


def alt_text(explained: Explained) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for category, node in tree(explained)[:4]:
        path, at = [], node
        while at.inner:
            at = max(at.inner.values(), key=lambda each: each.share)
            path.append(at.name)
        inner = f", most of it {' calls '.join(path[-2:])}" if path else ""
        parts.append(f"{category} {percent(node.share)}{inner}")
    return f"Flame graph. {'; '.join(parts)}."


def table(explained: Explained) -> Table:
    """Every stack that was sampled, or the parts of each category."""
    columns = (Column("category"), Column("share of wall time", "share"), Column("stack, outermost first"))
    rows: list[tuple[str | float, ...]] = [
        (stack.name, stack.share, _frames(stack.frames)) for stack in explained.stacks[:200]
    ]
    sampled = {stack.name for stack in explained.stacks}
    for row in explained.categories:
        if row.name in sampled:
            continue
        parts = [(each.name, each.share) for each in row.functions or row.parts]
        rows += [(row.name, share, clean(name, most=200)) for name, share in parts or [("", row.share)]]
    return Table(columns, tuple(rows))


def _frames(frames: Sequence[str]) -> str:
    return " ; ".join(clean(frame, most=120) for frame in frames)


_LEAST_PYTHON: Final = 0.01
"""Imports make deep, narrow stacks that say little."""
PYTHON_TITLE: Final = "Where was it in its Python code?"
PYTHON_CAPTION: Final = (
    "Python functions, callers below callees; the width is the share of wall time, waiting included. "
    "Shares below 1 % are not drawn. Source: samples of the interpreter's frames."
)


def _python_tree(explained: Explained) -> Node:
    whole = Node("", 1.0)
    for stack in explained.python.stacks if explained.python is not None else ():
        at = whole
        for frame in stack.frames[:_MOST_DEEP]:
            at = at.within(clean(frame, most=200))
            at.share += stack.share
    _fit(whole)
    return whole


def python_chart(explained: Explained) -> alt.LayerChart | None:
    """Boxes of Python functions; nothing where none were read."""
    found: list[dict[str, Any]] = []
    at = 0.0
    for node in sorted(_python_tree(explained).inner.values(), key=lambda each: -each.share):
        _place(node, at, 0, "", found, _LEAST_PYTHON)
        at += node.share
    return _drawn(sorted(found, key=lambda box: box["depth"])[:_MOST_NODES], None)


def python_words(explained: Explained) -> str:
    """What the picture shows, for a screen reader."""
    parts = []
    for node in sorted(_python_tree(explained).inner.values(), key=lambda each: -each.share)[:3]:
        path, at = [node.name], node
        while at.inner:
            at = max(at.inner.values(), key=lambda each: each.share)
            path.append(at.name)
        parts.append(f"{percent(node.share)} in {path[0]}, most of it in {path[-1]}")
    return f"Flame graph of Python functions. {'; '.join(parts)}."


def python_table(explained: Explained) -> Table:
    """Every stack that was read."""
    return table_of(
        explained.python.stacks[:200] if explained.python is not None else (),
        ("share of wall time", "share", lambda stack: stack.share),
        ("of it on a CPU", "share", lambda stack: stack.running),
        ("stack, outermost first", "text", lambda stack: _frames(stack.frames)),
    )
