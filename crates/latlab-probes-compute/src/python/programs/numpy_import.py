"""Imports NumPy, once for all programs: the interpreter has no site-packages of its own."""

import os
import sys

PACKAGES = ""
# NumPy's linear algebra would keep a thread on every CPU, which later measurements would meet.
for library in ("OPENBLAS", "OMP", "MKL", "VECLIB"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
if PACKAGES and PACKAGES not in sys.path:
    sys.path.append(PACKAGES)

import numpy  # noqa: E402 - only now can it be found


def run(part: int) -> int:
    """A part of NumPy's version, counted from 0; parts that are no number are 0."""
    parts = numpy.__version__.split(".")
    return int(parts[part]) if part < len(parts) and parts[part].isdecimal() else 0
