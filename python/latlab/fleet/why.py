"""Why a host may be slow: what its description and its run say that those of its peers do not, what to do.

Each kind of evidence is a line of one table, and one rule compares a host with its peers by all of them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latlab.compare.sides import value_at
from latlab.doctor.rules.disturbed_cpu import CAUTION_SHARE
from latlab.fleet.host import Host
from latlab.fleet.naming import LEAST_HOSTS, LEAST_RATIO
from latlab.run.meanwhile import Meanwhile
from latlab.units import format_percent, format_rate

_Quantity: TypeAlias = Callable[[Host], float | None]


class _Evidence(NamedTuple):
    """What may make a host slow.

    Attributes:
        at: A setting, by where a machine's description has it; or a quantity of which more is slower.
        name: Its name.
        cure: What to do.
        concerns: What the ids of the probes begin with whose figures it makes slow.
        least: So much of a quantity makes figures slow.
        times: So many times as much as its peers a host must have.
        written: A quantity in words.
    """

    at: str | _Quantity
    name: str
    cure: str
    concerns: tuple[str, ...] = ("",)
    least: float = 0.0
    times: float = 2.0
    written: Callable[[float], str] = str


def _met(name: str) -> _Quantity:
    """What the host's last run met."""
    return lambda host: getattr(host.meanwhile or Meanwhile(), name)


def _cycle_ns(host: Host) -> float | None:
    clock = _met("core_ghz")(host)
    return 1 / clock if clock else None


def _busy_share(host: Host) -> float | None:
    busy, cpus = _met("other_cpus")(host), host.machine.integer("cpu.logical_cpus")
    return busy / cpus if busy is not None and cpus else None


def _disturbed_share(host: Host) -> float | None:
    return host.disturbed / (host.runs * len(host.figures)) if host.figures else None


def _scarcity(host: Host) -> float | None:
    allowed = len(host.machine.integers("limits.allowed_cpus"))
    return 1 / allowed if allowed else None


def _of_the_time(share: float) -> str:
    return f"{format_percent(share)} of the time"


_MEMORY: Final = ("memory.", "vm.", "alloc.", "python.")
_DISK: Final = ("storage.",)
_QUOTA: Final = "raise or remove the CPU quota of its cgroup"
_LIMIT: Final = "raise or remove the limits of its cgroup for this disk"
_OTHERS: Final = "stop the other programs there, or measure it again when they have ended"
_CLOCK: Final = "set governor, boost and energy preference as on its peers; check its power limit and cooling"
_BOOT: Final = "compare the boot options"

_BUSY: Final = _Evidence(
    _busy_share,
    "CPUs that other programs kept busy, and with them caches and memory",
    _OTHERS,
    # Less leaves a program that wants all CPUs more than a slow host does.
    least=1 - 1 / LEAST_RATIO,
    written=format_percent,
)
#: What the run met comes before what the description says. Thresholds are those of the doctor's rules.
_TABLE: Final = (
    _Evidence(
        _met("throttled"),
        "stopped by a CPU quota",
        _QUOTA,
        least=CAUTION_SHARE,
        written=_of_the_time,
    ),
    _Evidence("limits.cgroup.cpu_quota", "CPU quota", _QUOTA),
    _Evidence(
        _met("stolen"),
        "steal by the hypervisor",
        "ask the operator of the host machine for CPUs of its own, or move it",
        least=CAUTION_SHARE,
        written=_of_the_time,
    ),
    _BUSY,
    _Evidence(
        _disturbed_share,
        "figures that something else on its core, shared cache or memory disturbed",
        _OTHERS,
        least=0.5,
        written=format_percent,
    ),
    _Evidence(
        _met("other_disk_bytes_per_s"),
        "traffic of other programs on its disk",
        "find out which they are (pidstat -d)",
        _DISK,
        # Logs of a quiet machine are less.
        least=1e6,
        written=format_rate,
    ),
    _Evidence("limits.cgroup.disk.read_bytes_per_s", "limit of bytes read a second", _LIMIT, _DISK),
    _Evidence("limits.cgroup.disk.write_bytes_per_s", "limit of bytes written a second", _LIMIT, _DISK),
    _Evidence("limits.cgroup.disk.read_requests_per_s", "limit of reads a second", _LIMIT, _DISK),
    _Evidence("limits.cgroup.disk.write_requests_per_s", "limit of writes a second", _LIMIT, _DISK),
    _Evidence("dir.file_system.options", "mount options", "mount it with the options of its peers", _DISK),
    _Evidence(
        _cycle_ns,
        "core clock",
        _CLOCK,
        times=LEAST_RATIO,
        written=lambda cycle: f"{1 / cycle:.2f} GHz",
    ),
    _Evidence("cpu.governor", "frequency governor", _CLOCK),
    _Evidence("cpu.boost", "frequency boost", _CLOCK),
    _Evidence("cpu.energy_preference", "energy preference", _CLOCK),
    _Evidence(
        _scarcity,
        "CPUs that it may use",
        "allow it as many CPUs as its peers",
        times=LEAST_RATIO,
        written=lambda scarcity: f"{1 / scarcity:.0f}",
    ),
    _Evidence(
        "limits.cgroup.memory_limit_bytes", "memory limit", "raise or remove the memory limit of its cgroup"
    ),
    _Evidence("memory.swap_used_bytes", "swap in use", "find out what uses its memory"),
    _Evidence(
        "memory.thp.enabled",
        "transparent huge pages",
        "set /sys/kernel/mm/transparent_hugepage/enabled as on its peers",
        _MEMORY,
    ),
    _Evidence(
        "memory.numa_balancing", "NUMA balancing", "set kernel.numa_balancing as on its peers", _MEMORY
    ),
    _Evidence("clock_source.current", "clock source", "find out why the kernel distrusts the CPU's clock"),
    _Evidence("virtualisation.hypervisor", "hypervisor", "find out on which kind of host machine it runs"),
    _Evidence("virtualisation.container", "container", "compare inside containers only, or outside only"),
    _Evidence("boot.mitigations", "mitigations of CPU faults", _BOOT),
    _Evidence("kernel.preemption", "preemption of the kernel", _BOOT),
)
#: Of the peers so many must agree: on another setting, or on far less of a quantity.
MOST: Final = 0.75
#: What is said of a slow host that nothing in the table distinguishes.
NO_CAUSE: Final = (
    "cause unknown: its description and what its run recorded are like its peers'; ask the operator of the"
    " hardware what else uses it"
)


def disturbed(hosts: Sequence[Host]) -> NDArray[np.bool_]:
    """Beside which hosts of a class other programs kept CPUs busy, beside most of the others far fewer."""
    busy = np.array([_busy_share(host) for host in hosts], dtype=np.float64)
    known = busy[np.isfinite(busy)]
    if len(known) < LEAST_HOSTS:
        return np.zeros(len(hosts), dtype=np.bool_)
    usual = float(np.quantile(known, MOST, method="lower"))
    found: NDArray[np.bool_] = busy >= max(_BUSY.least, _BUSY.times * usual)
    return found


def differences(host: Host, peers: Sequence[Host], probes: Collection[str]) -> Iterator[str]:
    """What distinguishes a host from most of its peers, in words, each with what to do.

    Args:
        host: One host.
        peers: The others of its class.
        probes: The ids of those by whose figures it is slow.
    """
    found: dict[str, list[str]] = {}
    for each in _TABLE:
        values = _values(each, host, peers)
        if values and any(probe.startswith(each.concerns) for probe in probes):
            found.setdefault(each.cure, []).append(f"{each.name}{values}")
    for cure, said in found.items():
        yield f"{'; '.join(said)}: {cure}"


def _values(each: _Evidence, host: Host, peers: Sequence[Host]) -> str:
    """The host's and the peers', in words; empty where these do not agree that it differs."""
    if isinstance(each.at, str):
        own = value_at(host.machine, each.at)
        usual, agree = Counter(value_at(peer.machine, each.at) for peer in peers).most_common(1)[0]
        if own == usual:
            return ""
    else:
        value = each.at(host)
        others = [other for other in map(each.at, peers) if other is not None]
        if value is None or value < each.least or not others:
            return ""
        agree = sum(value >= each.times * other for other in others)
        own, usual = each.written(value), each.written(statistics.median(others))
    if agree < MOST * len(peers):
        return ""
    return " differ" if each.at == "boot.mitigations" else f": {own}, peers {usual}"
