from __future__ import annotations

import msgspec
import pytest

from latlab.notebook import display
from latlab.run.model import Kind
from latlab.run.run import Run

HOSTILE = "</td><script>alert(1)</script>\x1b[2J"


def test_a_run_is_shown_as_its_ladder(run: Run) -> None:
    html = display.run_html(run)
    assert "L1 cache, 48 KiB" in html
    assert "1.06 ns" in html
    assert html.count("<tr>") == 1 + 5 + 17
    assert "<script" not in html


def test_a_run_itself_knows_how_to_be_shown(run: Run) -> None:
    assert run._repr_html_() == display.run_html(run)


def test_a_run_without_levels_says_so(run: Run) -> None:
    empty = Run(run.header, ())
    assert "No level was measured." in display.run_html(empty)


def test_a_record_is_shown_with_its_interval_its_refusals_and_its_proofs(run: Run) -> None:
    html = display.record_html(run.select("memory.load.dependent", kind="batch_mean")[0])
    assert "1.06–1.07 ns" in html
    assert "30 samples, needs 3,688" in html
    assert "single cycle" in html


def test_a_record_that_is_absent_is_shown_with_its_reason(run: Run) -> None:
    assert "give it 40 GB to lift this" in display.record_html(run.select("memory.poke", kind="absent")[0])


def test_many_records_are_shown_as_their_first_ones(run: Run) -> None:
    html = display.records_html(run.records)
    assert f"{len(run.records)} records" in html
    assert "more: .to_pandas() returns all" in html


@pytest.mark.parametrize("kind", ["batch_mean", "absent"])
def test_hostile_strings_are_text(run: Run, kind: Kind) -> None:
    record = run.select("memory.poke", kind=kind)[0]
    point = msgspec.structs.replace(record.point, operation=HOSTILE)
    bad = msgspec.structs.replace(record, probe=HOSTILE, point=point, flags=(HOSTILE,))
    for html in (display.record_html(bad), display.records_html(type(run.records)([bad]))):
        assert "<script" not in html
        assert "\x1b" not in html
