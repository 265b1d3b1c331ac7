"""Whether records fit the schema of run files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parent.parent


@cache
def validator() -> Draft202012Validator:
    """Of a record: a line of a round, or a figure."""
    document = json.loads((ROOT / "schema/run.v2.json").read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": "#/$defs/Record", "$defs": document["$defs"]})


def misfits(records: Iterable[dict[str, Any]]) -> list[str]:
    """What does not fit, with the record's probe and point."""
    return [
        f"{record['probe']} {record['point']} {error.json_path}: {error.message}"
        for record in records
        for error in validator().iter_errors(record)
    ]
