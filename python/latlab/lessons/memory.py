"""How much memory there is for a lesson."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from latlab.lessons.bench import Cannot
from latlab.units import format_bytes


def available_memory() -> int | None:
    """Bytes that this process may still take without swapping; None where nobody says."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    found += _left_in_groups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - Unix only

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            used_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            found.append(max(soft - used_pages * os.sysconf("SC_PAGE_SIZE"), 0))
    return min(found) if found else None


def free_below(needed: float) -> str:
    """How much memory is free, where that is less; else empty."""
    available = available_memory()
    return format_bytes(available) if available is not None and available < needed else ""


def enough_memory(needed: int) -> None:
    """Checks that there is so much memory.

    Raises:
        Cannot: there is not.
    """
    if free := free_below(needed):
        raise Cannot(f"it needs {format_bytes(needed)} of memory, and {free} are free")


def _left_in_groups(listed: Path, root: Path) -> list[int]:
    """Bytes that each control group over this process still gives; what it holds of files can go."""
    try:
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            place, limit, used, prefix = root / "memory", "limit_in_bytes", "usage_in_bytes", "total_"
        elif not controllers:
            place, limit, used, prefix = root, "max", "current", ""
        else:
            continue
        own = place / path.strip("/")
        # In a container the group that is named may not be there: its own is the root.
        for folder in {own, *own.parents, place}:
            if folder != place and place not in folder.parents:
                continue
            with contextlib.suppress(OSError, ValueError):
                most = int((folder / f"memory.{limit}").read_text(encoding="ascii"))
                taken = int((folder / f"memory.{used}").read_text(encoding="ascii"))
                stat = (folder / "memory.stat").read_text(encoding="ascii").split()
                numbers = dict(zip(stat[::2], stat[1::2], strict=False))
                files = sum(int(numbers.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
                found.append(max(most - max(taken - files, 0), 0))
    return found
