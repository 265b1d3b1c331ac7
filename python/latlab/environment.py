"""Variables of the environment that change what a program does, and the environment without them.

A lesson shows the usual: `print` without a buffer (PYTHONUNBUFFERED, as many containers set it) writes
3,000 times as often. So `latlab lesson` starts again without what is set of these, and says so; what a lesson
compiles and starts runs without them in any case, and with text in UTF-8.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

#: Beginnings of their names: of allocators, threads of numeric libraries, and the runtimes of languages.
_CHANGING: Final = (
    *("LD_PRELOAD", "GLIBC_TUNABLES", "ASAN_OPTIONS", "MALLOC_", "JEMALLOC_", "MI_", "TCMALLOC_"),
    *("OMP_", "GOMP_", "OPENBLAS_", "MKL_", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "NODE_OPTIONS"),
    "PYTHON",
)
#: What only says where Python finds and keeps its files, and how latlab itself writes to the terminal.
_HARMLESS: Final = frozenset(
    {
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH"),
        *("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8"),
    }
)
#: In which the names of those that were left out are handed on.
_LEFT_OUT: Final = "LATLAB_LEFT_OUT"


def changing(environment: Mapping[str, str]) -> list[str]:
    """Names of those that are set, sorted."""
    return sorted(name for name in environment if name.startswith(_CHANGING) and name not in _HARMLESS)


def usual() -> dict[str, str]:
    """This process's environment without them, for a program that is to show the usual."""
    left_out = {*changing(os.environ), _LEFT_OUT, "PYTHONIOENCODING"}
    kept = {name: text for name, text in os.environ.items() if name not in left_out}
    return kept | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}


def without() -> dict[str, str] | None:
    """This process's environment without them, to start again in; None where none is set or it was done."""
    names = changing(os.environ)
    if not names or _LEFT_OUT in os.environ:
        return None
    kept = {name: text for name, text in os.environ.items() if name not in names}
    return kept | {_LEFT_OUT: ", ".join(names)}


def said() -> str:
    """What of them was left out of this process's environment, or is set in it; empty where none was set."""
    names = changing(os.environ)
    parts = [f"without {os.environ[_LEFT_OUT]}"] if os.environ.get(_LEFT_OUT) else []
    return ", ".join(parts + ([f"with {', '.join(names)} set"] if names else []))
