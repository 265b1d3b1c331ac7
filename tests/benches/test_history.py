"""The kept table of change points: what the code finds now, and no less than what Otava finds."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.some import some
from tools import evidence

ROWS = {each["series"]: each for each in evidence.read("history-changes.csv")}
#: Series of these are short: they are searched again.
SHORT = [name for name in ROWS if "200" not in name and "300" not in name]
UNCHANGED = [name for name, each in ROWS.items() if each["changes"] == "0"]
CHANGED = [name for name in ROWS if name not in UNCHANGED]
#: By so many of a hundred, two counts of the same series may differ without saying anything.
CHANCE = 6


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benches"))
        yield importlib.import_module("history")
    del sys.modules["history"]


def numbers(name: str, column: str) -> list[int]:
    return [int(number) for number in ROWS[name][column].split()]


@pytest.mark.parametrize("name", SHORT)
def test_the_kept_table_is_what_the_code_finds(bench: ModuleType, name: str) -> None:
    found = bench.row(name, {"latlab": bench.ours})
    assert {key: str(value) for key, value in found.items()}.items() <= ROWS[name].items()


def test_every_kind_of_series_is_in_the_table(bench: ModuleType) -> None:
    assert list(ROWS) == list(bench.GOLDEN)


def test_no_more_than_one_of_a_hundred_unchanged_series_has_a_change() -> None:
    false = [count for name in some(UNCHANGED, 7) for count in numbers(name, "latlab_false")]
    assert sum(false) <= len(false)


@pytest.mark.parametrize("name", CHANGED)
def test_otava_finds_no_more_at_the_level_at_which_it_is_as_seldom_wrong(name: str) -> None:
    made = int(ROWS[name]["changes"])
    pairs = zip(numbers(name, "latlab_found"), numbers(name, "otava_strict_found"), strict=True)
    assert all(found >= strict - CHANCE * made / 100 for found, strict in pairs)
