from __future__ import annotations

from latlab.view.figure import Absent, Measured
from latlab.view.table import Column, Main, of_figures


def test_the_range_follows_the_main_figure_and_samples_and_doubt_end_the_row() -> None:
    table = of_figures(
        (Column("what"), Main("one", "ns"), Column("slow", "ns")),
        [("a", Measured(2.0, "ns", (1.0, 3.0), samples=30), Measured(9.0, "ns")), ("b", BUSY, Absent("few"))],
    )
    heads = ["what", "one", "95 % from", "95 % to", "slow", "samples", "disturbed"]
    assert [column.title for column in table.columns] == heads
    assert table.rows == (
        ("a", 2.0, 1.0, 3.0, 9.0, 30, "no"),
        ("b", 5.0, "measured once", None, None, 7, "yes"),
    )


def test_a_table_without_a_main_figure_has_its_columns_alone() -> None:
    assert of_figures((Column("what"), Column("one", "ns")), [("a", BUSY)]).rows == (("a", 5.0),)


BUSY = Measured(5.0, "ns", samples=7, disturbed=True)
