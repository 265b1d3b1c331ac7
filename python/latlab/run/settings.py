"""What is to be measured, from what people write: checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from latlab.errors import UserError, named
from latlab.nearest import nearest
from latlab.paths import checked_file, checked_folder
from latlab.run import model
from latlab.run.away import checked_requests, checked_url, read_secret
from latlab.run.core import list_probes, matches
from latlab.text import clean
from latlab.units import format_cpus, parse_count, parse_cpus, parse_seconds, parse_size

PROFILES: Final = ("quick", "standard", "thorough")
#: Distances with a name; the core knows how long they are.
DISTANCES: Final = ("same-rack", "same-city", "london-california")
#: Shorter than this the loopback's own wake-ups are most of a round trip; longer no path on Earth is.
SHORTEST_DELAY_MS: Final = 0.05
LONGEST_DELAY_MS: Final = 2000.0
#: From a modem of two voices to the fastest link that a forwarder of frames could be asked to slow down.
LOWEST_RATE_MBIT: Final = 0.1
HIGHEST_RATE_MBIT: Final = 10_000.0


def make_settings(options: Mapping[str, str] | None = None, /, **asked: Any) -> model.Settings:  # noqa: ANN401 - each is checked
    """Settings from what people write.

    Args:
        options: What an argument is called where it was typed, if not by its name here: `--cpu` for `cpus`.
        **asked: Those of `latlab.measure` that say what is measured. None is as if it was not given.

    Raises:
        UserError: one of them is not possible; one line says which and what would be.
        TypeError: there is no such setting.
    """
    if unknown := asked.keys() - _CHECKS.keys():
        raise TypeError(f"there is no setting {', '.join(sorted(unknown))}")
    given = {name: value for name, value in asked.items() if value is not None}
    called = dict(options or {})
    if {"delay_ms", "distance"} <= given.keys():
        raise UserError(
            f"{called.get('delay_ms', 'delay_ms')}: a distance is also a delay: give only one of them"
        )
    if "secret_file" in given and "url" not in given:
        name = called.get("secret_file", "secret_file")
        raise UserError(f"{name}: needs the server's --url")
    found: dict[str, Any] = {
        _FIELDS.get(name, name): named(called.get(name, name), _CHECKS[name], value)
        for name, value in given.items()
    }
    return model.Settings(**({"seed": int.from_bytes(os.urandom(6))} | found))


#: What dropping caches does to everybody else, in one sentence.
DROPPED: Final = "every program on this machine reads from the disk again for a while"
_DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")


def _listable_folder(value: str | os.PathLike[str]) -> str:
    folder = checked_folder(value)
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{clean(os.fspath(value), most=200)!r} cannot be read by this user")
    return folder


def may_drop_caches(asked: bool) -> bool:
    """Whether it was asked for.

    Raises:
        UserError: it was, and this user may not, or this system cannot.
    """
    if not asked:
        return False
    if not _DROP_CACHES.exists():
        raise UserError(f"this system has no {_DROP_CACHES}: caches can be dropped only on Linux")
    if os.geteuid() != 0 or not os.access(_DROP_CACHES, os.W_OK):
        raise UserError(f"only root may empty the machine's caches ({DROPPED}): leave it out")
    return True


def checked_cpus(value: str | Iterable[int]) -> tuple[int, ...]:
    """CPUs that this process may run on, ascending.

    Raises:
        UserError: there is none, or one is not among them.
    """
    cpus = parse_cpus(value) if isinstance(value, str) else tuple(sorted(set(value)))
    if not cpus:
        raise UserError("name at least one CPU, such as 0,2-3")
    allowed = allowed_cpus()
    missing = [cpu for cpu in cpus if cpu not in allowed]
    if missing:
        noun = f"CPU {missing[0]}" if len(missing) == 1 else f"CPUs {', '.join(map(str, missing[:8]))}"
        raise UserError(f"{noun} cannot be used; this process may run on {format_cpus(allowed)}")
    return cpus


def allowed_cpus() -> set[int]:
    """Those that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _one_of(what: str, known: Sequence[str]) -> Callable[[str], str]:
    """A check that a name is known."""

    def check(value: str) -> str:
        if value not in known:
            raise UserError(f"there is no {what} {clean(value, most=60)!r}; {what}s: {', '.join(known)}")
        return value

    return check


def _seed(value: int | str) -> int:
    seed = parse_count(value) if isinstance(value, str) else value
    if not 0 <= seed <= model.LARGEST_INTEGER:
        raise UserError("a seed is from 0 to 2^64 - 1")
    return seed


def _globs(value: str | Iterable[str]) -> tuple[str, ...]:
    """Globs of probe ids, each of which matches something; commas separate several."""
    written = [value] if isinstance(value, str) else value
    globs = tuple(glob.strip() for text in written for glob in text.split(","))
    ids = [probe.id for probe in list_probes()] if globs else []
    for glob in globs:
        if not glob:
            raise UserError("an empty glob matches no probe; latlab list shows the ids")
        if any(matches(name, glob) for name in ids):
            continue
        guess = nearest(glob, ids)
        hint = f"did you mean {guess}?" if guess else "latlab list shows the ids"
        what = "matches no probe" if set(glob) & set("*?[") else "is not a probe"
        raise UserError(f"{clean(glob, most=100)!r} {what}; {hint}")
    return globs


def _delay(value: float) -> float:
    if not SHORTEST_DELAY_MS <= value <= LONGEST_DELAY_MS:
        raise UserError(
            f"{value:g} ms cannot be emulated: use {SHORTEST_DELAY_MS:g} to {LONGEST_DELAY_MS:g} ms, "
            "or omit the option for loopback alone"
        )
    return value


def _rate(value: float) -> float:
    if not LOWEST_RATE_MBIT <= value <= HIGHEST_RATE_MBIT:
        raise UserError(
            f"{value:g} Mbit/s cannot be emulated: use {LOWEST_RATE_MBIT:g} to {HIGHEST_RATE_MBIT:g}"
        )
    return value


def _secret_file(value: str | os.PathLike[str]) -> str:
    read_secret(value)
    return os.fspath(Path(value).absolute())


_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "profile": _one_of("profile", PROFILES),
    "only": _globs,
    "skip": _globs,
    "dir": checked_folder,
    "file": checked_file,
    "first_touch": _listable_folder,
    "drop_caches": may_drop_caches,
    "budget": parse_seconds,
    "max_bytes": parse_size,
    "cpus": checked_cpus,
    "seed": _seed,
    "gentle": bool,
    "delay_ms": _delay,
    "rate_mbit": _rate,
    "distance": _one_of("distance", DISTANCES),
    "url": checked_url,
    "secret_file": _secret_file,
    "requests_per_s": checked_requests,
}
"""How each setting is checked, by its name in `latlab.measure`."""
_FIELDS: Final = {"budget": "budget_s"}
"""Where the run file has another name."""
SETTINGS: Final = tuple(_CHECKS)
"""Their names."""
