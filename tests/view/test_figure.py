"""Arithmetic of figures: a result's range holds whatever its parts can be, and a reason stays a reason."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latlab.run.model import Estimate
from latlab.view.figure import Absent, Figure, Measured, of_estimate

Operation = Callable[[Measured, Figure], Figure]
OPERATIONS: list[Operation] = [operator.add, operator.sub, operator.truediv]
PARTS = st.floats(0.01, 1e6)


def between(values: list[float]) -> Measured:
    low, middle, high = sorted(values)
    return Measured(middle, "ns", (low, high))


@pytest.mark.parametrize("operation", OPERATIONS)
@given(one=st.lists(PARTS, min_size=3, max_size=3), other=st.lists(PARTS, min_size=3, max_size=3))
def test_a_range_holds_the_result_of_any_values_of_its_parts(
    operation: Operation, one: list[float], other: list[float]
) -> None:
    found = operation(between(one), between(other))
    assert isinstance(found, Measured)
    for mine in one:
        for theirs in other:
            inside = operation(Measured(mine, "ns"), Measured(theirs, "ns"))
            assert found.low <= (inside.value or 0.0) <= found.high


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_made_of_an_absent_figure_is_absent_for_its_reason(operation: Operation) -> None:
    missing, one = Absent("it was not measured"), Measured(1.0, "ns")
    assert operation(one, missing) is missing
    assert missing / one is missing
    assert missing + one is missing
    assert missing - one is missing


def test_a_result_is_disturbed_if_a_part_is_and_has_the_fewer_samples() -> None:
    assert Measured(6.0, "ns", samples=30) / Measured(2.0, "ns", samples=20, disturbed=True) == Measured(
        3.0, "ratio", samples=20, disturbed=True
    )


def test_nothing_is_divided_by_what_may_be_zero() -> None:
    assert isinstance(Measured(1.0, "ns") / Measured(0.1, "ns", (-0.1, 0.3)), Absent)


def test_different_units_do_not_go_together() -> None:
    with pytest.raises(TypeError, match="ns and bytes_per_s do not go together"):
        operator.add(Measured(1.0, "ns"), Measured(1.0, "bytes_per_s"))


def test_a_figure_is_written_with_its_range_or_without_it() -> None:
    figure = Measured(1.06, "ns", (1.05, 1.07))
    assert (str(figure), figure.bare) == ("1.06 ns (1.05–1.07 ns)", "1.06 ns")
    assert str(Measured(2e9, "bytes_per_s")) == "2.00 GB/s (measured once)"


@pytest.mark.parametrize("damaged", [None, 0.0, -1.0, 1e300, Estimate(value=-3.0)])
def test_a_number_that_no_machine_has_is_no_figure(damaged: Estimate | float | None) -> None:
    assert isinstance(of_estimate(damaged, "ns"), Absent)


def test_a_range_with_an_impossible_end_is_none() -> None:
    assert of_estimate(Estimate(value=2.0, low=-1.0, high=3.0), "ns") == Measured(2.0, "ns")
    assert of_estimate(Estimate(value=2.0, low=1.0, high=3.0), "ns") == Measured(2.0, "ns", (1.0, 3.0))
