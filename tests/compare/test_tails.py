"""The slow operations behind a p99 that changed: which cause grew, and when that cannot be said."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from tests.compare.conftest import Made

from latlab.compare import Comparison, Side, compare
from latlab.compare.tails import Tail
from latlab.run.model import Record, TailCauses, TailSample
from latlab.run.run import Run

PROBE, BLOCK = "storage.read.random", 4096


def poisson(dice: random.Random, mean: float) -> int:
    """Knuth's product of uniforms."""
    count, product = -1, 1.0
    while product > 2.718281828 ** -min(mean, 500):
        count, product = count + 1, product * dice.random()
    return count


def is_asked(record: Record) -> bool:
    point = record.point
    return record.probe == PROBE and point.block_bytes == BLOCK and point.queue_depth == 1


def with_tail(
    run: Run,
    counts: dict[str, int],
    p99: float = 1.0,
    *,
    level: str | None = "tracepoints",
    threshold: float = 1e6,
    samples: int = 100_000,
) -> Run:
    """The run with so many slow reads of each cause, all of 2 ms, and another p99."""

    def own(record: Record) -> Record:
        summary = record.summary
        if not is_asked(record) or summary is None:
            return record
        tail = [
            TailSample(at_ns=0.0, value=2e6, cause=cause)
            for cause, count in counts.items()
            for _ in range(count)
        ]
        return msgspec.structs.replace(
            record,
            summary=msgspec.structs.replace(summary, p99=1e5 * p99),
            samples=samples,
            tail=tuple(tail),
            tail_threshold=threshold,
            tail_dropped=0,
            tail_causes=level and TailCauses(level=level, threshold_ns=threshold, causes=()),
        )

    return Run(run.header, [own(record) for record in run.records], run.footer)


def compared(a: list[Run], b: list[Run], kept: list[Run] | None = None) -> Comparison:
    return compare(Side("A", tuple(a)), Side("B", tuple(b)), kept=kept or ())


def only(found: Comparison) -> Tail:
    (tail,) = (tail for tail in found.tails if tail.figure.probe == PROBE)
    return tail


def five(made: Made, first: int, ticks: float, p99: float = 1.0, **more: object) -> list[Run]:
    dice = random.Random(first)
    return [
        with_tail(
            made(seed),
            {"timer-tick": poisson(dice, ticks), "waiting": poisson(dice, 60)},
            p99 * dice.lognormvariate(0, 0.02),
            **more,  # type: ignore[arg-type]
        )
        for seed in range(first, first + 5)
    ]


def test_the_cause_that_grew_is_named_and_no_other(made: Made) -> None:
    tail = only(compared(five(made, 0, 20), five(made, 5, 120, 3.0)))
    kinds = {each.name: each.kind for each in tail.causes}
    assert kinds["timer tick"] == "changed"
    assert kinds["waiting for an answer"] != "changed"
    assert tail.whole is not None
    assert tail.whole.kind == "changed"
    tick = tail.causes[0]
    assert tick.a == pytest.approx(200, rel=0.3)
    assert tick.b == pytest.approx(1200, rel=0.3)
    assert tick.low < tick.b / tick.a < tick.high
    assert tail.words.startswith("1.00 ms or longer: ")
    assert " times). Grew: timer tick " in tail.words
    assert "Fell" not in tail.words


def test_a_p99_that_did_not_change_has_no_row(made: Made) -> None:
    assert compared(five(made, 0, 20), five(made, 5, 120)).tails == ()


def test_a_p99_may_change_where_no_cause_demonstrably_did(made: Made) -> None:
    tail = only(compared(five(made, 0, 20), five(made, 5, 22, 3.0)))
    assert {each.kind for each in tail.causes} <= {"cannot-tell", "same"}
    assert "Grew" not in tail.words


def test_of_one_run_a_side_a_count_alone_says_little_and_kept_runs_say_more(made: Made) -> None:
    a, b = five(made, 0, 60)[:1], five(made, 5, 300, 9.0)[:1]
    near = five(made, 10, 60)
    assert only(compared(a, b, near)).causes[0].kind == "changed"
    # Without them the rates of one machine are taken to differ as they were found to.
    beyond = five(made, 5, 300, 1e6)[:1]
    assert {each.kind for each in only(compared(a, beyond)).causes} == {"cannot-tell"}


def test_causes_never_grow_by_chance_more_often_than_it_is_said(made: Made) -> None:
    false = 0
    for round_ in range(40):
        first = 100 + 10 * round_
        found = compared(five(made, first, 40), five(made, first + 5, 40, 3.0))
        false += any(each.kind == "changed" for each in only(found).causes)
    assert false <= 5


@pytest.mark.parametrize(
    ("level", "why"),
    [
        (None, "causes were not looked for in B"),
        ("counters", "evidence: tracepoints against counters"),
    ],
)
def test_causes_that_were_not_looked_for_alike_are_not_comparable(
    made: Made, level: str | None, why: str
) -> None:
    tail = only(compared(five(made, 0, 20), five(made, 5, 120, 3.0, level=level)))
    assert (tail.why, tail.whole, tail.causes) == (why, None, ())
    assert tail.words == f"not comparable: {why}."


def test_only_what_every_run_kept_is_counted(made: Made) -> None:
    # Below the second side's threshold the first side's operations would count alone.
    tail = only(compared(five(made, 0, 20), five(made, 5, 20, 3.0, threshold=3e6)))
    assert tail.least_ns == 3e6
    assert tail.whole is not None
    assert (tail.whole.a, tail.whole.b) == (0.0, 0.0)


def test_json_has_the_rates_and_their_verdicts(made: Made) -> None:
    found = json.loads(json.dumps(compared(five(made, 0, 20), five(made, 5, 120, 3.0)).as_json()))
    (tail,) = (each for each in found["tails"] if each["probe"] == PROBE)
    assert tail["per"] == "in a million"
    assert tail["whole"]["cause"] is None
    assert tail["causes"][0]["cause"] == "timer tick"
    assert tail["causes"][0]["ratio_low"] > 1
