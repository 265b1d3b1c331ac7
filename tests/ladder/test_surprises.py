"""The three things that a person would tell a colleague: from this run's figures, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from tests.some import some

from latlab.run.ladder import ladder
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.topics.surprises import RULES, surprises
from latlab.view.topic import Surprise

Drop = Callable[[Callable[[Record], bool]], Run]
Change = Callable[..., Run]


def named(run: Run, name: str) -> Surprise | None:
    return next((surprise for surprise in surprises(run, len(RULES)) if surprise.id == name), None)


def text_of(run: Run, name: str) -> str:
    found = named(run, name)
    assert found is not None
    return found.text


def test_three_are_shown_and_the_strongest_comes_first(run: Run) -> None:
    found = surprises(run)
    assert len(found) == 3
    assert [surprise.score for surprise in found] == sorted((s.score for s in found), reverse=True)


def test_every_sentence_has_a_number_with_a_unit_or_a_factor(run: Run) -> None:
    for surprise in some(surprises(run, len(RULES)), 5):
        assert re.search(r"\d", surprise.text), surprise.id


def test_an_empty_run_surprises_nobody(run: Run) -> None:
    assert surprises(Run(run.header, (), None), len(RULES)) == []


def test_a_figure_of_a_disturbance_surprises_nobody(run: Run, changed: Change) -> None:
    def reported(flags: tuple[str, ...]) -> bool:
        probes = {"alloc.nodes", "memory.load.dependent"}
        noisy = changed(lambda record: record.probe in probes, flags=flags)
        return any(named(noisy, name) for name in ("touched-memory-beats-malloc", "translation-costs"))

    assert reported(())
    assert not reported(("disturbed",))


@pytest.mark.parametrize(
    ("name", "probe"),
    [
        ("huge-pages-are-small", "memory.load.dependent"),
        ("last-cache-below-nominal", "memory.load.dependent"),
        ("translation-costs", "memory.load.dependent"),
        ("order-matters", "memory.stride"),
        ("pokes-have-a-tail", "memory.poke"),
        ("streaming-stores", "memory.bandwidth"),
        ("threads-share-memory", "memory.bandwidth"),
        ("clocks-differ", "clock.read"),
        ("touched-memory-beats-malloc", "alloc.nodes"),
        ("faults-have-two-prices", "vm.fault"),
        ("sleeps-are-late", "kernel.timer"),
        ("false-sharing-costs", "memory.false_sharing"),
        ("load-makes-memory-slow", "memory.loaded"),
        ("the-cpu-is-taken-away", "kernel.noise"),
    ],
)
def test_a_rule_speaks_of_its_probe_and_is_silent_without_it(
    run: Run, without: Drop, name: str, probe: str
) -> None:
    assert named(run, name) is not None
    assert named(without(lambda record: record.probe == probe), name) is None


def test_huge_pages_are_small_only_if_the_kernel_had_given_them(run: Run, without: Drop) -> None:
    not_given = without(lambda record: record.point.pages == "huge")
    assert named(not_given, "huge-pages-are-small") is None
    assert "4 KiB in hardware" in text_of(run, "huge-pages-are-small")


def test_the_share_of_translation_follows_from_the_two_ram_rungs(run: Run) -> None:
    found = {rung.key: rung.latency_p50_ns or 0.0 for rung in ladder(run)}
    share = 100 * (1 - found["RAM"] / found["RAM+TLB"])
    assert text_of(run, "translation-costs").startswith(f"{share:.0f} %")


def test_random_order_is_compared_with_sequential_order_of_the_same_array(run: Run) -> None:
    assert text_of(run, "order-matters").startswith("In 256 MiB, an access in random order costs 150 times")


def test_the_tail_of_pokes_leaves_out_the_empty_ones(run: Run) -> None:
    pokes = [r for r in run.records if r.probe == "memory.poke" and r.kind == "per_op"]
    counted = sum(record.samples for record in pokes if record.point.working_set_bytes)
    assert counted == 600_000
    assert "of 600,000" in text_of(run, "pokes-have-a-tail")


def test_what_disturbed_pokes_is_reported_with_its_causes(run: Run, changed: Change) -> None:
    noisy = changed(lambda record: record.probe == "memory.poke", flags=("disturbed",))
    assert text_of(noisy, "pokes-have-a-tail") == text_of(run, "pokes-have-a-tail")


def test_threads_are_compared_beyond_all_caches(run: Run, without: Drop) -> None:
    small_only = without(
        lambda record: record.probe == "memory.bandwidth" and (record.point.working_set_bytes or 0) > 64 << 20
    )
    assert named(small_only, "threads-share-memory") is None
    assert "4 threads" in text_of(run, "threads-share-memory")


def test_a_copied_byte_counts_as_one(run: Run, without: Drop, changed: Change) -> None:
    """A copy's rate counts it twice: as read and as written."""

    def of(operation: str) -> Record:
        records = [r for r in run.records if r.probe == "memory.bandwidth" and r.point.operation == operation]
        single = [record for record in records if (record.point.threads or 1) == 1]
        return max(single, key=lambda record: record.point.working_set_bytes or 0)

    summary = of("copy").summary
    assert summary is not None
    slow = msgspec.structs.replace(summary, p50=(of("read").value or 0.0) / 2)
    slower = changed(lambda record: record == of("copy"), summary=slow)
    assert text_of(slower, "copying-costs").startswith("Copying a byte of RAM costs 4.0 times reading it")


def concluded(probe: str) -> Callable[[Record], bool]:
    return lambda record: record.probe == probe and record.kind == "derived"


def test_a_node_from_touched_memory_is_compared_with_one_from_malloc(run: Run) -> None:
    costs = {r.point.operation: r.value or 0.0 for r in run.select("alloc.nodes", kind="batch_mean")}
    factor = costs["malloc"] / costs["arena-touched"]
    assert f"{factor:.1f} times" in text_of(run, "touched-memory-beats-malloc")


def test_malloc_that_is_not_three_times_as_slow_surprises_nobody(run: Run, changed: Change) -> None:
    malloc = next(r for r in run.select("alloc.nodes", operation="malloc"))
    near = changed(
        lambda r: r.probe == "alloc.nodes" and r.point.operation == "arena-touched",
        summary=malloc.summary,
    )
    assert named(near, "touched-memory-beats-malloc") is None


@pytest.mark.parametrize(
    ("slow_ns", "slow_share", "speaks"), [(5400.0, 0.14, True), (5400.0, 0.05, False), (2500.0, 0.4, False)]
)
def test_two_modes_need_a_tenth_each_and_a_factor_of_two(
    changed: Change, slow_ns: float, slow_share: float, *, speaks: bool
) -> None:
    modes = [{"p50_ns": 1720.0, "share": 1 - slow_share}, {"p50_ns": slow_ns, "share": slow_share}]
    kinds = [{"operation": "first-write", "pages": "4k", "p50_ns": 1730.0, "modes": modes}]
    run = changed(concluded("vm.fault"), findings={"kinds": kinds})
    assert (named(run, "faults-have-two-prices") is not None) is speaks


def test_a_sleep_that_ends_soon_enough_surprises_nobody(run: Run, without: Drop) -> None:
    assert text_of(run, "sleeps-are-late").startswith("A sleep of 1 µs takes 59")
    exact = without(lambda r: r.probe == "kernel.timer" and r.point.operation == "nanosleep")
    assert named(exact, "sleeps-are-late") is None


def test_the_worst_kind_of_false_sharing_is_reported(run: Run, changed: Change) -> None:
    assert "write different variables" in text_of(run, "false-sharing-costs")
    mild = {"operations": [{"operation": "store", "same_line_ns": 0.8, "own_line_ns": 0.3}]}
    assert named(changed(concluded("memory.false_sharing"), findings=mild), "false-sharing-costs") is None


def test_load_is_reported_from_half_as_long_again(changed: Change) -> None:
    curve = {
        "read_percent": 100,
        "threads": 3,
        "idle_ns": 114.0,
        "saturated_ns": 150.0,
        "peak_bytes_per_s": 70e9,
    }
    run = changed(concluded("memory.loaded"), findings={"curves": [curve]})
    assert named(run, "load-makes-memory-slow") is None
    run = changed(concluded("memory.loaded"), findings={"curves": [curve | {"saturated_ns": 342.0}]})
    assert "3.0 times as long" in text_of(run, "load-makes-memory-slow")


@pytest.mark.parametrize(
    "findings", [{}, [], "x", {"curves": 3, "kinds": [3], "operations": [{"same_line_ns": "a"}]}]
)
def test_findings_of_another_shape_surprise_nobody(changed: Change, findings: object) -> None:
    run = changed(lambda record: record.kind == "derived", findings=findings)
    reported = {surprise.id for surprise in surprises(run, len(RULES))}
    assert not reported & {"faults-have-two-prices", "false-sharing-costs", "load-makes-memory-slow"}
