from __future__ import annotations

from latlab.view.figure import Measured
from latlab.view.table import of_range, table_of

OFTEN, ONCE = Measured(2.0, "ns", (1.0, 3.0)), Measured(5.0, "ns")


def test_a_column_has_a_heading_a_quantity_and_a_value_of_each_item() -> None:
    table = table_of([OFTEN, ONCE], ("one", "ns", lambda figure: figure.value))
    assert [(column.title, column.quantity) for column in table.columns] == [("one", "ns")]
    assert table.rows == ((2.0,), (5.0,))


def test_a_range_is_two_columns_of_which_the_first_says_that_there_is_none() -> None:
    table = table_of([OFTEN, ONCE], *of_range("ns", lambda figure: figure))
    assert [column.title for column in table.columns] == ["95 % from", "95 % to"]
    assert table.rows == ((1.0, 3.0), ("measured once", None))
