"""Colours and type of every chart, as one Vega-Lite configuration.

A chart names roles (`style="reported"`, the category range), never colours, so one definition is drawn light,
dark, on paper and with the page's CSS variables. Colours differ in lightness as well as in hue and stand out
from their background by at least 3:1; dashes and shapes say the same again, so colour never carries meaning
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

#: Line patterns of a series, in the order of the palette.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (12, 4), (4, 2))
#: Point shapes of a series, in the order of the palette.
SHAPES: tuple[str, ...] = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right")

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', 'Liberation Sans', sans-serif"
)


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour for each role; any CSS colour.

    Attributes:
        surface: Behind the chart.
        ink: Text that must be read.
        muted: Axis labels and rules.
        grid: Grid lines.
        span: Shaded span: where a level was found to end, what the clock cannot resolve.
        s1: First series; the others follow.
        s2: Second series.
        s3: Third series.
        s4: Fourth series.
        s5: Fifth series.
        s6: Sixth series.
    """

    surface: str
    ink: str
    muted: str
    grid: str
    span: str
    s1: str
    s2: str
    s3: str
    s4: str
    s5: str
    s6: str

    @property
    def series(self) -> tuple[str, ...]:
        """The colours of the series, in order."""
        return (self.s1, self.s2, self.s3, self.s4, self.s5, self.s6)


LIGHT = Palette(
    surface="#ffffff",
    ink="#1b2228",
    muted="#57626c",
    grid="#e3e7ea",
    span="#8b97a3",
    s1="#0b62a4",
    s2="#c2490a",
    s3="#11795c",
    s4="#9c3587",
    s5="#7c6100",
    s6="#4f5b66",
)

DARK = Palette(
    surface="#14181c",
    ink="#e8ecef",
    muted="#a3aeb8",
    grid="#2b333a",
    span="#7f8c98",
    s1="#6cb4f5",
    s2="#ff9f66",
    s3="#45cfa3",
    s4="#ee9fd6",
    s5="#e2c044",
    s6="#b7c2cc",
)

#: The colours are what the page's style sheet says, so light, dark and paper need no second drawing.
CSS_VARIABLES = Palette(**{field.name: f"var(--{field.name})" for field in fields(Palette)})


def css(palette: Palette) -> str:
    """The palette as declarations of the variables that :data:`CSS_VARIABLES` refers to."""
    return " ".join(f"--{field.name}: {getattr(palette, field.name)};" for field in fields(Palette))


def config(palette: Palette, *, background: bool = False) -> dict[str, Any]:
    """The Vega-Lite `config` that draws every chart in these colours; the surface too where no page does."""
    return {
        "background": palette.surface if background else "transparent",
        "padding": 4,
        "font": FONT,
        "view": {"stroke": None},
        "range": {"category": list(palette.series)},
        "axis": {
            "domainColor": palette.muted,
            "gridColor": palette.grid,
            "labelColor": palette.muted,
            "labelFontSize": 12,
            "tickColor": palette.muted,
            "titleColor": palette.ink,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
        },
        "axisY": {"labelLimit": 260},
        "legend": {
            "labelColor": palette.ink,
            "labelFontSize": 12,
            "labelLimit": 320,
            "orient": "top",
            "symbolOpacity": 1,
            "symbolSize": 90,
            "symbolStrokeWidth": 0,
            "titleColor": palette.muted,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "columnPadding": 16,
        },
        "title": {
            "anchor": "start",
            "color": palette.ink,
            "fontSize": 12,
            "fontWeight": 600,
            "subtitleColor": palette.muted,
        },
        "header": {"labelColor": palette.ink, "titleColor": palette.ink},
        "line": {"strokeWidth": 2},
        "style": {
            "level": {"color": palette.s1},
            "operation": {"color": palette.s6},
            "range": {"color": palette.s1, "fillOpacity": 0.4},
            "on-level": {"color": palette.surface, "fontWeight": 600, "fontSize": 12},
            "whisker": {"color": palette.ink, "strokeWidth": 1.5},
            "span": {"color": palette.span, "fillOpacity": 0.22},
            "reported": {"color": palette.ink, "strokeWidth": 1.2, "strokeDash": [2, 3]},
            "predicted": {"color": palette.ink, "strokeWidth": 1.5, "strokeDash": [5, 4]},
            "note": {"color": palette.muted, "fontSize": 11},
            "name": {"color": palette.ink, "fontSize": 11},
            "box": {"stroke": palette.surface, "strokeWidth": 0.8},
            "outlined": {"color": palette.surface, "stroke": palette.ink, "strokeWidth": 1.8},
            "crossed": {"color": palette.ink, "strokeWidth": 2},
        },
    }
