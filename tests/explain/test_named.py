"""What the first sentence names."""

from __future__ import annotations

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.explain.answer import Share
from latlab.explain.model import (
    Explained,
    Function,
    Process,
    PythonCode,
    PythonPlace,
    PythonStack,
    SourceLine,
)
from latlab.explain.named import most_of, place_of, waits_in
from latlab.explain.page import tables
from latlab.explain.resources import Call, CallError, Calls, File, Files, Holder, Lock, Moved, Pauses
from latlab.explain.table import calls, locks, pauses
from latlab.explain.verdict import verdict


def computing(*functions: tuple[str, float]) -> Explained:
    """A program that computes, with these functions."""
    explained = ledger({"sleep": 0.1})
    rows = tuple(
        msgspec.structs.replace(
            row, functions=tuple(Function(name, "a.out", share, share, share) for name, share in functions)
        )
        if row.name == "compute"
        else row
        for row in explained.categories
    )
    return msgspec.structs.replace(explained, categories=rows)


def group(name: str) -> Share:
    return Share(name, 0.9, 0.89, 0.91)


COMPUTING = group("computing")


def python(*places: tuple[str, str, float]) -> PythonCode:
    functions = tuple(
        PythonPlace(name, share, share, share, share, 1.0, file) for name, file, share in places
    )
    return PythonCode(("3.11",), 100, 0, 0.0, functions, ())


def file(name: str, kind: str, read: float | None, written: float | None) -> File:
    def moved(amount: float | None) -> Moved | None:
        return None if amount is None else Moved(amount, 0.0, 1.0)

    return File(name, kind, 1, "program", (3,), 1, 0, moved(read), moved(written))


def using(*rows: File) -> Explained:
    return msgspec.structs.replace(ledger({"network": 0.9}), files=Files(rows=rows))


def test_the_heaviest_function_is_in_the_first_sentence() -> None:
    explained = computing(("[no name]", 0.6), ("work", 0.21), ("rest", 0.1))
    assert verdict(explained)[0] == "x spends 90 % of 10.0 s computing (89–91 %); 21 % in work (a.out)."


@pytest.mark.parametrize("functions", [(), (("work", 0.09),), (("[no name]", 0.9),)])
def test_a_function_that_is_small_or_nameless_is_not_named(functions: tuple[tuple[str, float], ...]) -> None:
    assert most_of(computing(*functions), COMPUTING) == ""


def test_a_python_function_is_named_before_the_interpreters() -> None:
    explained = msgspec.structs.replace(
        computing(("_PyEval_EvalFrameDefault", 0.5)),
        python=python(("_call", "<frozen importlib._bootstrap>", 0.4), ("count", "/home/me/words.py", 0.3)),
    )
    place = place_of(explained, Share("computing", 0.5, 0.4, 0.6))
    assert place is not None
    assert (place.called, place.share.share, place.doing) == ("count (words.py)", 0.3, "")


def test_a_script_without_python_before_it_is_said_to_be_one() -> None:
    explained = msgspec.structs.replace(computing(), python=python(("count", "/home/me/words.py", 0.3)))
    said = "x runs Python 3.11 code."
    assert said in verdict(explained)
    interpreter = Process(1, 0, "python3.11", 10.0, 0.9)
    assert said not in verdict(msgspec.structs.replace(explained, processes=(interpreter,)))


def test_the_line_is_named_where_it_has_nearly_all_of_its_function() -> None:
    code = python(("parse", "/home/me/app.py", 0.6))
    lines = tuple(
        PythonPlace("parse", share, share - 0.1, share + 0.1, share, 1.0, "/home/me/app.py", at)
        for at, share in ((42, 0.55), (43, 0.05))
    )
    explained = msgspec.structs.replace(computing(), python=msgspec.structs.replace(code, lines=lines))
    assert verdict(explained)[0] == "app.py:42 (parse) spends 55 % of 10.0 s computing (45–65 %)."
    even = tuple(msgspec.structs.replace(line, share=0.3) for line in lines)
    explained = msgspec.structs.replace(computing(), python=msgspec.structs.replace(code, lines=even))
    assert verdict(explained)[0] == "parse (app.py) spends 60 % of 10.0 s computing."


def test_where_it_computes_is_named_where_something_else_leads_too() -> None:
    code = python(("parse", "/home/me/app.py", 0.9))
    explained = msgspec.structs.replace(ledger({"run-queue-wait": 0.6}), python=code)
    assert "Also: computing 40 % (39–41 %, most in parse (app.py))." in verdict(explained)
    tie = msgspec.structs.replace(ledger({"run-queue-wait": 0.5}, width=0.02), python=code)
    assert "computing 50 % (48–52 %, most in parse (app.py))" in verdict(tie)[0]


def test_a_native_line_is_named_in_the_same_way() -> None:
    line = SourceLine("work", "a.out", 0.6, 0.5, 0.7, 0.6, "/src/app.c", 7, "compute")
    explained = msgspec.structs.replace(computing(("work", 0.65)), lines=(line,))
    assert verdict(explained)[0] == "app.c:7 (work) spends 60 % of 10.0 s computing (50–70 %)."


def test_python_code_that_also_waits_is_not_said_to_compute() -> None:
    code = python(("parse", "/home/me/app.py", 0.6))
    ready = msgspec.structs.replace(ledger({"run-queue-wait": 0.45}), python=code)
    assert verdict(ready)[0] == "parse (app.py) spends 60 % of 10.0 s running, or ready for a CPU."
    stacks = (PythonStack(("main", "parse"), 0.6, 0.3),)
    waits = msgspec.structs.replace(computing(), python=msgspec.structs.replace(code, stacks=stacks))
    assert verdict(waits)[0] == "parse (app.py) spends 60 % of 10.0 s running and waiting."


def test_who_waits_for_the_disk_is_named_with_its_caller() -> None:
    line = PythonPlace("load", 0.8, 0.7, 0.9, 0.8, 0.1, "/home/me/app.py", 17)
    code = msgspec.structs.replace(
        python(("load", "/home/me/app.py", 0.8)),
        lines=(line,),
        stacks=(PythonStack(("<module>", "main", "load"), 0.8, 0.05), PythonStack(("main",), 0.2, 0.2)),
    )
    explained = msgspec.structs.replace(ledger({"storage-wait": 0.8}), python=code)
    assert verdict(explained)[0] == (
        "x spends 80 % of 10.0 s waiting for the disk (79–81 %), in load at app.py:17, called from main."
    )
    little = msgspec.structs.replace(
        code,
        stacks=(PythonStack(("main", "load"), 0.3, 0.0), PythonStack(("main",), 0.7, 0.7)),
    )
    says = verdict(msgspec.structs.replace(ledger({"storage-wait": 0.3}), python=little))
    assert "the disk 30 % of the time (29–31 %), in load at app.py:17, called from main." in " ".join(says)
    # It waits longer than anything waits for the disk, so for something else.
    short = msgspec.structs.replace(ledger({"storage-wait": 0.4, "sleep": 0.35}), python=code)
    assert "in load" not in verdict(short)[0]


def test_a_server_is_named_by_its_own_address_and_a_client_by_the_other_end() -> None:
    to = "tcp 10.0.0.1:80 to 10.0.0.2"
    served = using(*(file(f"{to}:{port}", "socket", 10.0, 2**20) for port in (4001, 4002, 4003)))
    assert most_of(served, group("network")) == "; most bytes: 3 connections at 10.0.0.1:80, written 3 MiB"
    asks = using(
        file("tcp 10.0.0.2:4001 to 10.0.0.1:80", "socket", 2**21, 2**20),
        file("tcp 10.0.0.2:4002 to 10.0.0.9:443", "socket", 2**20, 0.0),
        file("tcp 10.0.0.2:9000, listening", "socket", 0.0, 0.0),
        file("/a/file", "file", 2**30, None),
    )
    assert most_of(asks, group("network")) == "; most bytes: 10.0.0.1:80, read 2 MiB and written 1 MiB"


def test_the_file_with_more_than_half_of_the_bytes_is_named() -> None:
    rows = (file("/a/rows.db", "file", None, 2**20), file("/b", "file", 2**10, None))
    assert most_of(using(*rows), group("storage")) == "; most bytes: /a/rows.db, written 1 MiB"
    even = tuple(file(f"/{at}", "file", 2**20, None) for at in range(4))
    assert most_of(using(*even), group("storage")) == ""
    assert most_of(using(), group("storage")) == ""
    assert most_of(using(*rows), group("sleeping")) == ""


def test_a_file_with_little_of_what_was_read_in_all_is_not_named() -> None:
    library = file("/lib/libc.so.6", "file", 832, None)
    explained = using(library, file("pipe:[7]", "pipe", 500_000, None))
    for chars, named in ((3_000_000, False), (501_000, True)):
        counters = msgspec.structs.replace(explained.counters, read_chars=chars, written_chars=0)
        reported = most_of(msgspec.structs.replace(explained, counters=counters), group("storage"))
        assert bool(reported) == named, reported


def test_the_lock_that_is_waited_for_most_is_named_with_who_has_it() -> None:
    holders = (Holder(12, "writer", 0.7), Holder(13, "reader", 0.3))
    first = Lock("server", "0x4040", 1, 6.0, 3, 40, "table_lock", holders)
    other = Lock("[heap]", "0x55d0", 1, 3.0, 2, 20)
    explained = msgspec.structs.replace(ledger({"locks": 0.8}), locks=(first, other))
    assert verdict(explained)[0].endswith("; most at table_lock of server, mostly held by writer (12).")
    assert (
        most_of(msgspec.structs.replace(explained, locks=(other,)), group("locks"))
        == "; most at 0x55d0 in [heap]"
    )
    assert most_of(msgspec.structs.replace(explained, locks=(other, other)), group("locks")) == ""
    header, *rows = locks(explained)
    assert header.split() == ["lock", "waited", "for", "by", "samples", "held", "meanwhile", "by"]
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
    assert rows[-1] == "  12 records were lost: up to as many more calls may have begun or returned"
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


def test_a_program_that_waited_for_nothing_waited_in_no_function() -> None:
    explained = ledger({"storage-wait": 0.0})
    stack = PythonStack(("main",), 1.0, 1.0)
    code = msgspec.structs.replace(python(("main", "a.py", 1.0)), stacks=(stack,))
    assert (
        waits_in(msgspec.structs.replace(explained, python=code), Share("storage-wait", 0.0, 0.0, 0.04)) == ""
    )
