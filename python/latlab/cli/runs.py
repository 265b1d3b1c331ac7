"""RUN on the command line: a path, an id, the beginning of one, or `last`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latlab.run.run import Run


def loaded(name: str) -> Run:
    """The run of that name.

    Raises:
        UserError: There is none, or its file cannot be read as a run.
    """
    from latlab.run.run import load  # noqa: PLC0415 - not needed for --help

    return load(name)
