"""`latlab stages`."""

from __future__ import annotations

import sys

import click

LANGUAGES = ("c", "rust", "go", "lines")


@click.command("stages")
@click.argument("language", type=click.Choice(LANGUAGES))
def command(language: str) -> None:
    """Print the file by which a program in another language marks its stages.

    One file without dependencies, to be copied beside the sources: a header for C and C++, a module for Rust,
    a package for Go; `lines` says how any other language does it by appending to a file. The marks cost tens
    of nanoseconds with a listener, next to nothing without. Python: with latlab.stage("read"): ...

    \b
    Examples:
      latlab stages c > latlab_stage.h
      latlab stages go > stage/stage.go
    """
    from latlab.run.core import core  # noqa: PLC0415 - loads the extension

    found = core().stages_file(language)
    assert found is not None  # noqa: S101 - the languages are those of the core, which a test compares
    sys.stdout.write(found[1])
