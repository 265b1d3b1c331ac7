"""The JSON Schema of a lesson's JSON, from the types that are written."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from latlab.lessons.model import Result

_NOT_WRITTEN = ("run", "charts")


def schema_json() -> str:
    """`schema/lesson.v1.json`: every field is always written."""
    schema = msgspec.json.schema(Result)
    for name, part in schema["$defs"].items():
        if "properties" in part:
            part["required"] = list(part["properties"])
            for each in part["properties"].values():
                each.pop("default", None)
        if name == "Result":
            for field in _NOT_WRITTEN:
                del part["properties"][field]
                part["required"].remove(field)
            part["description"] = "A lesson that was run, as latlab lesson NAME --out FILE.json writes it."
    body: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "latlab.lesson/1",
        **schema,
    }
    return json.dumps(body, ensure_ascii=False, indent=2) + "\n"
