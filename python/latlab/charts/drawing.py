"""The two places where Altair's types are looser than ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import altair as alt

AnyChart: TypeAlias = alt.LayerChart | alt.HConcatChart


def inline(values: Sequence[dict[str, Any]]) -> alt.Data:
    """Rows that travel inside the chart."""
    return alt.Data(values=list(values))  # type: ignore[no-untyped-call]


def layered(
    layers: Sequence[alt.Chart],
    *,
    width: int,
    height: int,
    data: alt.Data | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The layers over one plane, sharing `data` where they bring none."""
    shared = {} if data is None else {"data": data}
    titled = {} if title is None else {"title": title}
    return cast(
        "alt.LayerChart", alt.layer(*layers, **shared).properties(width=width, height=height, **titled)
    )
