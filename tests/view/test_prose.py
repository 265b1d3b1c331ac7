from __future__ import annotations

import pytest

from latlab.view.figure import Absent, Measured
from latlab.view.prose import Prose

TEXT = """
    A load takes {{ idle }} ({{ how }}),
    or {{ busy.bare }}.

    It climbs at {{ knee }}.
"""
IDLE, BUSY = Measured(100.0, "ns", (99.0, 101.0)), Measured(200.0, "ns", (150.0, 250.0))


def test_a_sentence_without_its_figure_is_not_said() -> None:
    found = Prose(TEXT, idle=IDLE, busy=BUSY, how="alone", knee=Absent("too few points"))
    assert found.sentences == ("A load takes 100 ns (99.0–101 ns) (alone), or 200 ns.",)


def test_every_sentence_is_said_in_its_order() -> None:
    found = Prose(TEXT, idle=IDLE, busy=BUSY, how="alone", knee=Measured(1e9, "bytes_per_s"))
    assert [text.partition(" ")[0] for text in found.sentences] == ["A", "It"]


def test_words_of_a_run_file_are_no_places() -> None:
    found = Prose("{{ how }}", how="{{ idle }}")
    assert found.sentences == ("{{ idle }}",)


def test_a_place_without_a_value_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="idle"):
        _ = Prose("{{ idle }}").sentences
