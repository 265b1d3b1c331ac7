"""latlab measures how long memory, disk, network and kernel operations take on this machine.

    import latlab
    run = latlab.measure(only="memory.*")
    run.levels
    latlab.load("last").to_pandas()

Every name here is imported when it is first used: `import latlab` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from latlab import lessons
    from latlab.errors import LatlabError, RunFileError, UserError, WorkerError
    from latlab.run.core import describe, list_probes, plan
    from latlab.run.measure import measure
    from latlab.run.model import Record
    from latlab.run.run import Records, Run, load
    from latlab.stages import stage

__all__ = [
    "LatlabError",
    "Record",
    "Records",
    "Run",
    "RunFileError",
    "UserError",
    "WorkerError",
    "describe",
    "lessons",
    "list_probes",
    "load",
    "measure",
    "plan",
    "stage",
]

_PLACES: Final = {
    "LatlabError": "latlab.errors",
    "RunFileError": "latlab.errors",
    "UserError": "latlab.errors",
    "WorkerError": "latlab.errors",
    "Record": "latlab.run.model",
    "Records": "latlab.run.run",
    "Run": "latlab.run.run",
    "load": "latlab.run.run",
    "describe": "latlab.run.core",
    "list_probes": "latlab.run.core",
    "measure": "latlab.run.measure",
    "plan": "latlab.run.core",
    "stage": "latlab.stages",
}


def __getattr__(name: str) -> object:
    if name == "lessons":
        return importlib.import_module("latlab.lessons")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'latlab' has no attribute {name!r}")
    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
