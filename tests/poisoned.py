"""Lines of a run file with given texts in every string and beside every key."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from latlab.run.model import Json

#: What decides how a line is read.
READ = frozenset(
    {"line", "schema", "unit", "kind", "rank", "reach", "stopped_by", "severity", "encoding", "data"}
)
#: And what decides whether a rendering shows it.
SHOWN = READ | {
    *("probe", "pages", "order", "state", "placement", "between", "transport", "connections", "protocol"),
    *("path", "engine", "operation", "profile", "id"),
}
#: What may have any keys.
_FREE = frozenset({"machine", "findings"})


def poisoned(value: Json, texts: Iterator[str], keep: Set[str], key: str = "", *, free: bool = False) -> Json:
    """The same with one of the texts in the place of every string, and beside every key that may be any."""
    if isinstance(value, dict):
        free = free or key in _FREE
        out = {name: poisoned(item, texts, keep, name, free=free) for name, item in value.items()}
        if free:
            out |= {next(texts): next(texts), next(texts): {next(texts): [next(texts)]}}
        elif key == "refused":
            out[next(texts)] = next(texts)
        elif key == "intervals":
            out[next(texts)] = [1.0, 2.0]
        return out
    if isinstance(value, list):
        return [poisoned(item, texts, keep, key, free=free) for item in value]
    return next(texts) if isinstance(value, str) and key not in keep else value


@functools.cache
def few(most: int) -> list[dict[str, Json]]:
    """Header, figures and footer of a run: of each probe and kind one figure, with findings and without."""
    path = Path(__file__).resolve().parent / "data" / "run-small.latlab.jsonl"
    header, footer = (json.loads(line) for line in path.read_bytes().splitlines())
    first: dict[tuple[str, str, bool], dict[str, Json]] = {}
    for figure in footer.pop("figures"):
        first.setdefault((figure["probe"], figure["kind"], "findings" in figure), figure)
    return [header, *list(first.values())[:most], {**footer, "fold": 0}]


def as_text(parts: Sequence[Json]) -> str:
    """Such parts as one object, as `measure --json` prints it."""
    header, *figures, footer = parts
    own = {name: value for name, value in header.items() if name != "line"}
    return json.dumps({**own, "records": figures, "footer": footer})
