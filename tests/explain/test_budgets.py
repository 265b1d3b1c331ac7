"""Budgets of a program: what a limit limits, when it is broken, and what is said of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.errors import UserError
from latlab.explain.answer import GROUPS
from latlab.explain.budgets import CATEGORIES, COUNTS, NAMES, TIMES, Outcome, budgets, outcomes
from latlab.explain.gated import Gated, gated
from latlab.explain.model import Explained, Rung, Within


def outcome(explained: Explained, requests: int = 1, **limit: object) -> Outcome:
    (found,) = outcomes(explained, budgets(limit), requests)
    return found


# ---- what is limited


@pytest.mark.parametrize(
    ("name", "limit", "kind", "amount", "per"),
    [
        ("wait_disk", "5 %", "share", 0.05, ""),
        ("storage_wait", "20 ms", "time", 0.02, ""),
        ("wall", "2 s", "time", 2.0, ""),
        ("cpu", "300 µs per request", "time", 3e-4, "request"),
        ("page_faults", "5 %", "share", 0.05, ""),
        ("page_faults", "20 ms", "time", 0.02, ""),
        ("page_faults", "100 per request", "count", 100.0, "request"),
        ("page_faults", 5000, "count", 5000.0, ""),
        ("page_faults", "5,000", "count", 5000.0, ""),
        ("written_bytes", "10 MB", "bytes", 1e7, ""),
        ("read_bytes", "4 KiB per row", "bytes", 4096.0, "row"),
        ("reads", 0, "count", 0.0, ""),
    ],
)
def test_the_unit_of_a_limit_says_what_is_limited(
    name: str, limit: object, kind: str, amount: float, per: str
) -> None:
    (budget,) = budgets({name: limit})
    assert (budget.name, budget.kind, budget.per) == (name, kind, per)
    assert budget.limit == pytest.approx(amount)


def test_every_category_of_a_ledger_is_a_budget() -> None:
    assert set(CATEGORIES) == {name.replace("-", "_") for of in GROUPS.values() for name in of}
    for name in CATEGORIES:
        assert budgets({name: "5 %"})[0].kind == "share"
    for name in COUNTS:
        assert budgets({name: 5})[0].kind in {"count", "bytes"}
    for name in TIMES:
        assert budgets({name: "5 s"})[0].kind == "time"
    assert set(NAMES) == {*CATEGORIES, *COUNTS, *TIMES, "wait_disk"}


@pytest.mark.parametrize(
    ("name", "limit", "words"),
    [
        ("wait_dsk", "5 %", "wait_dsk: is no budget; did you mean wait_disk? There are: wall, cpu,"),
        ("\x1b", "5 %", "is no budget; There are: wall"),
        ("wall", 2, '''wall: 2 has no unit: write it as "2 s"'''),
        ("wall", "5 %", "wall: '5 %': '%' is not a unit"),
        ("wall", "2 GB/s", '''wall: '2 GB/s' is no limit of it: write it as "2 s"'''),
        ("sleep", 0.05, '''sleep: 0.05 has no unit: write it as "5 %" or "20 ms"'''),
        ("sleep", True, "sleep: 'True' is not a time or a rate"),
        ("sleep", "5 % per request", "sleep: '5 % per request': a share of wall time is that of the"),
        ("page_faults", "-3", "page_faults: '-3' is negative"),
        ("page_faults", 1.5, "page_faults: '1.5' is not a whole number"),
        ("page_faults", "200 %", "page_faults: '200 %' is not above 0 % and at most 100 %"),
        ("read_bytes", "5 s", "read_bytes: '5 s': 's' is not a unit of size"),
    ],
)  # fmt: skip
def test_what_is_no_budget_says_what_to_write(name: str, limit: object, words: str) -> None:
    with pytest.raises(UserError) as failed:
        budgets({name: limit})
    assert words in str(failed.value)
    assert "\x1b" not in str(failed.value)


# ---- held, broken, undecided


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [("13 %", "held"), ("11 %", "undecided"), ("12.5 %", "undecided"), ("9 %", "broken")],
)
def test_the_whole_interval_decides(limit: str, verdict: str) -> None:
    assert outcome(ledger({"storage-wait": 0.12}, width=0.01), storage_wait=limit).verdict == verdict
    seconds = f"{float(limit.partition(' ')[0]) * 100:.0f} ms"
    assert outcome(ledger({"storage-wait": 0.12}, width=0.01), storage_wait=seconds).verdict == verdict


def test_what_is_unexplained_may_be_of_any_category() -> None:
    doubtful = ledger({"storage-wait": 0.02, "unexplained": 0.1}, width=0.005)
    assert outcome(doubtful, wait_disk="5 %").verdict == "undecided"
    assert outcome(doubtful, wait_disk="13 %").verdict == "held"
    assert outcome(doubtful, unexplained="11 %").verdict == "held"


def test_what_another_row_may_contain_counts() -> None:
    whole = ledger({"page-faults": 0.02, "kernel-cpu": 0.2}, width=0.0)
    kernel = whole.row("kernel-cpu")
    assert kernel is not None
    divided = msgspec.structs.replace(kernel, within=(Within("page-faults", 0.01, 0.15, 0.1),))
    rows = [divided if row is kernel else row for row in whole.categories]
    doubtful = msgspec.structs.replace(whole, categories=tuple(rows))
    assert outcome(doubtful, page_faults="18 %").verdict == "held"
    assert outcome(doubtful, page_faults="16 %").verdict == "undecided"
    assert outcome(doubtful, page_faults="2.9 %").verdict == "broken"
    assert outcome(doubtful, page_faults="2.9 %").why.startswith("page_faults is 12 % (3.0–17 %) of 10.0 s")


def test_a_count_is_exact_and_for_one_request_where_it_says_so() -> None:
    counted = ledger({}, counters={"minor_faults": 19_000, "major_faults": 1000})
    assert outcome(counted, page_faults=20_000).verdict == "held"
    assert outcome(counted, page_faults=19_999).verdict == "broken"
    assert outcome(counted, 200, page_faults="100 per request").verdict == "held"
    broken = outcome(counted, 100, page_faults="150 per request")
    assert broken.verdict == "broken"
    assert broken.why.startswith("page_faults is 200 per request, allowed: 150 per request")
    assert outcome(counted, 100, major_faults=999).verdict == "broken"


def test_wall_and_cpu_time_are_held_and_say_what_the_time_went_to() -> None:
    took = ledger({"storage-wait": 0.8}, wall_s=3.0, counters={"user_s": 1.5, "system_s": 0.5})
    assert outcome(took, wall="3 s").verdict == "held"
    assert outcome(took, cpu="2 s").verdict == "held"
    assert outcome(took, 10, cpu="190 ms per request").verdict == "broken"
    broken = outcome(took, wall="2 s")
    assert broken.verdict == "broken"
    assert broken.why == (
        "wall is 3.00 s, allowed: 2.00 s. x spends 80 % of 3.00 s waiting for the disk (79–81 %)."
    )


def test_what_is_not_known_says_which_tracing_level_is_missing() -> None:
    blind = ledger({"storage-wait": 0.1})
    blind = msgspec.structs.replace(
        blind,
        levels=(Rung(1, "kernel", False, "perf_event_paranoid is 3"), Rung(3, "/proc", True)),
        categories=tuple(row for row in blind.categories if row.name != "storage-wait"),
    )
    unknown = outcome(blind, wait_disk="5 %")
    assert unknown.verdict == "undecided"
    assert unknown.why == (
        "wait_disk is not known here; tracing level 1 is missing: perf_event_paranoid is 3"
    )
    assert outcome(blind, disk_read_bytes="1 MB").verdict == "undecided"


# ---- where


def document(of: Explained) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(of)
    return found


def test_a_broken_budget_names_the_function_the_file_or_the_line() -> None:
    heavy = document(ledger({"page-faults": 0.3}))
    (faults,) = (row for row in heavy["categories"] if row["name"] == "page-faults")
    faults["functions"] = [{"name": "load", "object": "report", "share": 0.25, "low": 0.24, "high": 0.26}]
    assert outcome(msgspec.convert(heavy, Explained), page_faults="5 %").why == (
        "page_faults is 30 % (29–31 %) of 10.0 s, allowed: 5.0 %; most in load (report)"
    )
    moved = {"bytes": 9e6, "inferred": 0.0, "busy_s": 1.0}
    file = {"kind": "file", "process": 1, "process_name": "x", "descriptors": [3], "opened": 1, "seeks": 0}
    reads = document(ledger({"storage-wait": 0.3}, counters={"read_chars": 9e6}))
    reads["files"] = {"rows": [file | {"name": "/data.csv", "read": moved}]}
    assert outcome(msgspec.convert(reads, Explained), wait_disk="5 %").why.endswith(
        "; most bytes: /data.csv, read 8.58 MiB"
    )


@pytest.mark.parametrize(("share", "words"), [(0.9, "; most at app.py:42 (parse)"), (0.6, "")])
def test_a_line_of_python_is_named_where_half_of_a_category_must_be_there(share: float, words: str) -> None:
    python = document(ledger({"file-io-cpu": 0.3}))
    line = {
        "name": "parse",
        "share": share,
        "low": share,
        "high": share,
        "within": share,
        "busy_share": share,
    }
    python["python"] = {
        "versions": ["3.11"],
        "reads": 100,
        "torn": 0,
        "nameless_share": 0.0,
        "functions": [],
        "lines": [line | {"file": "/src/app.py", "line": 42}],
    }
    found = outcome(msgspec.convert(python, Explained), file_io_cpu="5 %")
    assert found.why == f"file_io_cpu is 30 % (29–31 %) of 10.0 s, allowed: 5.0 %{words}"


# ---- what a test makes of it


def gate(undecided: str) -> Gated:
    explained = ledger({"storage-wait": 0.12, "sleep": 0.05}, width=0.01)
    return Gated("./x", explained, tuple(outcomes(explained, budgets({"sleep": "5 %"}))), undecided)


def test_an_undecided_budget_skips_fails_or_passes_as_the_test_says() -> None:
    why = "sleep is 5.0 % (4.0–6.0 %) of 10.0 s, allowed: 5.0 %: cannot tell; more runs= narrow it"
    assert (gate("skip").failure, gate("skip").doubt) == ("", f"./x: {why}")
    assert (gate("fail").failure, gate("fail").doubt) == (f"./x, not known:\n  {why}", "")
    assert (gate("pass").failure, gate("pass").doubt) == ("", "")


@pytest.mark.parametrize(
    ("program", "given", "words"),
    [
        ("./prog", {"wall": "1 s"}, 'give the program as a list: ["./prog", "argument"]'),
        ([], {"wall": "1 s"}, "give the program as a list"),
        (["true"], {}, "no budget: write"),
        (["true"], {"wall": "1 s", "undecided": "error"}, "undecided: 'error': write 'skip', 'fail', 'pass'"),
        (
            ["true"],
            {"page_faults": "5 per row"},
            "page_faults: how many there are is not said: add requests=",
        ),
        (["true"], {"wall": "1 s", "requests": 0}, "requests: '0' is no whole number above zero"),
        (["true"], {"wall": "1 s", "runs": True}, "runs: 'True' is no whole number above zero"),
        (["true"], {"wall": "1 s", "timeout": "x"}, "timeout: 'x' is not a time"),
    ],
)
def test_a_mistake_is_found_before_anything_is_run(
    program: list[str], given: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latlab.explain.gated.explain_apart", pytest.fail)
    with pytest.raises(UserError) as failed:
        gated(program, given)
    assert words in str(failed.value)
