"""Makes every free string of a run file hostile: markup, expressions, terminal escapes, bidi overrides."""

from __future__ import annotations

import json
from typing import Any

#: Markup for every renderer and escapes for the terminal, in one string.
HOSTILE = (
    '</script><img src=x onerror="window.pwned=1">{{7*7}}<!--'
    '\x1b]0;pwned\x07\u2028\u202e |*_[a](javascript:alert(1)) #read("/etc/passwd") \'"&'
)
#: What decides how a record is read, and so has to stay as it is for the string to reach a report at all.
_STRUCTURE = {
    *("line", "schema", "id", "probe", "unit", "kind", "rank", "reach", "stopped_by", "pages", "order"),
    *("state", "placement", "between", "transport"),
    *("connections", "protocol", "path"),
    *("data", "encoding", "severity", "profile"),
}


def poisoned_line(line: str) -> str:
    return json.dumps(poisoned(json.loads(line), ""))


def poisoned(value: Any, key: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        bad = {name: poisoned(inner, name) for name, inner in value.items()}
        if value.get("kind") != "absent" and "operation" in value.get("point", {}):
            # Without its operation a record is on no chart: they are to be drawn with hostile words around.
            bad["point"]["operation"] = value["point"]["operation"]
        return bad
    if isinstance(value, list):
        return [poisoned(inner, key) for inner in value]
    # By this name of an engine latlab's own transfers are told from those of Python's clients.
    if isinstance(value, str) and key not in _STRUCTURE and (key, value) != ("engine", "latlab"):
        return value + HOSTILE
    return value
