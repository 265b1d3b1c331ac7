"""What may be named: only what its interval sets apart from all else, everywhere by the same rule."""

from __future__ import annotations

import json
from typing import Literal

import msgspec
import pytest
from tests.explain.ledgers import ledger

from latlab.cli.explain import _whole
from latlab.explain.answer import Answer, Share, answer, leading, together
from latlab.explain.judge import Judgement
from latlab.explain.model import Bounds, Counts, Explained, Function, Row, Rung, Symbol, Within
from latlab.explain.places import places
from latlab.explain.table import table
from latlab.explain.verdict import verdict


def rows(
    *known: tuple[str, float, float, float],
    level: Literal[1, 2, 3] = 2,
    method: Literal["counted", "sampled", "modelled"] = "sampled",
    wall_s: float = 0.3,
    **fields: object,
) -> Explained:
    """A ledger of these rows: name, share and interval."""
    made = ledger({}, wall_s=wall_s)
    found = tuple(
        Row(name, share, low, high, share * wall_s, method) for name, share, low, high in known if share >= 0
    )
    return msgspec.structs.replace(made, categories=found, level=level, **fields)


def names(found: Answer) -> list[str]:
    return [share.name for share in found.leading.of]


def test_of_computing_as_a_whole_more_is_known_than_of_its_rows() -> None:
    known = (("compute", 0.4, 0.2, 0.7), ("allocator", 0.3, 0.1, 0.6), ("network", 0.3, 0.28, 0.32))
    wide = rows(*known)
    assert answer(wide).leading.of[0].high == pytest.approx(1.0)
    close = rows(*known, computing=Bounds(0.66, 0.73))
    assert answer(close).leading.of == (Share("computing", 0.7, 0.66, 0.73),)


def test_what_the_kernel_does_uncounted_may_be_any_of_its_work() -> None:
    others = (("file-io-cpu", 0.01, 0.0, 0.015), ("compute", 0.3, 0.2, 0.35))
    found = rows(("kernel-cpu", 0.6, 0.5, 0.7), *others)
    uncounted = msgspec.structs.replace(found.categories[0], within=(Within("file-io-cpu", 0.0, 0.7),))
    sentences = verdict(msgspec.structs.replace(found, categories=(uncounted, *found.categories[1:])))
    assert "spends 60 % of 300 ms on unclassified kernel work (50–70 %)." in sentences[0]
    assert not any("Ruled out" in sentence for sentence in sentences)
    sentences = verdict(rows(*others))
    assert any("Ruled out: the kernel's work on files" in sentence for sentence in sentences)


def test_of_the_kernels_work_that_is_left_whole_counts_say_what_it_was_for() -> None:
    found = rows(("kernel-cpu", 0.6, 0.55, 0.65), ("compute", 0.4, 0.35, 0.45), ("network", 0.0, 0.0, 0.0))
    within: tuple[Within, ...] = (
        Within("file-io-cpu", 0.4, 0.6, share=0.5),
        Within("network", 0.0, 0.1, share=0.001),
    )
    whole = msgspec.structs.replace(found.categories[0], within=within)
    reported = msgspec.structs.replace(found, categories=(whole, *found.categories[1:]))
    sentences = verdict(reported)
    assert sentences[0].endswith("kernel work (55–65 %); most of that on files.")
    assert any(
        "known only from counts: the kernel's work on files 50 % (40.0–60.0 %);" in each for each in sentences
    )
    assert not any("Ruled out" in each for each in sentences), "the network may have a tenth"
    assert reported.share("file-io-cpu", "network") == pytest.approx(0.501)
    assert {row.name for row in reported.known("network")} == {"network"}
    # Less than half of it for sure: nothing is named.
    within = (Within("file-io-cpu", 0.2, 0.6, share=0.5),)
    whole = msgspec.structs.replace(whole, within=within)
    assert verdict(msgspec.structs.replace(reported, categories=(whole,)))[0].endswith("(55–65 %).")


def test_a_program_that_waited_for_what_cannot_be_read_is_said_to_have_waited() -> None:
    waited = rows(("unexplained", 0.99, 0.97, 1.0))
    idle = msgspec.structs.replace(waited.threads, cpu_s=0.001, parallelism=1.0)
    sentence = verdict(msgspec.structs.replace(waited, threads=idle))[0]
    assert "spends 99 % of 300 ms waiting for an unknown cause (97–100 %)" in sentence


def test_one_run_that_may_cost_more_is_named_beside_several_runs() -> None:
    close = rows(("compute", 0.4, 0.3, 0.5), ("network", 0.35, 0.25, 0.45))
    observer = msgspec.structs.replace(close.observer, samples=50, recorded_share=0.05, allowed_share=0.001)
    step = verdict(msgspec.structs.replace(close, observer=observer))[-1]
    assert step.startswith("Next: record more of it: --overhead "), step
    assert ", or --runs 20 narrows computing from 30–50 % to about 38–42 % in 6.0 s" in step
    all_of_it = msgspec.structs.replace(observer, recorded_share=0.9)
    step = verdict(msgspec.structs.replace(close, observer=all_of_it))[-1]
    assert step.startswith("Next: --runs 20 "), step


def test_intervals_of_a_group_add_up_as_those_of_independent_figures() -> None:
    both = together(
        "storage", rows(("storage-wait", 0.2, 0.17, 0.23), ("file-io-cpu", 0.3, 0.26, 0.34)).categories
    )
    assert (both.share, both.low, both.high) == pytest.approx((0.5, 0.45, 0.55))


FEW_SAMPLES = rows(
    ("compute", 0.5, 0.1, 0.9), ("page-faults", 0.3, 0.05, 0.8), ("storage-wait", 0.2, 0.19, 0.21)
)


def test_what_lies_above_all_others_with_its_whole_interval_is_named() -> None:
    found = answer(rows(("compute", 0.6, 0.45, 0.7), ("sleep", 0.4, 0.38, 0.42)))
    assert names(found) == ["computing"]
    assert found.again is None


def test_a_low_end_above_half_leaves_the_others_less_whatever_their_own_intervals_say() -> None:
    found = answer(rows(("compute", 0.7, 0.55, 0.9), ("page-faults", 0.3, 0.02, 0.6)))
    assert names(found) == ["computing"]


def test_what_overlaps_is_not_distinguished_and_the_next_step_is_more_runs() -> None:
    found = answer(FEW_SAMPLES)
    assert names(found) == ["computing", "memory-management", "storage"]
    said = verdict(FEW_SAMPLES)
    assert said[0] == (
        "x spends most of 300 ms computing (10–90 %), on page faults (5.0–80 %) or waiting for the disk"
        " (19–21 %): which is more cannot be determined."
    )
    assert f"--runs {found.again} narrows computing from 10–90 % to " in said[-1]
    assert not any(line.startswith("Ruled out") for line in said)


def test_what_takes_less_than_half_leads_if_nothing_takes_as_much() -> None:
    wide = rows(("compute", 0.48, 0.42, 0.54), ("sleep", 0.3, 0.29, 0.31), ("network", 0.22, 0.2, 0.24))
    assert verdict(wide)[0] == "x spends 48 % of 300 ms computing (42–54 %)."
    narrow = rows(("compute", 0.46, 0.44, 0.48), ("sleep", 0.3, 0.29, 0.31), ("network", 0.24, 0.2, 0.28))
    assert verdict(narrow)[0] == "x spends 46 % of 300 ms computing (44–48 %)."


def test_figures_that_are_known_and_about_as_large_need_no_more_runs() -> None:
    tie = rows(("storage-wait", 0.5, 0.48, 0.52), ("compute", 0.48, 0.46, 0.5), ("sleep", 0.02, 0.0, 0.04))
    assert verdict(tie)[0] == (
        "x spends 300 ms about equally waiting for the disk 50 % (48–52 %) and computing 48 % (46–50 %)."
    )
    assert answer(tie).again is None
    assert verdict(tie)[-1] == "Next: read ahead, read more at once, or keep the file in memory."


def test_what_was_not_explained_may_be_more_than_what_was() -> None:
    hidden = rows(("unexplained", 0.5, 0.4, 0.6), ("compute", 0.5, 0.4, 0.6))
    assert "or on what could not be explained (40–60 %): which" in verdict(hidden)[0]
    most = rows(("unexplained", 0.8, 0.7, 0.9), ("compute", 0.2, 0.1, 0.3))
    assert "spends 80 % of 300 ms on what could not be explained (70–90 %)." in verdict(most)[0]


def test_nothing_is_ruled_out_that_the_unexplained_may_hide() -> None:
    small = ("network", 0.001, 0.0, 0.004)
    sure = answer(rows(("compute", 0.99, 0.98, 1.0), small, ("unexplained", 0.0, 0.0, 0.002)))
    (network,) = sure.ruled_out
    assert network.name == "network"
    assert network.high == pytest.approx(0.006)
    hidden = answer(rows(("compute", 0.9, 0.8, 1.0), small, ("unexplained", 0.09, 0.0, 0.2)))
    assert hidden.ruled_out == ()


def test_the_next_step_is_of_the_category_that_leads_the_group_that_leads() -> None:
    # The largest row is storage's, the largest group is computing.
    both = rows(
        ("storage-wait", 0.4, 0.39, 0.41), ("allocator", 0.35, 0.34, 0.36), ("compute", 0.25, 0.24, 0.26)
    )
    assert "spends 60 % of 300 ms computing (59–61 %, with 35 % allocating memory)" in verdict(both)[0]
    assert verdict(both)[-1] == "Next: find the allocating code, or try another allocator."


def test_a_group_that_leads_for_sure_may_be_of_categories_that_are_not_distinguished() -> None:
    user = rows(("compute", 0.5, 0.3, 0.7), ("allocator", 0.4, 0.25, 0.6), ("sleep", 0.1, 0.09, 0.11))
    found = answer(user)
    assert found.leading.is_known
    assert [share.name for share in found.categories.of] == ["compute", "allocator"]
    assert "--runs" in verdict(user)[-1]


@pytest.mark.parametrize(
    ("level", "rung", "raised", "says"),
    [
        (3, Rung(2, "x", available=False, reason="refused"), "sudo x", "distinguishes more of them: sudo x."),
        (3, Rung(2, "x", available=False, reason="not asked for"), None, "leave out --level."),
        (
            3,
            Rung(2, "x", available=True),
            None,
            "Next: run it more times, so that some of it can be recorded: --runs 10.",
        ),
        (
            2,
            Rung(1, "x", available=False),
            None,
            "look at each of them: their order is unknown here.",
        ),
        (1, Rung(1, "x", available=True), None, "in 1 min; the program's effects happen each time."),
    ],
)
def test_what_a_model_leaves_open_is_reported_by_a_higher_level_if_there_is_one(
    level: Literal[1, 2, 3], rung: Rung, raised: str | None, says: str
) -> None:
    modelled = rows(
        ("page-faults", 0.5, 0.2, 0.8), ("file-io-cpu", 0.5, 0.2, 0.8), level=level, method="modelled"
    )
    explained = msgspec.structs.replace(modelled, levels=(rung,), raise_=raised)
    assert verdict(explained)[-1].endswith(says)


@pytest.mark.parametrize(
    ("rung", "raised", "says"),
    [
        (
            Rung(2, "x", available=False, reason="refused"),
            "sudo x",
            "raise the tracing level to see what its",
        ),
        (
            Rung(2, "x", available=False, reason="not asked for"),
            None,
            "raise the tracing level to see what its",
        ),
        (Rung(2, "x", available=True), None, "run it more times, so that some of it can be recorded: --runs"),
    ],
)
def test_only_what_raises_the_level_is_said_to(rung: Rung, raised: str | None, says: str) -> None:
    explained = msgspec.structs.replace(ledger({"user-cpu": 0.9}), levels=(rung,), raise_=raised)
    assert verdict(explained)[-1].startswith(f"Next: {says}")


def test_one_short_run_says_how_many_would_narrow_its_shares() -> None:
    def said(
        width: float = 0.08, wall_s: float = 0.003, exit_code: int = 0, scans: int = 9, runs: int = 1
    ) -> list[str]:
        made = ledger({"sleep": 0.9}, wall_s=wall_s, width=width, exit_code=exit_code)
        observer = msgspec.structs.replace(made.observer, scans=scans)
        found = verdict(msgspec.structs.replace(made, observer=observer, runs=runs))
        return [line for line in found if "--runs" in line]

    # Four times as wide as two points on either side.
    (line,) = said()
    assert line == (
        "More runs: --runs 20 narrows computing from 2.0–18 % to about 8.2–12 % in 0.1 s; the program's"
        " effects happen each time."
    )
    # Over before anybody looked.
    assert "--runs 1000 " in said(width=0.0, scans=0)[0]
    assert said(width=0.01) == said(wall_s=1.0) == said(exit_code=1) == said(runs=20) == []


def test_a_process_that_runs_is_watched_for_longer() -> None:
    program = msgspec.structs.replace(FEW_SAMPLES.program, arguments=())
    assert "--for" in verdict(msgspec.structs.replace(FEW_SAMPLES, program=program))[-1]


@pytest.mark.parametrize(("wall_s", "runs", "most"), [(0.3, 1, 200), (100.0, 1, 2), (0.3, 100, 500)])
def test_nobody_is_asked_to_wait_for_more_than_a_minute_or_twice_as_long_as_before(
    wall_s: float, runs: int, most: int
) -> None:
    explained = msgspec.structs.replace(FEW_SAMPLES, wall_s=wall_s, runs=runs)
    again = answer(explained).again
    assert again is not None
    assert 2 * runs <= again <= most


def test_the_nearer_two_are_the_more_runs_it_takes() -> None:
    def again(other: float) -> int:
        found = answer(
            rows(
                ("compute", 1 - other, 0.75 - other, 1.0),
                ("sleep", other, other - 0.1, min(other + 0.4, 1.0)),
                wall_s=0.01,
            )
        )
        assert found.again is not None
        return found.again

    assert again(0.45) > again(0.35)


@pytest.mark.parametrize(
    ("row", "part", "says", "step"),
    [
        (
            "network",
            "readiness",
            "waiting for readiness (poll, select, epoll)",
            "look at what it polls",
        ),
        (
            "network",
            "readiness of sockets",
            "waiting for sockets (poll, select, epoll)",
            "look at the other end of its sockets",
        ),
        (
            "pipe",
            "readiness of pipes",
            "waiting for pipes (poll, select, epoll)",
            "look at the other end of its pipes",
        ),
        (
            "locks",
            "event descriptor",
            "waiting for its own threads (an event descriptor)",
            "look at what its other",
        ),
        ("network", "socket", "on the network", "make fewer round trips"),
        ("sleep", "terminal", "waiting for a terminal", "give it its input beforehand"),
        ("storage-wait", "flushing", "waiting until data is safe on the disk", "flush less often"),
        ("file-io-cpu", "names and metadata", "on the kernel's work on file names", "open, look up"),
        ("file-io-cpu", "reading", "on the kernel's work on files", "use larger blocks"),
        ("storage-wait", "page fault", "waiting for the disk", "read ahead"),
    ],
)
def test_what_most_of_a_category_is_decides_what_is_said_of_it(
    row: str, part: str, says: str, step: str
) -> None:
    said = verdict(ledger({row: 0.9}, parts={row: {part: 0.8}}))
    assert said[0] == f"x spends 90 % of 10.0 s {says} (89–91 %)."
    assert said[-1].startswith(f"Next: {step}")


def test_who_waits_for_a_disk_to_write_is_not_asked_to_read_ahead() -> None:
    counters = {"device_written_bytes": 1e9, "device_read_bytes": 1e6}
    assert "write larger blocks" in verdict(ledger({"storage-wait": 0.9}, counters=counters))[-1]


def test_without_a_share_nothing_leads() -> None:
    assert leading([Share("sleeping", 0.0, 0.0, 1.0)]).of == ()
    assert "no sample shows what it did" in verdict(rows())[0]


def test_the_written_file_says_what_the_sentences_say() -> None:
    found = json.loads(_whole(FEW_SAMPLES, b"{}", Judgement(), None))["verdict"]
    assert found["known"] is False
    assert [share["name"] for share in found["leading"]] == names(answer(FEW_SAMPLES))
    assert found["again"] == answer(FEW_SAMPLES).again
    assert found["says"] == verdict(FEW_SAMPLES)


def test_a_function_stands_in_the_table_with_its_interval() -> None:
    made = ledger({"sleep": 0.5})
    compute = next(row for row in made.categories if row.name == "compute")
    main = Function("main", "list", 0.25, 0.02, 0.49)
    rows = (msgspec.structs.replace(compute, functions=(main,)),)
    lines = table(msgspec.structs.replace(made, categories=rows))
    (said,) = (line.split() for line in lines if "main (list)" in line)
    assert said[2:] == ["25", "%", "2.0–49.0", "%"]


def test_a_function_that_counts_as_several_categories_says_how_much_of_each() -> None:
    made = ledger({"sleep": 0.5})
    both = (Counts("file-io-cpu", 0.044), Counts("pipe", 0.026))
    copy = Symbol("rep_movs", "[kernel]", 0.07, 0.05, 0.09, 0.14, "file-io-cpu", both)
    one = msgspec.structs.replace(
        copy, name="main", categories=(Counts("compute", 0.07), Counts("pipe", 1e-5))
    )
    ((lines, _),) = places(msgspec.structs.replace(made, symbols=(copy, one)), "symbol")
    assert "file-io-cpu 4.4 %, pipe 2.6 %" in lines[1]
    assert "pipe" not in lines[2]
