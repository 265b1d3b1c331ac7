"""A history as a picture: a panel a figure, a point a run, with its range; a line where it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from latlab.text import clean
from latlab.units import format_percent
from latlab.view.theme import LIGHT, config

if TYPE_CHECKING:
    from latlab.compare.history import Figure, History

#: Pixels of a panel.
_WIDTH, _HEIGHT = 640, 90
#: Panels of a picture: more cannot be read.
MOST: Final = 20
_KINDS: Final = ["measured", "spike", "disturbed"]


def specification(found: History) -> dict[str, Any]:
    """The picture in Vega-Lite.

    Args:
        found: Its first 20 figures are drawn.
    """
    changed = sum(bool(figure.changes) for figure in found.figures)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": f"{changed} of {len(found.figures)} figures changed by more than"
        f" {format_percent(found.same)} in {len(found.runs):,} runs",
        "config": config(LIGHT, background=True),
        "vconcat": [_panel(figure, found) for figure in found.figures[:MOST]],
    }


def _panel(figure: Figure, found: History) -> dict[str, Any]:
    # Prefixes are the axis's.
    unit, scale = ("s", 1e-9) if figure.unit == "ns" else ("bytes/s", 1.0)
    points = [
        {
            "run": each.run,
            "value": each.value * scale,
            "low": (each.ends or (each.value,))[0] * scale,
            "high": (each.ends or (each.value,))[-1] * scale,
            "kind": each.kind,
        }
        for each in figure.points
    ]
    shape = {"field": "kind", "type": "nominal", "scale": {"domain": _KINDS}, "title": None}
    place = {
        "field": "run",
        "type": "quantitative",
        "scale": {"domain": [-0.5, len(found.runs) - 0.5], "nice": False},
        "axis": {"title": None, "grid": False, "tickMinStep": 1, "labelExpr": _dates(found)},
    }

    def height(field: str) -> dict[str, Any]:
        return {
            "field": field,
            "type": "quantitative",
            "scale": {"type": "log", "nice": False, "padding": 8},
            "axis": {"title": unit, "format": "~s", "tickCount": 3},
        }

    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "color": LIGHT.span},
            "encoding": {"x": place, "y": height("low"), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 30},
            "encoding": {"x": place, "y": height("value"), "shape": shape, "color": shape},
        },
    ]
    for runs, dash in (
        ([each.run for each in figure.changes], []),
        ([each.run for each in figure.breaks], [4, 3]),
    ):
        if runs:
            layers.append(
                {
                    "data": {"values": [{"run": run - 0.5} for run in runs]},
                    "mark": {"type": "rule", "color": LIGHT.s2, "strokeWidth": 2, "strokeDash": dash},
                    "encoding": {"x": place},
                }
            )
    return {
        "title": {"text": clean(figure.name, most=80), "anchor": "start", "fontSize": 13},
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": points},
        "layer": layers,
    }


def _dates(found: History) -> str:
    """A Vega expression: the date of a run instead of its place."""
    dates = ",".join(f'"{clean(run.date[:10]).translate(_QUOTES)}"' for run in found.runs)
    return f"[{dates}][datum.value] || ''"


#: A file may say anything where a date should be.
_QUOTES: Final = str.maketrans({'"': "", "\\": ""})
