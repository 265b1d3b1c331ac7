"""An environment that changes what programs do, a variable of each kind."""

from __future__ import annotations

from typing import Final

UNUSUAL: Final = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONMALLOC": "debug",
    "PYTHONDEVMODE": "1",
    "PYTHONTRACEMALLOC": "5",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_PERTURB_": "7",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "GOGC": "off",
    "GOMAXPROCS": "1",
    "NODE_OPTIONS": "--max-old-space-size=64",
}
