"""What Python's own operations cost."""

from __future__ import annotations

from .tools import JSON, batch_mean, rounded


def python_records() -> list[JSON]:
    costs: dict[str, tuple[float, int | None]] = {
        "attribute": (11.8, None),
        "call": (38.0, None),
        "method-call": (41.5, None),
        "small-object": (92.0, None),
        "dict-insert": (35.0, 1000),
        "dict-lookup": (17.4, 1000),
        "list-literal": (58.0, 8),
        "list-comprehension": (28_100.0, 1000),
        "list-multiply": (1_050.0, 1000),
        "list-append": (19_800.0, 1000),
        "string-concatenate": (41_000.0, 1000),
        "string-join": (9_600.0, 1000),
        "numpy-empty": (260.0, 1000),
        "numpy-zeros": (330.0, 1000),
        "numpy-in-place": (410.0, 1000),
        "numpy-temporary": (690.0, 1000),
    }
    out = []
    for operation, (ns, elements) in costs.items():
        numpy = " with NumPy 2.2.1" if operation.startswith("numpy") else ""
        point = {"operation": operation} | ({"elements": elements} if elements else {})
        findings = (
            {"elements_per_operation": elements, "per_element_ns": rounded(ns / elements)}
            if elements and operation.startswith("list")
            else None
        )
        out.append(
            batch_mean(
                "python.object", point, ns, ops=1000, engine=f"CPython 3.11.7{numpy}", findings=findings
            )
        )
    return out
