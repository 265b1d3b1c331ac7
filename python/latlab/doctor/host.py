"""What the rules look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from latlab.run.model import ClockFacts, Finding, Machine, Settings
from latlab.run.noise import Survey

if TYPE_CHECKING:
    from latlab.run.cpus import Differing


@dataclass(frozen=True, slots=True)
class Host:
    """This computer, its clock, what was asked for, and what an earlier run found out.

    Attributes:
        machine: What the computer is; whatever is absent in it is unknown, and no rule guesses it.
        clock: The clock as it measured itself.
        settings: What was asked for.
        effective_page_bytes: Page size that the TLB really holds for huge pages, from the last run here.
        core_ghz: Core frequency from the last run here.
        load: Runnable threads now, other than ours (one-minute load average).
        heard: What a short measurement of CPU noise found, where there was one.
        differing: Which figures of the last run here depend on the CPU.
    """

    machine: Machine
    clock: ClockFacts | None = None
    settings: Settings = field(default_factory=Settings)
    effective_page_bytes: float | None = None
    core_ghz: float | None = None
    load: float | None = None
    heard: Survey | None = None
    differing: Differing | None = None

    @property
    def online_cpus(self) -> int | None:
        """CPUs that the machine has."""
        return self.machine.integer("cpu.logical_cpus") or len(self.machine.integers("cpu.online")) or None

    @property
    def allowed_cpus(self) -> list[int]:
        """CPUs that this process may run on; empty when unknown."""
        return self.machine.integers("limits.allowed_cpus")

    @property
    def is_guest(self) -> bool:
        """Whether this is surely a virtual machine."""
        return self.machine.flag("virtualisation.guest") is True

    @property
    def last_cache_bytes(self) -> int | None:
        """Size of the largest cache that the CPU reports."""
        return (
            max((cache.integer("size_bytes") or 0 for cache in self.machine.sections("caches")), default=0)
            or None
        )


Rule = Callable[[Host], Finding | None]
