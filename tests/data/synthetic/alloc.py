"""Allocators, a list of nodes, buffers that are used again."""

from __future__ import annotations

from .tools import JSON, KIB, MIB, batch_mean, derived, estimate, held, rounded


def malloc_records() -> list[JSON]:
    out, found = [], []
    for allocator, library, factor, threshold in (
        ("system", "glibc 2.36", 1.0, 128 * KIB),
        ("mimalloc", "mimalloc 2.0.9", 0.6, None),
    ):
        sizes = []
        for size in (16, 32, 64, 256, 1024, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB):
            reused = (7.6 if size <= 1024 else 24.0) * factor
            fresh = reused + 1.55 * min(size / 4096, 1.0) * 230 + 430.0 * size / 4096 * factor
            if threshold and size >= threshold:
                reused = fresh = 2900.0 + 430.0 * size / 4096
            for state, ns in (("fresh", fresh), ("reused", reused)):
                point = {
                    "allocator": allocator,
                    "size_bytes": size,
                    "state": state,
                    "placement": "same-thread",
                }
                out.append(
                    batch_mean(
                        "alloc.malloc", point, ns, engine=f"{library} (libc.so.6)", ops=512, spread=0.015
                    )
                )
            across = 61.0 * factor if size in {32, 1024} else None
            sizes.append(
                {
                    "size_bytes": size,
                    "fresh_ns": rounded(fresh),
                    "reused_ns": rounded(reused),
                    "across_threads_ns": across,
                }
            )
        for size in (32, 1024):
            point = {
                "allocator": allocator,
                "size_bytes": size,
                "state": "reused",
                "placement": "across-threads",
            }
            out.append(
                batch_mean(
                    "alloc.malloc",
                    point,
                    61.0 * factor,
                    engine=f"{library} (libc.so.6)",
                    ops=512,
                    spread=0.03,
                )
            )
        cliff = (
            {"size_bytes": estimate(132 * KIB), "before_ns": 24.0, "after_ns": 17_200.0}
            if allocator == "system"
            else None
        )
        found.append(
            {
                "allocator": allocator,
                "library": library,
                "version": None,
                "mmap_threshold_bytes": threshold,
                "mmap_threshold_largest_bytes": None,
                "sizes": sizes,
                "trim_cliff": cliff,
            }
        )
    return [*out, derived("alloc.malloc", {"allocators": found, "not_installed": ["jemalloc"]})]


def node_records() -> list[JSON]:
    out, steps = [], []
    nodes = 1_000_000
    variants = {
        "malloc": (32.4, 0.46),
        "arena": (21.3, 0.72),
        "arena-aligned": (22.9, 0.71),
        "arena-prefetch": (20.6, 0.73),
        "pool": (19.8, 0.7),
        "arena-touched": (6.9, 0.0),
        "vec": (5.8, 0.0),
    }
    for operation, (ns, share) in variants.items():
        findings = {"minor_faults_per_node": rounded(share * ns / 1900.0), "fault_share": share}
        checks = held("checksum", "the list holds every node once")
        out.append(
            batch_mean(
                "alloc.nodes",
                {"operation": operation, "nodes": nodes},
                ns,
                ops=nodes,
                spread=0.02,
                checks=checks,
                findings=findings,
            )
        )
        steps.append(
            {
                "operation": operation,
                "ns_per_node": ns,
                "gain_over_malloc": estimate(32.4 / ns, 1.04),
                "fault_share": share,
            }
        )
    parts = {
        "disturbed": False,
        "allocator_ns": estimate(10.6),
        "faults_ns": estimate(14.9),
        "stores_ns": estimate(6.2),
        "sum_ns": estimate(31.7),
        "whole_ns": 32.4,
        "closure": estimate(0.978, 1.03),
    }
    return [*out, derived("alloc.nodes", {"nodes": nodes, "steps": steps, "parts": parts})]


def reuse_records() -> list[JSON]:
    out, found = [], []
    for size, fresh, swapped in (
        (64 * KIB, 3900.0, 2300.0),
        (MIB, 196_000.0, 37_000.0),
        (16 * MIB, 9.4e6, 1.21e6),
        (128 * MIB, 83e6, 13.9e6),
    ):
        for operation, ns in (("fresh", fresh), ("swapped", swapped)):
            out.append(
                batch_mean(
                    "alloc.reuse", {"operation": operation, "size_bytes": size}, ns, ops=1, spread=0.02
                )
            )
        found.append(
            {
                "size_bytes": size,
                "fresh_ns": fresh,
                "swapped_ns": swapped,
                "fresh_minor_faults": None,
                "ratio": estimate(fresh / swapped, 1.1),
            }
        )
    return [*out, derived("alloc.reuse", {"sizes": found})]
