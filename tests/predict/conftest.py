"""Answers of tests are not those of a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from latlab.predict import refuse


@pytest.fixture(autouse=True)
def quiet_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other program waits for a disk."""
    monkeypatch.setattr(refuse, "_PRESSURE", tmp_path / "nothing")
