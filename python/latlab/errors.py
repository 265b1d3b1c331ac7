"""The exceptions that latlab raises on purpose.

Each message is one line for the person who typed the command: what is wrong and what to do.
"""

from __future__ import annotations


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
