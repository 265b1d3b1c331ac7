"""Programs of a lesson, compiled into its folder; those of C run with nothing set that changes malloc."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from latlab.environment import usual
from latlab.lessons.bench import Cannot
from latlab.text import clean

#: Compilers in the order in which they are looked for.
COMPILERS: Final = ("gcc", "cc", "clang")
#: As the source compiles.
FLAGS: Final = ("-O3", "-Wall")
_COMPILES_S: Final = 60.0
_RUNS_S: Final = 60.0
#: The first build of Go compiles Go's own library, where nobody has yet; the second finds it.
_GO: Final = threading.Lock()
#: How the programs of a lesson that mark their stages are compiled.
_BUILDS: Final = {
    "go": (("go",), ("build", "-o", "program", ".")),
    "rust": (("rustc",), ("--edition", "2021", "-C", "opt-level=3", "-o", "program")),
    "c": (("cc", "gcc", "clang"), ("-O2", "-pthread", "-o", "program")),
}
#: Of Rust, for the stage marks; Debian 12 has 1.63.
_RUST: Final = " (it needs Rust 1.82 or newer)"
_BUILDS_S: Final = 180.0


class Compiler:
    """Compiles programs of the lessons into a folder, which is the caller's to remove.

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
            flags: Instead of those of the source.
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
        result = subprocess.run(  # noqa: S603 - a compiler on a program of ours
            [self._command, *(flags or FLAGS), "-o", target, source, *libraries],
            capture_output=True,
            check=False,
            timeout=_COMPILES_S,
        )
        if result.returncode != 0:
            said = clean(result.stderr.decode("utf-8", "replace").strip().partition("\n")[0], most=200)
            raise Cannot(f"{Path(self._command).name} cannot compile {name}.c here: {said}")
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
            env=usual() | dict(environment or {}),
        )
    except PermissionError:
        raise Cannot(
            f"programs cannot be run from {program.parent.parent} (mounted noexec?); name another "
            "directory with --dir"
        ) from None


def lines_of(program: Path, *words: object, environment: Mapping[str, str] | None = None) -> list[str]:
    """What a program says.

    Raises:
        Cannot: see `ran`.
        subprocess.CalledProcessError: it failed.
    """
    done = ran(program, *words, environment=environment)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, program.name, done.stdout, done.stderr)
    return done.stdout.splitlines()


def reported(program: Path, *words: object, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The same of one that says lines of a name and a value."""
    return dict(line.partition(" ")[::2] for line in lines_of(program, *words, environment=environment))


def built(language: str, source: Path, place: Path) -> Path:
    """A program that is built beside the file by which its language marks stages (`latlab stages`).

    Args:
        language: `go`, `rust` or `c`.
        source: Its text.
        place: A new folder for it.

    Raises:
        Cannot: there is no compiler, or it fails.
        OSError: the folder cannot be written.
        subprocess.TimeoutExpired: it took three minutes.
    """
    from latlab.run.core import core  # noqa: PLC0415 - the core is not there everywhere

    names, words = _BUILDS[language]
    compiler = next(filter(None, map(shutil.which, names)), None)
    if compiler is None:
        raise Cannot(f"there is no {' or '.join(names)} here; its columns are left out")
    marks = core().stages_file(language)
    assert marks is not None  # noqa: S101 - the languages are those of the core
    go = language == "go"
    beside = place / "stage" if go else place
    beside.mkdir(parents=True)
    (beside / marks[0]).write_text(marks[1], encoding="utf-8")
    shutil.copyfile(source, place / source.name)
    if go:
        (place / "go.mod").write_text("module words\n\ngo 1.20\n", encoding="utf-8")
    with _GO if go else contextlib.nullcontext():
        done = subprocess.run(  # noqa: S603 - a compiler of this machine, with fixed arguments
            [compiler, *words] if go else [compiler, *words, source.name],
            cwd=place,
            env=os.environ | _go_environment(place.parent) if go else None,
            capture_output=True,
            check=False,
            timeout=_BUILDS_S,
        )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it prints nothing"]
        first = next((line for line in lines if "error" in line), lines[-1])
        needs = _RUST if language == "rust" else ""
        raise Cannot(f"{Path(compiler).name} could not build it{needs}: {clean(first, most=200)}")
    return place / "program"


def _go_environment(folder: Path) -> dict[str, str]:
    """Builds without a network; where the user has no folder for its cache, in the lesson's own."""
    settings = {"GO111MODULE": "on", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    # Nothing is fetched, so nothing is put into the folder for that.
    settings |= {"CGO_ENABLED": "0", "GOPATH": os.environ.get("GOPATH") or "/nonexistent/latlab"}
    # No folder for counts of its own use: it takes no relative path.
    settings |= {"XDG_CONFIG_HOME": "off", "GOENV": "off"}
    cache = Path(
        os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/nonexistent") / ".cache"
    )
    if not os.environ.get("GOCACHE") and not os.access(cache, os.W_OK):
        settings["GOCACHE"] = str(folder / "go-cache")
    return settings
