"""What the first sentence names."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.model import (
    Call,
    CallError,
    Calls,
    Explained,
    File,
    Files,
    Function,
    Holder,
    Lock,
    Moved,
    Pauses,
    Process,
    PythonCode,
    PythonPlace,
)
from latlab.explain.named import most_of
from latlab.explain.page import tables
from latlab.explain.table import calls, locks, pauses
from latlab.explain.verdict import verdict


def computing(*functions: tuple[str, float]) -> Explained:
    """A program that computes, with these functions."""
    explained = ledger({"compute": 0.9})
    rows = tuple(
        msgspec.structs.replace(
            row, functions=tuple(Function(name, "a.out", share, share, share) for name, share in functions)
        )
        if row.name == "compute"
        else row
        for row in explained.categories
    )
    return msgspec.structs.replace(explained, categories=rows)


def python(*places: tuple[str, str, float]) -> PythonCode:
    functions = tuple(
        PythonPlace(name, share, share, share, share, 1.0, file) for name, file, share in places
    )
    return PythonCode(("3.11",), 100, 0, 0.0, functions, ())


def file(name: str, kind: str, read: float | None, written: float | None) -> File:
    def moved(amount: float | None) -> Moved | None:
        return None if amount is None else Moved(amount, 0.0, 1.0, 1.0)

    return File(name, kind, 1, "program", (3,), 1, 0, 0.0, 1.0, moved(read), moved(written))


def using(*rows: File) -> Explained:
    return msgspec.structs.replace(ledger({"network": 0.9}), files=Files(rows=rows))


def test_the_heaviest_function_is_in_the_first_sentence() -> None:
    explained = computing(("[no name]", 0.6), ("work", 0.21), ("rest", 0.1))
    assert verdict(explained)[0].endswith("; 21 % in work of a.out.")


@pytest.mark.parametrize("functions", [(), (("work", 0.09),), (("[no name]", 0.9),)])
def test_a_function_that_is_small_or_nameless_is_not_named(functions: tuple[tuple[str, float], ...]) -> None:
    assert most_of(computing(*functions), "computing") == ""


def test_a_python_function_is_named_before_the_interpreters() -> None:
    explained = msgspec.structs.replace(
        computing(("_PyEval_EvalFrameDefault", 0.5)),
        python=python(("_call", "<frozen importlib._bootstrap>", 0.4), ("count", "/home/me/words.py", 0.3)),
    )
    assert most_of(explained, "computing") == "; 30 % in count of words.py"


def test_without_a_function_the_process_that_ran_most_is_named() -> None:
    processes = tuple(
        Process(pid=at, parent=0, name=name, wall_s=wall_s, running=0.9)
        for at, (name, wall_s) in enumerate((("make", 0.1), ("cc1", 2.0), ("cc1", 2.0), ("as", 0.9)))
    )
    explained = msgspec.structs.replace(computing(), processes=processes)
    assert most_of(explained, "computing") == "; 80 % of that in cc1"
    assert most_of(msgspec.structs.replace(explained, processes=processes[1:2]), "computing") == ""


def test_a_server_is_told_by_its_own_address_and_a_client_by_the_other_end() -> None:
    to = "tcp 10.0.0.1:80 to 10.0.0.2"
    served = using(*(file(f"{to}:{port}", "socket", 10.0, 2**20) for port in (4001, 4002, 4003)))
    assert most_of(served, "network") == "; most bytes: 3 connections at 10.0.0.1:80, written 3 MiB"
    asks = using(
        file("tcp 10.0.0.2:4001 to 10.0.0.1:80", "socket", 2**21, 2**20),
        file("tcp 10.0.0.2:4002 to 10.0.0.9:443", "socket", 2**20, 0.0),
        file("tcp 10.0.0.2:9000, listening", "socket", 0.0, 0.0),
        file("/a/file", "file", 2**30, None),
    )
    assert most_of(asks, "network") == "; most bytes: 10.0.0.1:80, read 2 MiB and written 1 MiB"


def test_the_file_with_more_than_half_of_the_bytes_is_named() -> None:
    rows = (file("/a/rows.db", "file", None, 2**20), file("/b", "file", 2**10, None))
    assert most_of(using(*rows), "storage") == "; most bytes: /a/rows.db, written 1 MiB"
    even = tuple(file(f"/{at}", "file", 2**20, None) for at in range(4))
    assert most_of(using(*even), "storage") == ""
    assert most_of(using(), "storage") == ""
    assert most_of(using(*rows), "sleeping") == ""


def test_a_file_with_little_of_what_was_read_in_all_is_not_named() -> None:
    library = file("/lib/libc.so.6", "file", 832, None)
    explained = using(library, file("pipe:[7]", "pipe", 500_000, None))
    for chars, named in ((3_000_000, False), (501_000, True)):
        counters = msgspec.structs.replace(explained.counters, read_chars=chars, written_chars=0)
        told = most_of(msgspec.structs.replace(explained, counters=counters), "storage")
        assert bool(told) == named, told


def test_the_lock_that_is_waited_for_most_is_named_with_who_has_it() -> None:
    holders = (Holder(12, "writer", 0.7), Holder(13, "reader", 0.3))
    first = Lock("server", "0x4040", 1, 6.0, 3, 40, "table_lock", holders)
    other = Lock("[heap]", "0x55d0", 1, 3.0, 2, 20)
    explained = msgspec.structs.replace(ledger({"locks": 0.8}), locks=(first, other))
    assert verdict(explained)[0].endswith(
        "; most at table_lock of server, which writer (12) had most of the time."
    )
    assert (
        most_of(msgspec.structs.replace(explained, locks=(other,)), "locks") == "; most at 0x55d0 in [heap]"
    )
    assert most_of(msgspec.structs.replace(explained, locks=(other, other)), "locks") == ""
    header, *rows = locks(explained)
    assert header.split() == ["lock", "waited", "for", "by", "looks", "held", "meanwhile", "by"]
    assert rows[0].startswith("table_lock of server")
    assert rows[0].endswith("writer (12) 70 %, reader (13) 30 %")
    assert rows[1].endswith("–")
    assert len(tables.locks(explained).rows) == 2
    little = msgspec.structs.replace(other, waited_s=0.01)
    assert locks(msgspec.structs.replace(explained, locks=(little,))) == []


def test_calls_are_listed_with_their_errors_and_what_was_lost() -> None:
    errors = (CallError("ENOENT", 1_200), CallError("EACCES", 3))
    asked = Call(name="openat", times=1_400, seconds=0.7, longest_s=0.2, errors=errors)
    others = tuple(Call(name=f"call{at}", times=1, seconds=0.001, longest_s=0.001) for at in range(10))
    explained = msgspec.structs.replace(ledger({"compute": 0.8}), calls=Calls((asked, *others), 12))
    header, first, *rows = calls(explained)
    assert header.split() == ["system", "call", "times", "time", "in", "it", "mean", "longest", "errors"]
    assert " ".join(first.split()) == "openat 1,400 700 ms 500 µs 200 ms 1,200 ENOENT, 3 EACCES"
    assert rows[0].endswith("–")
    assert rows[-2] == "  and 3 more kinds, 3 calls, 3.00 ms"
    assert rows[-1] == "  12 records were lost: as many more may have begun or come back"
    assert [len(row) for row in tables.calls(explained).rows] == [6] * 11
    assert calls(ledger({"compute": 0.8})) == []


def test_pauses_are_listed_with_their_runtime_and_their_share_of_wall_time() -> None:
    young = Pauses(7, "G1 young collection pauses", 12, 0.1, 0.02)
    stops = Pauses(7, "all stops of its threads (safepoints)", 20, 0.05)
    of_go = Pauses(8, "garbage collection pauses", 9, 0.02, 0.004, "Go", is_least=True)
    explained = msgspec.structs.replace(ledger({"compute": 0.8}), pauses=(young, stops, of_go), wall_s=2.0)
    _, first, second, third = pauses(explained)
    assert " ".join(first.split()) == "Java: G1 young collection pauses (7) 12 100 ms 5.0 % 20.0 ms"
    assert " ".join(third.split()) == "Go: garbage collection pauses (8) ≥ 9 ≥ 20.0 ms 1.0 % 4.00 ms"
    assert second.endswith("–")
    assert [len(row) for row in tables.pauses(explained).rows] == [6, 6, 6]
    assert tables.pauses(explained).rows[2][0] == "Go: garbage collection pauses (at least)"
    assert pauses(ledger({"compute": 0.8})) == []
