"""The two places where Altair's types are looser than ours."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Self, TypeAlias, cast

import altair as alt
from altair.utils import schemapi

#: Draws without checking each part against Vega-Lite's schema: the tests check every chart as a whole.
unchecked = functools.partial(schemapi.debug_mode, False)

AnyChart: TypeAlias = alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart


def plain_spec(chart: AnyChart) -> dict[str, Any]:
    """What a document embeds. The theme is set where it is drawn; Altair's own config would win over it."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    return spec


class _Rows(alt.Data):
    """Rows that nobody changes any more.

    Altair copies whatever it layers, again and again, and looks at each value of it: half of a report's time.
    """

    _class_is_valid_at_instantiation = False

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def to_dict(self, *_how: object, **_more: object) -> dict[str, Any]:
        """The rows as they are: inside lie numbers, texts and lists of Python's own."""
        return {"values": self["values"]}


def inline(values: Sequence[dict[str, Any]]) -> alt.Data:
    """Rows that travel inside the chart."""
    return _Rows(values=list(values))  # type: ignore[no-untyped-call]


def layered(
    layers: Sequence[alt.Chart],
    *,
    width: int,
    height: int,
    data: alt.Data | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The layers over one plane, sharing `data` where they bring none."""
    for layer in layers:
        _keep(layer.encoding)
        _keep(layer.mark)
    shared = {} if data is None else {"data": data}
    titled = {} if title is None else {"title": title}
    return cast("alt.LayerChart", alt.layer(*layers, width=width, height=height, **shared, **titled))


def _keep(part: object) -> None:
    """Lets Altair's copies of a chart share this part: copying it took half of a report's time."""
    if isinstance(part, alt.SchemaBase):
        object.__setattr__(part, "__deepcopy__", lambda _memo: part)
