"""The types that are made from the schema hold what probes of real runs have found, whatever the probe."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from tools import findings

from latlab.run.run import load


@pytest.fixture
def every(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it would be if topics read all probes."""
    schema = json.loads((root / "schema/run.v2.json").read_text(encoding="utf-8"))
    made = ModuleType("every_finding")
    # Annotations are looked up by the module's name.
    monkeypatch.setitem(sys.modules, made.__name__, made)
    text = findings.module(schema, dict.fromkeys(probe for probe, _, _ in findings.names(schema)))
    exec(compile(text, made.__name__, "exec"), made.__dict__)
    made.names = {(probe, concluded): name for probe, concluded, name in findings.names(schema)}  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("file", ["standard.json.zst", "quick.latlab.jsonl.zst"])
def test_what_every_probe_found_fits_its_type(file: str, every: ModuleType, root: Path) -> None:
    fitting: Counter[bool] = Counter()
    for record in load(root / "tests/golden/inputs" / file).records:
        name = every.names.get((record.probe, record.kind == "derived"))
        if name is not None and record.kind != "absent" and record.findings is not None:
            msgspec.convert(record.findings, getattr(every, name))
            fitting[record.kind == "derived"] += 1
    assert fitting[True] >= 15
    assert fitting[False] >= 50


def test_a_type_refuses_what_is_of_another_type(every: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError, match="read_percent"):
        msgspec.convert({"curves": [{"read_percent": "all", "threads": 1}]}, every.MemoryLoaded)
