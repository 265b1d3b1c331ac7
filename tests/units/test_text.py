from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latlab.text import clean, cut_apart, natural


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("AMD EPYC 9B45 (Zen 5) – µs ±3", "AMD EPYC 9B45 (Zen 5) – µs ±3"),
        ("日本語 кириллица हिन्दी", "日本語 кириллица हिन्दी"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\tc\rd\u2028e", "a b c d e"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\u2066x\u2069\u200bz\ufeff\u00ad", "\\u2066x\\u2069\\u200bz\\ufeff\\xad"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 4),
        ("", ""),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    assert clean("x" * 20, most=10) == "x" * 9 + "…"
    assert len(clean("x" * 10**6)) == 10_000


def test_anything_can_be_cleaned() -> None:
    assert clean(3) == "3"
    assert clean(None) == "None"
    assert clean(ValueError("a\nb")) == "a b"


@given(st.text(alphabet=st.characters(), max_size=100))
def test_cleaned_text_is_one_printable_line_and_cleaning_it_again_changes_nothing(raw: str) -> None:
    shown = clean(raw)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    shown.encode()
    assert clean(shown) == shown


def test_numbers_within_names_sort_by_their_size() -> None:
    names = ["node10", "node9", "a", "node9b2", "10", "node" + "9" * 30]
    assert sorted(names, key=natural) == ["10", "a", "node9", "node9b2", "node10", "node" + "9" * 30]


def test_two_labels_are_cut_where_they_differ() -> None:
    assert cut_apart(("before", "after"), 9) == ("before", "after")
    assert cut_apart(("before-the-update", "after-the-update"), 9) == ("before-th", "after-the")
    assert cut_apart(("2026-11-28T103549-gyk", "2026-11-28T104746-23d"), 9) == ("03549-gyk", "04746-23d")
