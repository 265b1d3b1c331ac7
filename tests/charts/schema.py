"""Charts checked against Vega-Lite's schema."""

from __future__ import annotations

from typing import Any

import altair as alt

from latlab.view.drawing import AnyChart


def against_its_schema(chart: AnyChart | alt.ConcatChart) -> dict[str, Any]:
    """The chart's specification, which is valid: rows are all alike, so two of each table are checked."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    type(chart).validate(_with_few_rows(spec))
    return spec


def _with_few_rows(part: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, dict):
        return {
            key: value[:2] if key == "values" and isinstance(value, list) else _with_few_rows(value)
            for key, value in part.items()
        }
    return [_with_few_rows(value) for value in part] if isinstance(part, list) else part
