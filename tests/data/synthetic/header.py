"""The first line: machine, clock, settings, plan, what the doctor said."""

from __future__ import annotations

import json
from pathlib import Path

from .tools import CPUS, GIB, JSON, KIB, MIB, QUANTUM_NS, ROUNDS

MACHINE = Path(__file__).resolve().parent.parent / "machine.json"


def machine() -> JSON:
    described: JSON = json.loads(MACHINE.read_text(encoding="utf-8"))
    return described


def header() -> JSON:
    plan = [
        ("clock.read", 10, 1.0, 0, 1),
        ("memory.load.dependent", 210, 11.0, GIB, 1),
        ("memory.poke", 10, 4.0, 1_000_000_000, 1),
        ("memory.bandwidth", 105, 3.5, 3 * GIB, 4),
        ("memory.stride", 20, 1.5, 256 * MIB, 1),
        ("memory.parallelism", 44, 1.0, GIB, 1),
        ("memory.prefetch", 21, 1.0, 256 * MIB, 1),
        ("memory.alignment", 8, 0.7, 16 * KIB, 1),
        ("memory.loaded", 25, 3.0, 3 * GIB, 4),
        ("memory.core_to_core", 12, 2.5, 16 * KIB, 2),
        ("memory.false_sharing", 10, 0.8, 16 * KIB, 2),
        ("vm.fault", 8, 1.6, 256 * MIB, 1),
        ("vm.map", 20, 0.6, 16 * MIB, 1),
        ("vm.zero", 3, 0.4, 64 * MIB, 1),
        ("alloc.malloc", 44, 1.6, 256 * MIB, 2),
        ("alloc.nodes", 7, 1.8, 64 * MIB, 1),
        ("alloc.reuse", 8, 0.6, 256 * MIB, 1),
        ("python.object", 16, 1.3, 16 * MIB, 1),
        ("cpu.mix", 5, 0.5, 0, 1),
        ("kernel.syscall", 5, 0.6, 0, 1),
        ("kernel.context_switch", 7, 1.2, 0, 2),
        ("kernel.wakeup", 3, 0.7, 0, 2),
        ("kernel.spawn", 4, 0.9, 0, 1),
        ("kernel.timer", 4, 0.4, 0, 1),
        ("kernel.mutex", 3, 0.3, 0, 4),
        ("kernel.noise", 1, 4.0, 0, 1),
        ("storage.read.sequential", 20, 6.0, 64 * MIB, 1),
        ("storage.write.sequential", 27, 6.0, 64 * MIB, 1),
        ("storage.read.random", 10, 2.5, 4 * MIB, 1),
        ("storage.write.random", 10, 2.0, 4 * MIB, 1),
        ("storage.rate", 6, 2.5, MIB, 1),
        ("storage.poke", 9, 3.0, MIB, 1),
        ("storage.sync", 8, 2.0, MIB, 1),
        ("storage.files", 14, 4.0, 48 * MIB, 1),
        ("storage.reread", 4, 0.3, 11 * MIB, 1),
        ("storage.first_touch", 4, 10.0, 2 * MIB, 1),
        ("storage.steady", 2, 45.0, 16 * MIB, 2),
        ("network.roundtrip", 42, 2.0, 256 * KIB, 2),
        ("network.connect", 5, 1.0, 2048 * KIB, 2),
        ("network.transfer", 60, 2.5, 40960 * KIB, 2),
        ("network.http", 2, 5.0, MIB, 2),
        ("network.throughput", 13, 1.5, 6 * MIB, 4),
        ("network.loaded", 6, 1.5, 2 * MIB, 4),
    ]
    written = {
        "storage.read.sequential": GIB,
        "storage.write.sequential": 1600 * MIB,
        "storage.write.random": 200 * MIB,
        "storage.files": 140_000_000,
        "storage.steady": 2 * GIB,
    }
    return {
        "line": "header",
        "schema": "latlab.run/2.0",
        "id": "20261121T003012Z-k3f9qa",
        "started": "2026-11-21T00:30:12.418+00:00",
        "tool": {
            "version": "0.1.0",
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "build": "rustc 1.95.0, x86_64-unknown-linux-gnu, release",
        },
        "machine": machine(),
        "clock": {
            "kind": "tsc",
            "fences": "lfence; rdtsc; lfence before, rdtscp; lfence after",
            "ticks_per_ns": 2.596238,
            "rate_error_ppm": 0.8,
            "quantum_ns": QUANTUM_NS,
            "overhead_ns": {"mean": 22.4, "p50": 20.02, "p99": 30.03, "min": 10.01, "samples": 200_000},
            "invariant": True,
            "why_not_hardware": None,
            "backwards": 0,
        },
        "settings": {
            "profile": "standard",
            "only": [],
            "skip": [],
            "dir": None,
            "budget_s": None,
            "max_bytes": None,
            "cpus": None,
            "delay_ms": 20.0,
            "rate_mbit": 200.0,
            "seed": 42,
            "gentle": False,
        },
        "plan": [
            {
                "id": probe,
                "points": points,
                "seconds": seconds,
                "memory_bytes": memory,
                "written_bytes": written.get(probe, 0),
                "cpus": cpus,
            }
            for probe, points, seconds, memory, cpus in plan
        ],
        "rounds": ROUNDS,
        "cpus": list(CPUS),
        "doctor": [
            {
                "id": "clock-quantum",
                "severity": "caution",
                "title": "the clock steps by 10 ns here",
                "effect": "single cache accesses cannot be timed: they are timed in batches",
                "remedy": None,
            },
            {
                "id": "virtual-machine",
                "severity": "note",
                "title": "this is a virtual machine (kvm)",
                "effect": "hidden neighbours share L3 and RAM: their figures are a range",
                "remedy": None,
            },
        ],
    }
