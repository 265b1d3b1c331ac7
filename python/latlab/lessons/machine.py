"""What a lesson ran on: enough to compare two machines, nothing that names either. Standard library only."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

from latlab import environment
from latlab.paths import file_system_of
from latlab.text import clean
from latlab.units import format_bytes


def machine(directory: Path | None = None) -> dict[str, str]:
    """Processor, CPUs, memory, system, Python, and what is unusual in the environment; only what is known.

    Of a directory where files are measured, its file system as well.
    """
    facts = cpu_facts()
    found = {
        "processor": facts.get("model name", "") if facts else platform.processor(),
        "architecture": platform.machine(),
        "cpus": str(_cpus()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "file_system": "" if directory is None else file_system(directory),
        "environment": environment.said(),
    }
    return {name: clean(text, most=400) for name, text in found.items() if text}


def file_system(directory: Path) -> str:
    """Its kind: `xfs`, `ext4`, or `ext4 without a journal`, as some virtual machines have; else empty."""
    try:
        device = directory.stat().st_dev
        kind = file_system_of(device)
        if kind == "ext4":
            # A journal has the kernel's name of the device: `dm-0` for `/dev/mapper/root`.
            own = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
            if own.exists() and not list(Path("/proc/fs/jbd2").glob(f"{own.resolve().name}-*")):
                return "ext4 without a journal"
    except OSError:
        return ""
    return kind


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_facts() -> dict[str, str]:
    """What Linux says of its first CPU, by its names; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name, _, text = (part.strip() for part in line.partition(":"))
        found.setdefault(name, clean(text, most=120))
    return found


def cache_sizes() -> dict[str, int]:
    """Bytes of each cache of the first CPU, as Linux says: `L1d`, `L1i`, `L2`, `L3`; empty elsewhere."""
    found = {}
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError, ValueError):
            level, kind, size = (
                (place / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
            suffix = {"Data": "d", "Instruction": "i"}.get(kind, "")
            found[f"L{level}{suffix}"] = int(size.removesuffix("K")) * 1024
    return found


def _memory() -> str:
    try:
        return format_bytes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return ""
