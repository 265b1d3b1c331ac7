from __future__ import annotations

from dataclasses import replace

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import ladder


def test_the_bars_are_the_levels_and_the_operations_and_not_the_pokes(run: Run) -> None:
    keys = [rung.key for rung in ladder.bars(run)]
    assert keys[:6] == ["L1", "L2", "L3", "RAM", "RAM+TLB", "malloc"]
    assert not any(key.startswith("poke:") for key in keys)


def test_pokes_are_bars_when_nothing_else_was_measured(run: Run) -> None:
    only_pokes = Run(run.header, run.select("memory.poke"))
    assert all(rung.key.startswith("poke:") for rung in ladder.bars(only_pokes))
    assert ladder.bars(only_pokes)


def test_a_level_without_one_latency_is_labelled_as_a_range(run: Run) -> None:
    texts = [ladder.label(rung) for rung in ladder.bars(run)]
    assert "11–15 ns" in texts


def test_the_slow_end_of_window_means_never_looks_like_that_of_single_accesses(run: Run) -> None:
    drawn = named("ladder").chart(run)
    assert drawn is not None
    text = drawn.to_json()
    assert "slow end of window means" in text
    assert "slow end of single accesses" in text


def test_the_words_for_a_screen_reader_hold_the_figures(run: Run) -> None:
    text = named("ladder").alt_text(run)
    assert "L1 cache 1.06 ns" in text
    assert "RAM 113 ns" in text


def test_a_single_bar_without_marks_is_drawn(run: Run) -> None:
    (bar,) = ladder.bars(Run(run.header, run.select("alloc.malloc")))
    shown = ladder.Shown([replace(bar, tail=None, textbook_ns=None)], [], [], legend=False)
    assert ladder.picture(shown).draw() is not None
