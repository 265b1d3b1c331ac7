"""What was measured on."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.units import format_bytes
from latlab.view.table import Column, Listing, Table

_UNKNOWN = "unknown"
_MOST_CPUS = 16


def section(run: Run) -> Section:
    """The parts that decide these figures, and what could not be learnt. The host's name is left out."""
    machine = run.machine
    rows = [(name, value or _UNKNOWN) for name, value in _rows(machine)]
    listings = [Listing("This machine", Table((Column("part"), Column("what it is")), tuple(rows)))]
    unknown = tuple((item.text("what"), item.text("why")) for item in machine.sections("unknown"))
    if unknown:
        columns = (Column("what"), Column("why"))
        listings.append(Listing("Not available", Table(columns, unknown)))
    return Section(id="machine", title="Which machine is this?", listings=tuple(listings))


def _rows(machine: Machine) -> list[tuple[str, str | None]]:
    cpu = machine.section("cpu")
    rows = [
        ("processor", _joined(cpu.text("model_name"), cpu.text("microarchitecture"))),
        ("CPUs", _cpus(cpu)),
        *_caches(machine),
        ("page translation", "; ".join(_tlbs(machine)) or None),
        ("memory", _bytes(machine, "memory.total_bytes")),
        ("memory that this process may use", _bytes(machine, "limits.usable_memory_bytes")),
        ("CPUs that this process may use", _numbers(machine.integers("limits.allowed_cpus"))),
        ("transparent huge pages", machine.text("memory.thp.enabled")),
        ("virtual machine", _virtual(machine)),
        ("container", machine.text("virtualisation.container.kind")),
        ("system", _joined(machine.text("os.distribution"), machine.text("os.arch"))),
        ("kernel", _joined(machine.text("os.name"), machine.text("os.kernel_release"))),
        ("C library", _joined(machine.text("os.libc.name"), machine.text("os.libc.version"))),
        ("clock source of the kernel", machine.text("clock_source.current")),
        ("nominal and highest clock", _clocks(cpu)),
        ("frequency governor", cpu.text("governor")),
        ("power", cpu.text("power_source")),
    ]
    optional = {"container"}
    return [(name, value) for name, value in rows if value or name not in optional]


def _virtual(machine: Machine) -> str | None:
    if machine.flag("virtualisation.guest") is False:
        return "no"
    name = machine.text("virtualisation.hypervisor")
    return name or ("yes, of an unknown kind" if machine.flag("virtualisation.guest") else None)


def _joined(*parts: str | None) -> str | None:
    return ", ".join(part for part in parts if part) or None


def _cpus(cpu: Machine) -> str | None:
    logical, cores, threads = (cpu.integer(name) for name in ("logical_cpus", "cores", "threads_per_core"))
    if logical is None:
        return None
    text = f"{logical}"
    if cores is not None:
        text += f" on {cores} core{'' if cores == 1 else 's'}"
    return text + (f", {threads} threads per core" if threads and threads > 1 else "")


def _clocks(cpu: Machine) -> str | None:
    rates = [cpu.number(f"{name}.mhz") for name in ("base", "max")]
    return (
        ", ".join(_UNKNOWN if rate is None else f"{rate / 1000:.3g} GHz" for rate in rates)
        if any(rates)
        else None
    )


def _caches(machine: Machine) -> list[tuple[str, str | None]]:
    rows: list[tuple[str, str | None]] = []
    for cache in machine.sections("caches"):
        level, kind, size = cache.integer("level"), cache.text("kind"), cache.integer("size_bytes")
        name = f"L{level} cache" + (f", {kind}" if kind and kind != "unified" else "")
        count = cache.integer("instances")
        shared = len(cache.integers("shared_cpus"))
        text = format_bytes(size) + (f", {count} of them" if count and count > 1 else "")
        rows.append((name, text + (f", shared by {shared} CPUs" if shared > 1 else "")))
    return rows or [("caches", None)]


def _tlbs(machine: Machine) -> list[str]:
    found = []
    for tlb in machine.sections("tlbs"):
        entries, kind, level = tlb.integer("entries"), tlb.text("kind"), tlb.integer("level")
        pages = "/".join(format_bytes(size) for size in tlb.integers("page_bytes"))
        if entries and pages and kind != "instruction":
            found.append(f"L{level} {entries} entries for {pages}")
    return found


def _numbers(values: list[int]) -> str | None:
    return (
        ", ".join(map(str, values[:_MOST_CPUS]))
        + (f" and {len(values) - _MOST_CPUS} more" if len(values) > _MOST_CPUS else "")
        or None
    )


def _bytes(machine: Machine, path: str) -> str | None:
    size = machine.integer(path)
    return None if size is None else format_bytes(size)
