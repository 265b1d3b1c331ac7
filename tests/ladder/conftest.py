from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from latlab.run.model import Record
from latlab.run.run import Run, load


@pytest.fixture(scope="session")
def run(root: Path) -> Run:
    """The synthetic run: L1 48 KiB, L2 1 MiB, 10 to 14 of 32 MiB of L3, small "huge" pages."""
    return load(root / "tests/data/run-small.latlab.jsonl")


@pytest.fixture
def without(run: Run) -> Callable[..., Run]:
    """The same run without the records of which a predicate is true."""

    def drop(unwanted: Callable[[Record], bool]) -> Run:
        return Run(run.header, [record for record in run.records if not unwanted(record)], run.footer)

    return drop


@pytest.fixture
def changed(run: Run) -> Callable[..., Run]:
    """The same run with fields of some records replaced."""

    def change(wanted: Callable[[Record], bool], **fields: object) -> Run:
        records = [
            msgspec.structs.replace(record, **fields) if wanted(record) else record for record in run.records
        ]
        return Run(run.header, records, run.footer)

    return change
