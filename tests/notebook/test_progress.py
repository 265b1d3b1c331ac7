from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from latlab.notebook.progress import CellProgress, in_this_cell
from latlab.run.events import Died, End, Progress


class Cell:
    """An output that remembers what it was made to show."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def update(self, obj: object) -> None:
        self.shown.append(obj)


def progress(probe: str = "memory.poke", fraction: float = 0.25) -> Progress:
    return Progress(
        probe=probe, point="1 GB, read", unit="ns", elapsed_s=3.0, left_s=9.0, fraction=fraction, p50=186.4
    )


def test_the_cell_shows_what_is_measured_how_it_looks_and_how_long_it_takes() -> None:
    cell = Cell()
    CellProgress(cell)(progress())
    text = cell.shown[-1]._repr_html_()
    assert "memory.poke · 1 GB, read · p50 186 ns so far · at most 9.0 s left" in text
    assert 'value="0.250"' in text


def test_a_flood_of_events_does_not_become_a_flood_of_messages() -> None:
    cell = Cell()
    listener = CellProgress(cell)
    for _ in range(1000):
        listener(progress())
    assert len(cell.shown) < 1000


def test_the_last_line_says_how_it_ended() -> None:
    cell = Cell()
    listener = CellProgress(cell)
    listener(End(stopped_by="completed"))
    listener.close()
    assert repr(cell.shown[-1]) == "measured (completed)"


def test_an_interrupted_cell_says_so() -> None:
    cell = Cell()
    listener = CellProgress(cell)
    listener(progress())
    listener.close()
    assert "interrupted" in repr(cell.shown[-1])


def test_the_death_of_the_measuring_process_stays_visible() -> None:
    cell = Cell()
    listener = CellProgress(cell)
    listener(Died(probe="memory.poke", point="10 GB", text="out of memory", restarts=True))
    listener.close()
    assert "out of memory" in repr(cell.shown[-1])


def test_hostile_names_are_text() -> None:
    cell = Cell()
    CellProgress(cell)(progress(probe="<script>alert(1)</script>\x1b[2J", fraction=7.0))
    text = cell.shown[-1]._repr_html_()
    assert "<script" not in text
    assert "\x1b" not in text
    assert 'value="1.000"' in text


def test_outside_of_a_notebook_there_is_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert in_this_cell() is None
    terminal = types.SimpleNamespace(get_ipython=types.SimpleNamespace)
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert in_this_cell() is None


def test_in_a_notebooks_kernel_the_cell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell()
    shown = types.SimpleNamespace(display=lambda obj, display_id: cell)
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    listener = in_this_cell()
    assert listener is not None
    listener.close()
    assert cell.shown
