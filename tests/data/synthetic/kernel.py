"""System calls, switches, wake-ups, timers, locks."""

from __future__ import annotations

from .tools import JSON, batch_mean, derived, estimate, per_op, spread_out


def kernel_records() -> list[JSON]:
    out = []
    calls = {
        "getppid": 116.0,
        "read-0": 171.0,
        "clock_gettime-vdso": 20.7,
        "clock_gettime-syscall": 164.0,
        "futex-wake": 143.0,
    }
    out += [batch_mean("kernel.syscall", {"operation": name}, ns, ops=1000) for name, ns in calls.items()]
    convention = {"ops": 3000, "bytes": 0, "convention": "a round trip: two switches on one CPU"}
    for operation, same, across in (
        ("pipe", 4300.0, 31_000.0),
        ("eventfd", 3900.0, 29_500.0),
        ("futex", 3400.0, 27_000.0),
    ):
        for placement, ns in (("same-cpu", same), ("across-blocking", across)):
            point = {"operation": operation, "placement": placement, "between": "threads"}
            out.append(batch_mean("kernel.context_switch", point, ns, ops=100, spread=0.03, work=convention))
    out.append(
        batch_mean(
            "kernel.context_switch",
            {"operation": "pipe", "placement": "same-cpu", "between": "processes"},
            5100.0,
            ops=100,
            spread=0.03,
            work=convention,
        )
    )
    alone: JSON = {"operation": "pipe-alone", "placement": "same-cpu", "threads": 1}
    out.append(batch_mean("kernel.context_switch", alone, 640.0, ops=100, spread=0.03))
    switch = {
        "switch_ns": estimate(1700.0),
        "switch_operation": "futex",
        "switch_between": "threads",
        "pipe_calls_ns": None,
        "switch_only_ns": None,
        "switch_only_threads_ns": None,
        "pipe_across_over_same_cpu": None,
    }
    out.append(derived("kernel.context_switch", switch))
    sleeps = []
    for slept, centre, count in (
        (50_000, 9_100.0, 2000),
        (1_000_000, 24_800.0, 1200),
        (10_000_000, 38_400.0, 200),
    ):
        out.append(
            per_op(
                "kernel.wakeup",
                {"sleep_ns": slept, "placement": "across-blocking"},
                spread_out(centre, count, sigma=0.25),
                name="every wake-up was answered",
            )
        )
        sleeps.append(
            {"sleep_ns": slept, "p50_ns": out[-1]["summary"]["p50"], "p99_ns": out[-1]["summary"]["p99"]}
        )
    out.append(derived("kernel.wakeup", {"sleeps": sleeps, "longest_over_shortest": None}))
    for operation, centre, count in (
        ("thread", 42_000.0, 600),
        ("fork-exit", 410_000.0, 120),
        ("posix_spawn", 690_000.0, 120),
        ("python", 14.6e6, 24),
    ):
        out.append(
            per_op(
                "kernel.spawn",
                {"operation": operation},
                spread_out(centre, count, sigma=0.15),
                name="every one was waited for",
            )
        )
    for operation, slept, centre, count in (
        ("nanosleep", 1_000, 58_000.0, 600),
        ("nanosleep", 100_000, 61_000.0, 400),
        ("nanosleep", 1_000_000, 66_000.0, 120),
        ("timerfd", 1_000_000, 9_700.0, 120),
    ):
        out.append(
            per_op(
                "kernel.timer",
                {"operation": operation, "sleep_ns": slept},
                spread_out(centre, count, sigma=0.1),
                name="never early",
                findings={"requested_ns": slept, "ended_by_signals": 0},
            )
        )
    for threads, ns in ((1, 9.8), (2, 74.0), (4, 212.0)):
        out.append(
            batch_mean(
                "kernel.mutex", {"operation": "lock-unlock", "threads": threads}, ns, ops=10_000, spread=0.03
            )
        )
    return out
