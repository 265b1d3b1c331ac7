"""What is to be measured, from what people write: checked before anything is started."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from latlab.errors import UserError
from latlab.run import model
from latlab.run.away import checked_requests, checked_secret_file, checked_url
from latlab.text import clean
from latlab.units import parse_cpus, parse_seconds, parse_size

PROFILES: Final = ("quick", "standard", "thorough")
#: Distances with a name; the core knows how long they are.
DISTANCES: Final = ("same-rack", "same-city", "london-california")
#: Shorter than this the loopback's own wake-ups are most of a round trip; longer no path on Earth is.
SHORTEST_DELAY_MS: Final = 0.05
LONGEST_DELAY_MS: Final = 2000.0
#: From a modem of two voices to the fastest link that a forwarder of frames could be asked to slow down.
LOWEST_RATE_MBIT: Final = 0.1
HIGHEST_RATE_MBIT: Final = 10_000.0


def make_settings(
    *,
    only: str | Iterable[str] | None = None,
    skip: str | Iterable[str] | None = None,
    profile: str = "standard",
    dir: str | os.PathLike[str] | None = None,  # noqa: A002
    budget: float | str | None = None,
    max_bytes: int | str | None = None,
    cpus: str | Iterable[int] | None = None,
    seed: int | None = None,
    gentle: bool = False,
    file: str | os.PathLike[str] | None = None,
    first_touch: str | os.PathLike[str] | None = None,
    drop_caches: bool = False,
    delay_ms: float | None = None,
    rate_mbit: float | None = None,
    distance: str | None = None,
    url: str | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    requests_per_s: int | None = None,
) -> model.Settings:
    """Settings from what people write.

    Raises:
        UserError: one of them is not possible; one line says which and what would be.
    """
    if profile not in PROFILES:
        raise UserError(f"there is no profile {clean(profile, most=60)!r}; there are {', '.join(PROFILES)}")
    if seed is not None and not 0 <= seed <= model.LARGEST_INTEGER:
        raise UserError("the seed must be from 0 to 2^64 - 1")
    return model.Settings(
        profile=profile,
        only=_globs(only, "only"),
        skip=_globs(skip, "skip"),
        dir=_directory(dir),
        budget_s=None if budget is None else parse_seconds(budget),
        max_bytes=None if max_bytes is None else parse_size(max_bytes),
        cpus=_cpus(cpus),
        seed=int.from_bytes(os.urandom(6)) if seed is None else seed,
        gentle=gentle,
        file=checked_file(file, "file"),
        first_touch=checked_folder(first_touch, "first_touch"),
        drop_caches=drop_caches and may_drop_caches("drop_caches"),
        delay_ms=checked_delay(delay_ms, "delay_ms", distance),
        rate_mbit=checked_rate(rate_mbit, "rate_mbit"),
        distance=checked_distance(distance, "distance"),
        url=checked_url(url, "url"),
        secret_file=checked_secret_file(secret_file, "secret_file", url),
        requests_per_s=checked_requests(requests_per_s, "requests_per_s"),
    )


#: What dropping caches does to everybody else, in one sentence.
DROPPED: Final = "every program of this machine reads from the disk again for a while"
_DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")
_KINDS: Final = (
    (stat.S_ISLNK, "a symbolic link: name the file that it leads to"),
    (stat.S_ISDIR, "a directory: name a file in it, or measure its disk with --dir"),
    (stat.S_ISBLK, "a device: only regular files are read"),
    (stat.S_ISCHR, "a device: only regular files are read"),
    (stat.S_ISFIFO, "a pipe: only regular files are read"),
    (stat.S_ISSOCK, "a socket: only regular files are read"),
)


def checked_file(value: str | os.PathLike[str] | None, name: str) -> str | None:
    """A regular file that exists and can be read, as an absolute path; `name` is the option that names it.

    Raises:
        UserError: it is none: missing, a directory, a device, a symbolic link, or not to be read.
    """
    if value is None:
        return None
    shown = clean(os.fspath(value), most=300)
    if not os.fspath(value):
        raise UserError(f"{name}: an empty name is no file")
    path = Path(value).absolute()
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise UserError(f"{name}: there is no file {shown!r}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: {shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None
    for is_kind, what in _KINDS:
        if is_kind(found.st_mode):
            raise UserError(f"{name}: {shown!r} is {what}")
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{name}: {shown!r} is no regular file")
    if not found.st_size:
        raise UserError(f"{name}: {shown!r} is empty: there is nothing to read")
    if not os.access(path, os.R_OK):
        raise UserError(f"{name}: {shown!r} may not be read by this user")
    return os.fspath(path)


def checked_folder(value: str | os.PathLike[str] | None, name: str) -> str | None:
    """A folder that exists and can be listed, as an absolute path; `name` is the option that names it.

    Raises:
        UserError: it is none.
    """
    if value is None:
        return None
    shown = clean(os.fspath(value), most=300)
    try:
        path = Path(value)
        if not os.fspath(value) or not path.exists():
            raise UserError(f"{name}: there is no directory {shown!r}")
        if not path.is_dir():
            raise UserError(f"{name}: {shown!r} is a file, not a directory")
        if not os.access(path, os.R_OK | os.X_OK):
            raise UserError(f"{name}: {shown!r} may not be read by this user")
        return os.fspath(path.resolve())
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: {shown!r}: {clean(getattr(error, 'strerror', None) or error)}") from None


def may_drop_caches(name: str) -> bool:
    """True; `name` is the option that asked for it.

    Raises:
        UserError: this user may not, or this system cannot.
    """
    if not _DROP_CACHES.exists():
        raise UserError(f"{name}: this system has no {_DROP_CACHES}: caches can be dropped on Linux only")
    if os.geteuid() != 0 or not os.access(_DROP_CACHES, os.W_OK):
        raise UserError(f"{name}: only root may empty the machine's caches ({DROPPED}): leave it out")
    return True


def checked_delay(value: float | None, name: str, distance: str | None) -> float | None:
    """A delay of a round trip, ms; `name` is the option that names it.

    Raises:
        UserError: it is none that can be emulated, or there is a distance besides.
    """
    if value is None:
        return None
    if distance is not None:
        raise UserError(f"{name}: a distance is a delay too: give one of them")
    if not SHORTEST_DELAY_MS <= value <= LONGEST_DELAY_MS:
        raise UserError(
            f"{name}: {value:g} ms cannot be emulated: a round trip takes "
            f"{SHORTEST_DELAY_MS:g} to {LONGEST_DELAY_MS:g} ms; without this option what the loopback takes"
        )
    return value


def checked_rate(value: float | None, name: str) -> float | None:
    """A rate of a path, Mbit/s; `name` is the option that names it.

    Raises:
        UserError: it is none that can be emulated.
    """
    if value is not None and not LOWEST_RATE_MBIT <= value <= HIGHEST_RATE_MBIT:
        raise UserError(
            f"{name}: {value:g} Mbit/s cannot be emulated: {LOWEST_RATE_MBIT:g} to {HIGHEST_RATE_MBIT:g} can"
        )
    return value


def checked_distance(value: str | None, name: str) -> str | None:
    """A distance that has a name; `name` is the option that names it.

    Raises:
        UserError: there is none of this name.
    """
    if value is not None and value not in DISTANCES:
        shown = clean(value, most=60)
        raise UserError(f"{name}: there is no distance {shown!r}; there are {', '.join(DISTANCES)}")
    return value


def _globs(value: str | Iterable[str] | None, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    globs = [
        glob.strip() for text in ([value] if isinstance(value, str) else value) for glob in text.split(",")
    ]
    if not all(globs):
        raise UserError(f"{name}: an empty glob matches no probe; write one such as memory.*")
    return tuple(globs)


def _directory(value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    shown = clean(os.fspath(value), most=300)
    try:
        path = Path(value)
        if path.is_dir():
            return os.fspath(path.resolve())
        reason = "is not a folder" if path.exists() else "does not exist"
    except (OSError, ValueError) as error:
        reason = f"cannot be used: {clean(getattr(error, 'strerror', None) or error)}"
    raise UserError(f"{shown!r} {reason}: name a folder on the disk that is meant")


def _cpus(value: str | Iterable[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    cpus = parse_cpus(value) if isinstance(value, str) else tuple(sorted(set(value)))
    if not cpus:
        raise UserError("cpus: name at least one CPU, such as 0,2-3")
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(cpus)
    missing = [cpu for cpu in cpus if cpu not in allowed]
    if missing:
        raise UserError(f"CPU {missing[0]} may not be used by this process: {_ranges(allowed)} may")
    return cpus


def _ranges(numbers: Iterable[int]) -> str:
    out: list[list[int]] = []
    for number in sorted(numbers):
        if out and number == out[-1][-1] + 1:
            out[-1] = [out[-1][0], number]
        else:
            out.append([number])
    return ",".join("-".join(map(str, part)) for part in out)
