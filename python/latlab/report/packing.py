"""The charts' specifications as the page carries them: the same pictures in a quarter of the bytes.

Rows of figures travel column by column, with the digits that a screen can show; what occurs more than once,
in one chart or in several, is written once. `report.js` puts both back before it draws; tables and CSV have
their figures from elsewhere and keep every digit.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import msgspec

#: A tenth of a pixel needs four digits on the widest log axis; one more leaves no room for doubt.
_DIGITS = 5
#: Below so many bytes a reference saves nothing.
_WORTH_SHARING = 30

PART, COLUMNS, RUNS = "$part", "$columns", "$runs"


def packed(specs: dict[str, dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
    """The specifications by name, and the parts that they refer to by number."""
    columned = _columned(specs)
    seen: Counter[bytes] = Counter()
    _count(columned, seen)
    parts: list[Any] = []
    return _referring(columned, seen, {}, parts), parts


def _columned(node: Any) -> Any:  # noqa: ANN401 - a walk over any JSON
    if isinstance(node, dict):
        return {
            key: _columns(value) if key == "values" and _are_rows(value) else _columned(value)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_columned(value) for value in node]
    return node


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)


def _columns(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - rows stay rows where they differ in their fields
    if any(row.keys() != rows[0].keys() for row in rows):
        return [{key: rounded(value) for key, value in row.items()} for row in rows]
    return {COLUMNS: {key: _column([rounded(row[key]) for row in rows]) for key in rows[0]}}


def _column(values: list[Any]) -> Any:  # noqa: ANN401 - a list, or its runs where they are shorter
    # By text: to Python 1 and True are one value.
    same = [list(run) for _, run in groupby(values, _text)]
    return min(values, {RUNS: [[run[0], len(run)] for run in same]}, key=lambda form: len(_text(form)))


def rounded(value: Any) -> Any:  # noqa: ANN401 - whatever a row holds
    """A fraction with the digits that are drawn; whole numbers, sizes and counts, stay as they are."""
    if not isinstance(value, float):
        return value
    short = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def _count(node: Any, seen: Counter[bytes]) -> None:  # noqa: ANN401 - as above
    if not isinstance(node, dict | list | str):
        return
    text = _text(node)
    seen[text] += 1
    # What is inside of something repeated goes with it: it counts once.
    if seen[text] == 1 and not isinstance(node, str):
        for value in node.values() if isinstance(node, dict) else node:
            _count(value, seen)


def _referring(node: Any, seen: Counter[bytes], numbers: dict[bytes, int], parts: list[Any]) -> Any:  # noqa: ANN401
    if not isinstance(node, dict | list | str):
        return node
    text = _text(node)
    shared = seen[text] > 1 and len(text) >= _WORTH_SHARING
    if shared and text in numbers:
        return {PART: numbers[text]}
    inner: Any = node
    if isinstance(node, dict):
        inner = {key: _referring(value, seen, numbers, parts) for key, value in node.items()}
    elif isinstance(node, list):
        inner = [_referring(value, seen, numbers, parts) for value in node]
    if not shared:
        return inner
    numbers[text] = len(parts)
    parts.append(inner)
    return {PART: numbers[text]}


def _text(node: Any) -> bytes:  # noqa: ANN401 - as above
    return msgspec.json.encode(node)
