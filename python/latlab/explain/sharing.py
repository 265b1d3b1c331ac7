"""A result of explain that can be passed on: without host, user, paths, addresses and serial numbers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from latlab.explain.judge import Judgement
from latlab.explain.model import Explained
from latlab.explain.prove import Proof
from latlab.run.model import Json
from latlab.run.sharing import Anonymous


def anonymous(
    explained: Explained, plain: bytes, judgement: Judgement, proof: Proof | None
) -> tuple[Explained, bytes, Judgement, Proof | None]:
    """The ledger, its JSON, the judgement and the proof, in all of them the same word for the same name."""
    whole = msgspec.json.decode(plain)
    names = Anonymous(keep=[*_keys(whole), *(row.name for row in explained.categories)])
    names.know_this_machine()
    # Learned first: a file that was seen open is an argument by the end of its path.
    names.value(whole)
    hidden = names.value(whole)
    return (
        msgspec.convert(hidden, Explained),
        msgspec.json.encode(hidden),
        names.struct(judgement),
        None if proof is None else names.struct(proof),
    )


def _keys(value: Json) -> Iterator[str]:
    """The names of all fields: a ledger has no others."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
