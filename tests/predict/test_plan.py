"""Several jobs: one after the other, or at once."""

from __future__ import annotations

import pytest
from tests.golden.cases import FILES

from latlab.predict import Options, Step
from latlab.predict.cases import Known
from latlab.predict.job import Job, parse
from latlab.predict.place import Limits
from latlab.predict.plan import predict_plan
from latlab.predict.work import predict
from latlab.run.run import load

KNOWN = Known(load(FILES["standard"]), Limits(20 << 30, 2 << 30))


def job(*words: str, **options: object) -> Job:
    return parse(words, Options(**options), lambda _: (0, 0))  # type: ignore[arg-type]


COLD, CALLS = job("read", "3GB", cache="cold"), job("syscalls", "30000000")


def seconds(*jobs: Job) -> list[float]:
    return [predict(own, KNOWN).branches[0].range.middle for own in jobs]


def test_steps_add() -> None:
    (only,) = predict_plan([Step((COLD,)), Step((CALLS,))], KNOWN, 2).branches
    assert only.range.middle == pytest.approx(sum(seconds(COLD, CALLS)))


def test_what_needs_different_things_overlaps() -> None:
    (only,) = predict_plan([Step((COLD, CALLS), at_once=True)], KNOWN, 2).branches
    assert only.range.middle == pytest.approx(max(seconds(COLD, CALLS)))


def test_two_jobs_share_one_disk_and_one_cpu() -> None:
    (disk,) = predict_plan([Step((COLD, COLD), at_once=True)], KNOWN, 2).branches
    (alone,) = seconds(COLD)
    assert alone < disk.range.middle <= 2 * alone
    (one,) = predict_plan([Step((CALLS, CALLS), at_once=True)], KNOWN, 1).branches
    (two,) = predict_plan([Step((CALLS, CALLS), at_once=True)], KNOWN, 2).branches
    assert one.range.middle == pytest.approx(2 * two.range.middle)


def test_the_page_cache_holds_what_all_of_them_read_or_nothing() -> None:
    found = predict_plan([Step((job("read", "3GB"),)), Step((CALLS,))], KNOWN, 2)
    cached, not_cached = found.branches
    assert "page cache" in cached.when
    assert cached.range.middle < not_cached.range.middle


def test_a_step_that_cannot_be_answered_is_named() -> None:
    found = predict_plan([Step((COLD, job("requests", "10")))], KNOWN, 2)
    assert found.refused is not None
    assert found.refused.why.startswith("requests 10: the distance")
