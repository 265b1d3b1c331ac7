"""Complementary distributions as staircases, both axes logarithmic: how often something takes how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from latlab.units import format_ns
from latlab.view.axes import duration_x, share_y
from latlab.view.curves import dashed_lines, series_encodings
from latlab.view.drawing import inline, layered

Steps = Sequence[tuple[float, float]]
#: Pixels of all panels side by side, of the y axis's labels, and between two panels.
_WIDTH, _AXIS, _SPACING = 720, 80, 20


def span(stairs: Mapping[str, Steps]) -> tuple[float, float, float]:
    """Ends of the x axis, and the lowest share."""
    left = min(own[0][0] for own in stairs.values()) / 1.6
    right = max(own[-1][0] for own in stairs.values()) * 1.5
    return left, right, min(share for own in stairs.values() for _, share in own) / 1.5


def panel(
    stairs: Mapping[str, Steps],
    names: Sequence[str],
    titles: tuple[str, str | None],
    ends: tuple[float, float, float],
    width: int,
    height: int,
    title: str | None = None,
) -> alt.LayerChart:
    """The staircases.

    Args:
        stairs: What is drawn, by name.
        names: All names of the picture: panels that share a legend share them.
        titles: Of the x axis and of the y axis.
        ends: What :func:`span` says.
        width: Pixels.
        height: Pixels.
        title: Above it.
    """
    left, right, lowest = ends
    rows: list[dict[str, Any]] = [
        {"series": name, "number": names.index(name), "x": at, "share": share}
        for name, own in stairs.items()
        for at, share in own
    ]
    marks = [row for name, own in stairs.items() for row in at_shares(name, own)]
    x = duration_x("x", titles[0], left, right)
    y = share_y("share", titles[1] or "", lowest)
    if titles[1] is None:
        y["title"] = None
    color, shape = series_encodings(names)
    layers = [
        *(
            line.mark_line(interpolate="step-before", strokeDash=line.mark.strokeDash).encode(
                x=x, y=y, color=color
            )
            for line in dashed_lines(len(names))
        ),
        alt.Chart(inline(marks))
        .mark_point(size=46, filled=True, opacity=1)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=alt.Tooltip("text:N")),
    ]
    return layered(layers, data=inline(rows), width=width, height=height, title=title)


def beside(
    panels: Mapping[str, Mapping[str, Steps]],
    names: Sequence[str],
    titles: tuple[str, str],
    height: int,
) -> alt.HConcatChart | None:
    """Panels side by side on the same axes; none without panels.

    Args:
        panels: The staircases of each panel, by name, by the panel's title.
        names: All names of the picture.
        titles: Of the x axis of each and of the one y axis.
        height: Pixels.
    """
    if not panels:
        return None
    ends = span({f"{head} {name}": own for head, stairs in panels.items() for name, own in stairs.items()})
    width = (_WIDTH - _AXIS - _SPACING * (len(panels) - 1)) // len(panels)
    drawn = [
        panel(stairs, names, (titles[0], titles[1] if number == 0 else None), ends, width, height, head)
        for number, (head, stairs) in enumerate(panels.items())
    ]
    return alt.hconcat(*drawn, spacing=_SPACING)


def at_shares(name: str, own: Steps, slowest: str = "slowest") -> list[dict[str, Any]]:
    """A shape at 1 in 10, 1 in 100, ... and at the slowest: the shape says which line without colour."""
    rows = []
    for power in range(1, 12):
        share = 10.0**-power
        if share < own[-1][1]:
            break
        at, reached = next(step for step in reversed(own) if step[1] >= share)
        text = f"{name}: 1 in {10**power:,} takes {format_ns(at)} or longer"
        rows.append({"series": name, "x": at, "share": reached, "text": text})
    at, share = own[-1]
    return [*rows, {"series": name, "x": at, "share": share, "text": f"{name}: {slowest} {format_ns(at)}"}]
