"""Page faults, mappings, zeros."""

from __future__ import annotations

from .tools import JSON, KIB, MIB, absent, batch_mean, derived, estimate, per_op, rounded, spread_out


def fault_records() -> list[JSON]:
    out, kinds = [], []
    page, huge = 4 * KIB, 2 * MIB
    for operation, pages, size, count, centre, second in (
        ("first-write", "4k", page, 6000, 1720.0, (5400.0, 0.14)),
        ("first-read", "4k", page, 6000, 780.0, None),
        ("write-after-read", "4k", page, 4000, 1990.0, None),
        ("copy-on-write", "4k", page, 4000, 2210.0, None),
        ("recycled", "4k", page, 6000, 1560.0, None),
        ("file-minor", "4k", page, 4000, 640.0, (1300.0, 0.3)),
        ("first-write", "huge", huge, 400, 94_000.0, (146_000.0, 0.2)),
    ):
        point = {"operation": operation, "pages": pages, "size_bytes": size}
        out.append(
            per_op(
                "vm.fault", point, spread_out(centre, count, second=second), name="every fault was counted"
            )
        )
        share = second[1] if second else 0.0
        modes = [
            {
                "p50_ns": centre,
                "low_ns": rounded(centre * 0.86),
                "high_ns": rounded(centre * 1.16),
                "share": rounded(1 - share),
                "likely": "",
            }
        ]
        if second:
            likely = (
                "the host had to find memory for the page"
                if operation == "first-write"
                else "the page table was new"
            )
            modes.append(
                {
                    "p50_ns": second[0],
                    "low_ns": rounded(second[0] * 0.87),
                    "high_ns": rounded(second[0] * 1.15),
                    "share": share,
                    "likely": likely,
                }
            )
        kinds.append(
            {
                "operation": operation,
                "pages": pages,
                "size_bytes": size,
                "p50_ns": out[-1]["summary"]["p50"],
                "modes": modes,
            }
        )
    out.append(
        absent(
            "vm.fault",
            {"operation": "file-major", "pages": "4k", "size_bytes": page},
            "unsupported",
            "no directory of this machine could be used for a file that is not in memory",
            stopped_by="unsupported",
        )
    )
    return [*out, derived("vm.fault", {"kinds": kinds})]


def map_records() -> list[JSON]:
    out, found = [], []
    for operation, fixed, a_page in (
        ("map", 1100.0, 0.0),
        ("unmap", 1300.0, 440.0),
        ("map-populate", 1500.0, 1790.0),
        ("protect", 640.0, 9.0),
        ("dontneed", 420.0, 380.0),
    ):
        for pages in (1, 16, 256, 4096):
            point = {"operation": operation, "size_bytes": pages * 4 * KIB}
            out.append(batch_mean("vm.map", point, fixed + a_page * pages, ops=64, spread=0.02))
        found.append(
            {
                "operation": operation,
                "fixed_ns": estimate(fixed, 1.1),
                "per_page_ns": estimate(a_page, 1.05),
            }
        )
    return [*out, derived("vm.map", {"operations": found})]


def zero_records() -> list[JSON]:
    rates = {"memset": 36e9, "memset-fresh": 2.05e9, "kernel": 2.2e9}
    size = 64 * MIB
    return [
        batch_mean(
            "vm.zero",
            {"operation": operation, "size_bytes": size, "working_set_bytes": size, "pages": "4k"},
            rate,
            unit="bytes_per_s",
            ops=1,
            work={"ops": 30, "bytes": 30 * size, "convention": "each byte set to zero counts once"},
        )
        for operation, rate in rates.items()
    ]
