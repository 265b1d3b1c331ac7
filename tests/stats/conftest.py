from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def scipy_stats() -> ModuleType:
    """Imported only where it is needed: it takes a second, and each process of a session reads every file."""
    module: ModuleType = pytest.importorskip("scipy.stats")
    return module
