"""The exceptions that latlab raises on purpose.

Each message is one line for the person who typed the command: what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class LatlabError(Exception):
    """Anything that latlab itself reports; never a traceback on the command line."""

    exit_code = 1


class UserError(LatlabError):
    """What was asked for cannot be done as it was written."""

    exit_code = 2


class RunFileError(UserError):
    """A run file cannot be read, or cannot be written where it was asked for."""


class WorkerError(LatlabError):
    """The measuring process could not be started, or said something that it should not have."""


def named(name: str, check: Callable[[Any], T], value: Any) -> T:  # noqa: ANN401 - whatever `check` takes
    """What a check makes of a value; an error begins with the name of what was asked for.

    Raises:
        UserError: the check's.
    """
    try:
        return check(value)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
