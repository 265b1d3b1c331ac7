"""The machine, and what limits the figures: the lines above the ladder."""

from __future__ import annotations

from collections.abc import Sequence

from latlab.cli.terminal.screen import Line, Screen, styled
from latlab.doctor import important
from latlab.run.model import Finding, Machine
from latlab.units import format_digits

#: As many findings as stand above a ladder; the doctor has the others.
_SHOWN = 3


def header_lines(version: str, machine: Machine, screen: Screen) -> list[Line]:
    """`latlab 0.1 · AMD EPYC (Zen 5) · 4 CPUs of 4 · 23 GiB · ...`, wrapped at its dots."""
    parts = [f"latlab {version.removesuffix('.0')}", *machine_parts(machine)]
    dot = screen.fit(" · ")
    lines: list[str] = []
    for part in map(screen.fit, parts):
        if lines and len(lines[-1]) + len(dot) + len(part) <= screen.width:
            lines[-1] += dot + part
        else:
            lines.append(f"  {part}" if lines else part)
    shown = [Line(line) for line in lines]
    shown[0].mark(0, len(screen.fit(parts[0])), "bold")
    return shown


def trust_lines(findings: Sequence[Finding], screen: Screen) -> list[Line]:
    """`3 warnings  (latlab doctor)` and the gravest; empty when there are none."""
    grave = important(tuple(findings))
    if not grave:
        return []
    lines = [styled(screen.fit(f"{counted(grave)}  (latlab doctor)"), "yellow")]
    for finding in grave[:_SHOWN]:
        lines += screen.wrapped(finding.title, first="  · ", rest="    ")
    if len(grave) > _SHOWN:
        lines.append(Line(screen.fit(f"  · and {len(grave) - _SHOWN} more")))
    return lines


def counted(grave: Sequence[Finding]) -> str:
    """`3 warnings`."""
    return "1 warning" if len(grave) == 1 else f"{len(grave)} warnings"


def machine_parts(machine: Machine) -> list[str]:
    """CPU, CPUs, memory, system and file system in a few words each. Unknown is said, never guessed."""
    parts = [_cpu(machine), _cpus(machine), _memory(machine), _system(machine), _storage(machine)]
    return [part for part in parts if part]


def _cpu(machine: Machine) -> str:
    name = machine.text("cpu.model_name") or machine.text("cpu.vendor") or ""
    for mark in ("(R)", "(r)", "(TM)", "(tm)", "®", "™"):
        name = name.replace(mark, " ")
    dull = {"CPU", "Processor", "processor"}
    words = [
        word for word in name.partition("@")[0].split() if word not in dull and not word.endswith("-Core")
    ]
    family, model = machine.integer("cpu.family"), machine.integer("cpu.model")
    numbers = f"family {family} model {model}" if family is not None and model is not None else None
    detail = machine.text("cpu.microarchitecture") or numbers
    if words and detail:
        return f"{' '.join(words)} ({detail})"
    return " ".join(words) or detail or "unknown CPU"


def _cpus(machine: Machine) -> str:
    online = machine.integer("cpu.logical_cpus") or len(machine.integers("cpu.online")) or None
    allowed = len(machine.integers("limits.allowed_cpus")) or None
    quota = machine.number("limits.cgroup.cpu_quota")
    some = allowed or online
    if some is None:
        return "unknown number of CPUs"
    count = format_digits(quota, 2) if quota is not None and quota < some else str(some)
    noun = "CPU" if count == "1" else "CPUs"
    return f"{count} {noun}" if online is None else f"{count} {noun} of {online}"


def _memory(machine: Machine) -> str:
    total, limit = machine.integer("memory.total_bytes"), machine.integer("limits.cgroup.memory_limit_bytes")
    if total is None:
        return _whole(limit) if limit is not None else "unknown memory"
    return f"{_whole(limit)} of {_whole(total)}" if limit is not None and limit < total else _whole(total)


def _whole(size: int) -> str:
    """Rounded down: what is there, not what was bought."""
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"


def _system(machine: Machine) -> str:
    name = machine.text("os.name") or "unknown system"
    release = machine.text("os.kernel_release") if name == "Linux" else None
    product = machine.text("os.distribution") if name != "Linux" else None
    shown = product or (f"{name} {'.'.join(release.replace('-', '.').split('.')[:2])}" if release else name)
    inside = "in a virtual machine" if machine.flag("virtualisation.guest") else ""
    wsl = machine.integer("virtualisation.wsl")
    if wsl is not None:
        inside = f"in WSL{wsl}"
    if machine.at("virtualisation.container"):
        inside = f"in a container {inside}".rstrip()
    return f"{shown} {inside}".rstrip()


def _storage(machine: Machine) -> str:
    system = machine.section("dir.file_system")
    kind, disk = system.text("kind"), system.text("disk")
    if kind is None:
        return ""
    if disk is not None:
        return f"{kind} on {disk}"
    if system.flag("in_memory"):
        return f"{kind} in memory"
    return f"{kind} over a network or from the host" if system.flag("network") else kind
