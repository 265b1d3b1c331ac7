"""What the probes say of themselves, for "how this was measured"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from latlab.report.document import Method


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of this version of latlab, by id."""

    methods: Mapping[str, Method]

    def methods_of(self, *ids: str) -> tuple[Method, ...]:
        """The methods of those probes that this version has."""
        return tuple(self.methods[identity] for identity in ids if identity in self.methods)


def known() -> Probes:
    """The registry of the measuring core."""
    from latlab import _core  # noqa: PLC0415 - only a report needs it

    return from_json(_core.list_probes())


def from_json(text: str) -> Probes:
    """The same from the registry's JSON. A paragraph of a method ends at an empty line."""
    methods = {}
    for probe in json.loads(text):
        paragraphs = [" ".join(part.split()) for part in str(probe["method"]).split("\n\n")]
        methods[probe["id"]] = Method(
            probe=probe["id"],
            title=probe["title"],
            version=int(probe["method_version"]),
            paragraphs=tuple(part for part in paragraphs if part),
        )
    return Probes(methods)
