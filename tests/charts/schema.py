"""Charts checked against Vega-Lite's schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import altair as alt
import pytest
from jsonschema import Draft7Validator, ValidationError, validators

from latlab.view.drawing import AnyChart


def against_its_schema(chart: AnyChart | alt.ConcatChart) -> dict[str, Any]:
    """The chart's specification, which is valid: rows are all alike, so two of each table are checked."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    few = _with_few_rows(spec)
    if not _validator().is_valid(few):
        # Which says in words what does not fit.
        type(chart).validate(few)
        pytest.fail("the chart does not fit Vega-Lite's schema")
    return spec


@functools.cache
def _validator() -> Any:  # noqa: ANN401 - jsonschema makes its class
    """Of the whole schema, which is mostly choices: of each that does not fit the first error is enough."""

    def any_of(validator: Any, choices: list[Any], part: object, _: object) -> Iterator[ValidationError]:  # noqa: ANN401
        if not any(validator.evolve(schema=choice).is_valid(part) for choice in choices):
            yield ValidationError("none of the choices fits")

    return validators.extend(Draft7Validator, {"anyOf": any_of})(alt.load_schema())


def _with_few_rows(part: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, dict):
        return {
            key: value[:2] if key == "values" and isinstance(value, list) else _with_few_rows(value)
            for key, value in part.items()
        }
    return [_with_few_rows(value) for value in part] if isinstance(part, list) else part
