"""Log axes with ticks as people say them: 4 KiB, 64 KiB, 1 MiB; 10 ns, 1 µs, 1 ms; 1 in 1,000."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import altair as alt

# Vega expressions: constant text, never built from what a run file says.
_SIZE_LABEL = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',') + ' GiB' : datum.value >= 1048576 ?"
    " datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_DURATION_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, ',') + ' s' : datum.value >= 1e6 ? format(datum.value /"
    " 1e6, '~r') + ' ms' : datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' µs' : datum.value >= 1 ?"
    " format(datum.value, '~r') + ' ns' : format(datum.value * 1e3, '~r') + ' ps'"
)
#: The same where an axis begins at zero.
DURATION_FROM_ZERO = "datum.value == 0 ? '0' : " + _DURATION_LABEL
_RATE_LABEL = (
    "datum.value >= 1e12 ? format(datum.value / 1e12, '~r') + ' TB/s' : datum.value >= 1e9 ?"
    " format(datum.value / 1e9, '~r') + ' GB/s' : format(datum.value / 1e6, '~r') + ' MB/s'"
)
_PER_SECOND_LABEL = "format(datum.value, ',~r') + ' /s'"
_SHARE_LABEL = "datum.value >= 1 ? 'all' : '1 in ' + format(1 / datum.value, ',.0f')"

_MOST_DECADES_WITH_STEPS = 2.5


def decades(low: float, high: float, steps: Iterable[int] = (1,)) -> list[float]:
    """`steps` times every power of ten within `low` to `high`, ends included."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten; with 2 and 5 between them where there would be too few."""
    few = math.log10(high / low) <= _MOST_DECADES_WITH_STEPS
    return decades(low, high, (1, 2, 5) if few else (1,))


def widened(values: Iterable[float], *, down: float = 1.25, up: float = 1.25) -> tuple[float, float]:
    """A log axis's ends: the values' with some room."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    if not positive:
        return (1.0, 10.0)
    return (min(positive) / down, max(positive) * up)


def _scale(low: float, high: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)


def size_axis(field: str, title: str, low: float, high: float) -> alt.X:
    """Bytes along x, a tick every second power of two or as many as there is room for."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    # 4 KiB, 64 KiB, 1 MiB: powers of 16 on a wide axis, of 4 on a narrow one.
    step = 4 if last - first > 12 else 2  # noqa: PLR2004 - six labels fit on paper
    values = [2**power for power in range(first, last + 1) if (power - 10) % step == (2 if step == 4 else 0)]  # noqa: PLR2004
    axis = alt.Axis(values=values, labelExpr=_SIZE_LABEL, labelOverlap=True, grid=True)
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=[low, high], nice=False),
        axis=axis,
    )


def count_axis(field: str, title: str, values: list[int]) -> alt.X:
    """Whole numbers along x, doubling."""
    axis = alt.Axis(values=values, labelExpr="format(datum.value, ',')", labelOverlap=True, grid=True)
    domain = [min(values) / 1.1, max(values) * 1.1]
    return alt.X(
        f"{field}:Q", title=title, scale=alt.Scale(type="log", base=2, domain=domain, nice=False), axis=axis
    )


def _decades(low: float, high: float, label: str) -> dict[str, Any]:
    axis = alt.Axis(values=_ticks(low, high), labelExpr=label, labelOverlap=True, grid=True)
    return {"scale": _scale(low, high), "axis": axis}


def _x(label: str, field: str, title: str, low: float, high: float) -> alt.X:
    return alt.X(f"{field}:Q", title=title, **_decades(low, high, label))


def _y(label: str, field: str, title: str, low: float, high: float) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, **_decades(low, high, label))


#: Along x and y, of a field, with a title, from a low to a high end: nanoseconds, bytes a second, how often
#: in a second.
duration_x, duration_y = partial(_x, _DURATION_LABEL), partial(_y, _DURATION_LABEL)
rate_x, rate_y = partial(_x, _RATE_LABEL), partial(_y, _RATE_LABEL)
per_second_x, per_second_y = partial(_x, _PER_SECOND_LABEL), partial(_y, _PER_SECOND_LABEL)


def names_y(field: str, names: Sequence[str], look: dict[str, Any], **padding: Any) -> alt.Y:  # noqa: ANN401 - of a scale
    """A row for each name from top to bottom, in their order; of the axis the names, as `look` has them."""
    scale = alt.Scale(domain=list(names), **padding)
    axis = alt.Axis(**{"grid": False, "ticks": False, "domain": False} | look)
    return alt.Y(f"{field}:N", title=None, sort=None, scale=scale, axis=axis)


def share_y(field: str, title: str, low: float) -> alt.Y:
    """A share along y from 1 down to `low`, as `1 in 1,000`."""
    axis = alt.Axis(values=decades(low, 1.0), labelExpr=_SHARE_LABEL, grid=True)
    return alt.Y(f"{field}:Q", title=title, scale=_scale(low, 1.0), axis=axis)


def linear_duration_y(field: str, title: str, high: float) -> alt.Y:
    """Nanoseconds along y from zero, in equal steps: for what is to be compared by length."""
    axis = alt.Axis(labelExpr=DURATION_FROM_ZERO, tickCount=6, grid=True)
    scale = alt.Scale(domain=[0, high], nice=False, clamp=True)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=axis)


def linear_rate_x(field: str, title: str, high: float) -> alt.X:
    """Bytes a second along x from zero, in equal steps."""
    axis = alt.Axis(labelExpr="datum.value == 0 ? '0' : " + _RATE_LABEL, tickCount=7, grid=True)
    scale = alt.Scale(domain=[0, high], nice=False, clamp=True)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def linear_rate_y(field: str, title: str, high: float) -> alt.Y:
    """Bytes a second along y from zero, in equal steps."""
    axis = alt.Axis(labelExpr="datum.value == 0 ? '0' : " + _RATE_LABEL, tickCount=6, grid=True)
    scale = alt.Scale(domain=[0, high], nice=False, clamp=True)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=axis)
