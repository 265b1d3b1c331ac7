"""The command line within this process, for what is about words and files: starting one takes longest."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

from latlab.cli import main


def called(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Runs `latlab ARGUMENTS` in a folder, with that environment and no terminal."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    with (
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
    ):
        code = main.run(arguments)
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read())
    return CompletedProcess(arguments, code, *texts)


def warning(reported: CompletedProcess[str], doctor: Sequence[Mapping[str, Any]], name: str) -> str:
    """The title of this one of a run's findings, which stood above its figures.

    Three do: on a busy machine there may be graver ones, and it is among the others that are counted there.
    """
    (title,) = (finding["title"] for finding in doctor if finding["id"] == name)
    words = " ".join(reported.stderr.split())
    assert title in words or re.search(r"\d+ warnings .* and \d+ more ", words), words
    return str(title)
