"""`latlab stages`."""

from __future__ import annotations

import sys

import click

LANGUAGES = ("c", "rust", "go", "lines")


@click.command("stages")
@click.argument("language", type=click.Choice(LANGUAGES))
def command(language: str) -> None:
    """Print the file with which a program in another language marks its stages.

    It is one file without dependencies, to copy next to your sources: a header for C and C++, a module
    for Rust, a package for Go; `lines` shows how any other language does it by appending to a file. A mark
    costs tens of nanoseconds with a listener, and next to nothing without one.
    Python: with latlab.stage("read"): ...

    \b
    Examples:
      latlab stages c > latlab_stage.h
      latlab stages go > stage/stage.go
    """
    from latlab.run.core import core  # noqa: PLC0415 - loads the extension

    found = core().stages_file(language)
    assert found is not None  # noqa: S101 - the languages are those of the core, which a test compares
    sys.stdout.write(found[1])
