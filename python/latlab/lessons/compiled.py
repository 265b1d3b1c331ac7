"""C programs of a lesson: compiled into its scratch folder, run with nothing set that changes malloc."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from latlab.lessons.bench import Cannot
from latlab.text import clean

#: Compilers in the order in which they are looked for.
COMPILERS: Final = ("gcc", "cc", "clang")
#: As the document compiles.
FLAGS: Final = ("-O3", "-Wall")
_COMPILES_S: Final = 60.0
_RUNS_S: Final = 60.0
#: What would put another allocator or other settings under a program that is to show the usual ones.
_CHANGES_MALLOC: Final = ("LD_PRELOAD", "GLIBC_TUNABLES", "ASAN_OPTIONS", "MALLOC_")


class Compiler:
    """Compiles programs of the lessons into a folder.

    Args:
        folder: Where to; it is the caller's to remove.

    Raises:
        Cannot: there is no compiler.
    """

    def __init__(self, folder: Path) -> None:
        found = next((path for name in COMPILERS if (path := shutil.which(name)) is not None), None)
        if found is None:
            raise Cannot(
                f"there is no C compiler here ({', '.join(COMPILERS)}); Debian: apt install gcc libc6-dev"
            )
        self._command = found
        self._folder = folder

    def program(self, name: str, *flags: str, libraries: Iterable[str] = (), tag: str = "") -> Path:
        """The executable of `programs/NAME.c`.

        Args:
            name: Without its ending.
            flags: Instead of those of the document.
            libraries: As `-ldl`.
            tag: Tells executables of one program apart.

        Raises:
            Cannot: it does not compile here.
            OSError: the folder cannot be written.
        """
        source = self._folder / f"{name}.c"
        text = resources.files("latlab.lessons").joinpath("programs", f"{name}.c").read_text(encoding="utf-8")
        source.write_text(text, encoding="utf-8")
        target = self._folder / f"{name}{tag}"
        told = subprocess.run(  # noqa: S603 - a compiler on a program of ours
            [self._command, *(flags or FLAGS), "-o", target, source, *libraries],
            capture_output=True,
            check=False,
            timeout=_COMPILES_S,
        )
        if told.returncode != 0:
            said = clean(told.stderr.decode("utf-8", "replace").strip().partition("\n")[0], most=200)
            raise Cannot(f"{Path(self._command).name} does not compile {name}.c here: {said}")
        return target


def ran(
    program: Path, *words: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that was run to its end, whatever its exit code.

    Raises:
        Cannot: the folder is one from which nothing may be executed.
        subprocess.TimeoutExpired: it took a minute.
    """
    try:
        return subprocess.run(  # noqa: S603 - compiled from a program of ours
            [program, *map(str, words)],
            capture_output=True,
            check=False,
            text=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_RUNS_S,
            env=usual_environment() | dict(environment or {}),
        )
    except PermissionError:
        raise Cannot(
            f"no program may be run from {program.parent.parent} (mounted noexec?); name another with --dir"
        ) from None


def told(program: Path, *words: object, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a program says, as `name value` lines.

    Raises:
        Cannot: see `ran`.
        subprocess.CalledProcessError: it failed.
    """
    done = ran(program, *words, environment=environment)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, program.name, done.stdout, done.stderr)
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())


def usual_environment() -> dict[str, str]:
    """This process's environment without what changes malloc."""
    return {name: text for name, text in os.environ.items() if not name.startswith(_CHANGES_MALLOC)}
