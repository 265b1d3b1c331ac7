"""Ranges by what jobs took that were predicted and run, and the file that keeps them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from latlab.errors import UserError
from latlab.predict import kept
from latlab.predict.kept import LEAST_HALF, Outcome, calibration, conformal
from latlab.predict.model import Range
from latlab.run.machine import Machine


def outcome(kind: str, error: float, half: float = 0.2, machine: str = "here", most: str = "") -> Outcome:
    return Outcome(
        source="calibrate",
        kind=kind,
        job="read 1 GB",
        predicted=10.0,
        low=8.0,
        high=12.0,
        half=half,
        actual=10.0 * math.exp(error),
        bytes={"reading": 1e9},
        most=most or kind,
        machine=machine,
    )


def test_so_many_kinds_promise_no_more_than_n_of_n_plus_one() -> None:
    assert conformal([1.0, 3.0, 2.0]) == (3.0, 0.75)
    assert conformal([float(each) for each in range(1, 20)]) == (18.0, 0.9)


@pytest.mark.parametrize("kinds", [9, 19, 30])
def test_another_kind_lies_within_as_often_as_promised(kinds: int) -> None:
    dice = np.random.default_rng(kinds)
    held = 0
    for _ in range(1000):
        *own, new = dice.standard_t(3, kinds + 1)
        held += abs(new) <= conformal([abs(each) for each in own])[0]
    level = conformal([0.0] * kinds)[1]
    assert held / 1000 >= level - 3 * math.sqrt(level * (1 - level) / 1000)


def test_repeats_of_a_kind_are_one_kind() -> None:
    assert calibration([outcome("same", 0.1)] * 50) is None
    found = calibration([outcome(str(kind), 0.1) for kind in range(12)])
    assert found is not None
    assert found.kinds == 12
    assert found.factor == pytest.approx(0.5)
    assert found.level == pytest.approx(0.9)
    assert found.moved == {"reading": 1e9}


def test_a_narrow_range_is_widened_from_what_lies_between_runs_and_jobs() -> None:
    found = calibration([outcome(str(kind), 0.3, half=0.0) for kind in range(12)])
    assert found is not None
    wide = found.widened(Range(10.0, 9.99, 10.01))
    assert math.log(wide.high / 10.0) == pytest.approx(found.factor * LEAST_HALF) == pytest.approx(0.3)


def test_outcomes_are_kept_by_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    here, there = Machine({"cpu": {"model_name": "One"}}), Machine({"cpu": {"model_name": "Two"}})
    own, other = kept.identity(here), kept.identity(there)
    assert kept.outcomes() == []
    kept.keep([outcome("old", 0.1, machine=own), outcome("theirs", 0.1, machine=other)])
    file = kept.keep([outcome("new", 0.1, machine=own)], instead_of="calibrate")
    with file.open("a") as opened:
        opened.write("{damaged\n")
    assert [each.kind for each in kept.outcomes(here)] == ["new"]
    assert [each.kind for each in kept.outcomes(there)] == ["theirs"]


def test_outcomes_that_several_keep_at_once_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names = [f"kind-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda name: kept.keep([outcome(name, 0.1)]), names))) == len(names)
    assert sorted(each.kind for each in kept.outcomes()) == sorted(names)


def test_a_folder_that_cannot_be_written_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "path", lambda **_: Path("/proc/nothing"))
    with pytest.raises(UserError, match="cannot write"):
        kept.keep([outcome("any", 0.1)])


def test_a_part_that_several_kinds_took_longer_for_is_corrected_and_scored_by_the_others() -> None:
    slow = [outcome(f"read {each}", 0.6, most="reading") for each in range(3)]
    found = calibration([*slow, *(outcome(str(kind), 0.0) for kind in range(9))])
    assert found is not None
    # Three errors of 0.6 and one more kind without any; each is scored by the two others.
    assert found.off["reading"] == pytest.approx(0.45)
    assert found.factor == pytest.approx((0.6 - 0.4) / LEAST_HALF)
