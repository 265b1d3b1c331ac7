"""Structs of msgspec for what probes conclude and keep with a point, from the schema of run files."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

PATH: Final = "python/latlab/findings.py"
#: Probes whose findings a topic reads.
PROBES: Final = ("memory.loaded",)

_HEAD: Final = '''"""The types of what probes conclude and keep with a point; made by tools/findings.py.

A run file may hold anything there: `latlab.view.reading` finds what fits. A list that is not there is empty.
"""

from __future__ import annotations

from typing import ClassVar{literal}

import msgspec

from latlab.run.model import Estimate


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What stands with a record of one probe."""

    PROBE: ClassVar[str]
'''
#: Says nothing of the field.
_ESTIMATE: Final = (
    "A quantity and its 95 % interval; without one where nothing tells how far rounds lie apart."
)
_SIMPLE: Final = {"number": "float", "integer": "int", "string": "str", "boolean": "bool"}
_WIDTH: Final = 110


def module(schema: Schema, probes: Iterable[str] = PROBES) -> str:
    """The text of the module."""
    parts = [part for probe in probes for part in _of_probe(schema, probe)]
    literal = ", Literal" if any("Literal[" in part for part in parts) else ""
    return "\n\n".join([_HEAD.replace("{literal}", literal), *parts])


def names(schema: Schema) -> Iterator[tuple[str, bool, str]]:
    """Probe, whether it is of all points, and the struct's name."""
    for rule in schema["$defs"]["Record"]["allOf"]:
        of = rule["if"]["properties"]
        concluded = of["kind"] == {"const": "derived"}
        probe = of["probe"]["const"]
        yield probe, concluded, _camel(probe) + ("" if concluded else "Details")


def _of_probe(schema: Schema, probe: str) -> list[str]:
    rules = zip(names(schema), schema["$defs"]["Record"]["allOf"], strict=True)
    made: list[str] = []
    for (of, concluded, name), rule in rules:
        if of == probe:
            what = "all points" if concluded else "a point"
            made += _Structs(probe).of(name, rule["then"]["properties"]["findings"], f"`{probe}`, of {what}.")
    return made


class _Structs:
    """The structs of one type, what it is made of first."""

    def __init__(self, probe: str) -> None:
        self._probe, self._made = probe, list[str]()

    def of(self, name: str, schema: Schema, about: str) -> list[str]:
        """Those of a type of that name."""
        (own,) = _without_null(schema)
        self._struct(name, own, about, f'    PROBE = "{self._probe}"\n\n')
        return self._made

    def _struct(self, name: str, schema: Schema, about: str, begin: str = "") -> None:
        fields = [self._field(name, field, own, schema) for field, own in schema["properties"].items()]
        base = "Found" if begin else "msgspec.Struct"
        text = _wrapped(f'"""{about}', 4) + '"""\n'
        self._made.append(
            f"class {name}({base}, frozen=True, kw_only=True):\n{text}\n{begin}{''.join(fields)}"
        )

    def _field(self, name: str, field: str, schema: Schema, parent: Schema) -> str:
        kind = self._type(f"{name}{_camel(field)}", schema)
        default = ""
        if _may_be_null(schema):
            kind, default = f"{kind} | None", " = None"
        elif kind.startswith("tuple[") and kind.endswith(", ...]"):
            default = " = ()"
        elif kind.startswith("dict["):
            default = " = {}"
        elif field not in parent.get("required", ()):
            kind, default = f"{kind} | None", " = None"
        about = schema.get("description", "").removeprefix(_ESTIMATE)
        comment = _wrapped(about, 4, "#: ") + "\n" if about else ""
        if keyword.iskeyword(field):
            return f'{comment}    {field}_: {kind} = msgspec.field(name="{field}")\n'
        return f"{comment}    {field}: {kind}{default}\n"

    def _type(self, name: str, schema: Schema) -> str:
        kinds = _without_null(schema)
        return " | ".join(dict.fromkeys(self._one(name, kind) for kind in kinds))

    def _one(self, name: str, schema: Schema) -> str:
        words = [schema["const"]] if "const" in schema else [word for word in schema.get("enum", ()) if word]
        if words:
            return f"Literal[{', '.join(map(_quoted, words))}]"
        kind = next((each for each in _kinds(schema) if each != "null"), "")
        if kind == "array":
            return self._list(name, schema)
        if kind == "object" and "properties" in schema:
            if set(schema["properties"]) == {"value", "low", "high"}:
                return "Estimate | float"
            self._struct(name, schema, schema.get("description", f"Part of what `{self._probe}` found."))
            return name
        if kind == "object":
            return f"dict[str, {self._type(name, schema['additionalProperties'])}]"
        return _SIMPLE[kind]

    def _list(self, name: str, schema: Schema) -> str:
        if "prefixItems" in schema:
            return f"tuple[{', '.join(self._type(name, each) for each in schema['prefixItems'])}]"
        item = self._type(_singular(name), schema["items"])
        if _may_be_null(schema["items"]):
            item += " | None"
        most = schema.get("maxItems")
        return f"tuple[{', '.join([item] * most)}]" if most else f"tuple[{item}, ...]"


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def _without_null(schema: Schema) -> list[Schema]:
    """What it may be besides null. Of several objects one struct is made, which has what any of them has."""
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not alternatives:
        return [schema]
    found = [kind for each in alternatives for kind in _without_null(each) if _kinds(kind) != ["null"]]
    objects = [kind for kind in found if "properties" in kind]
    if len(objects) < 2:  # noqa: PLR2004 - nothing to join
        return found
    properties = {name: field for kind in objects for name, field in kind["properties"].items()}
    required = set.intersection(*(set(kind.get("required", ())) for kind in objects))
    joined = {"type": "object", "properties": properties, "required": sorted(required)}
    return [joined, *(kind for kind in found if "properties" not in kind)]


def _may_be_null(schema: Schema) -> bool:
    alternatives = schema.get("anyOf") or schema.get("oneOf") or ()
    return "null" in _kinds(schema) or any(map(_may_be_null, alternatives))


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.replace(".", "_").split("_"))


def _singular(name: str) -> str:
    for ending, one in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if name.endswith(ending):
            return name.removesuffix(ending) + one
    return name


def _quoted(word: str) -> str:
    return f'"{word}"'


def _wrapped(text: str, indent: int, begin: str = "") -> str:
    lead = " " * indent + begin
    return textwrap.fill(
        " ".join(text.split()),
        _WIDTH - 3,
        initial_indent=lead,
        subsequent_indent=lead,
        break_long_words=False,
    )
