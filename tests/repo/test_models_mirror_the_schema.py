"""The Rust types own the schema; the Python structs must not forget a field of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from latlab.run import model

# Where Python calls a type by another name than Rust: both crates have an `Overhead`.
RUST_NAMES = {"ClockOverhead": "Overhead", "Overhead": "Overhead2"}
# Probes write `Level` and `Estimate` into free-form findings; `WholeRun` is the header with its records.
OTHERS = {"Model", "Level", "Estimate", "WholeRun"}


def structs() -> list[type[msgspec.Struct]]:
    """Every struct of the model that mirrors a type of the schema."""
    found = [
        item for item in vars(model).values() if isinstance(item, type) and issubclass(item, model.Model)
    ]
    return sorted((item for item in found if item.__name__ not in OTHERS), key=lambda item: item.__name__)


@pytest.fixture(scope="module")
def definitions() -> dict[str, Any]:
    path = Path(__file__).resolve().parents[2] / "schema/run.v2.json"
    defs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["$defs"]
    return defs


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_a_struct_has_exactly_the_fields_of_its_rust_type(
    struct: type[msgspec.Struct], definitions: dict[str, Any]
) -> None:
    name = struct.__name__
    schema = definitions[RUST_NAMES.get(name, name)]
    assert set(struct.__struct_encode_fields__) == set(schema["properties"])


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_a_field_that_python_requires_is_always_written_by_rust(
    struct: type[msgspec.Struct], definitions: dict[str, Any]
) -> None:
    name = struct.__name__
    schema = definitions[RUST_NAMES.get(name, name)]
    required = {field.encode_name for field in msgspec.structs.fields(struct) if field.required}
    assert required <= set(schema.get("required", []))
