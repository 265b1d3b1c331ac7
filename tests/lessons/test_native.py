"""The native arm's figures as a lesson shows them."""

from __future__ import annotations

from latlab.lessons.native import cell_of
from latlab.run.model import Record, Summary


def poked(summary: Summary) -> Record:
    return Record(
        probe="memory.poke",
        method=1,
        unit="ns",
        kind="per_op",
        stopped_by="planned",
        samples=8,
        summary=summary,
    )


def test_a_figure_has_its_interval() -> None:
    cell = cell_of(poked(Summary(p50=2_000.0, intervals={"p50": (1_500.0, 3_000.0)})))
    assert cell.shown == "2.00 µs (1.50 µs – 3.00 µs)"


def test_what_was_measured_once_has_no_interval_of_no_width() -> None:
    cell = cell_of(poked(Summary(p50=2_000.0)))
    assert (cell.low, cell.high) == (None, None)
    assert cell.shown == "2.00 µs"
    assert "measured once" in cell.why
