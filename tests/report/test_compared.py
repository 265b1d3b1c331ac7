"""The page of a comparison: what it says first, and that what is missing is never called the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.calling import called
from tests.compare.conftest import Made, made
from tests.compare.test_tails import five
from tests.report import poison

from latlab.compare import Side, compare, words
from latlab.report import compared, html
from latlab.report.document import Document, Section
from latlab.run.model import Record
from latlab.run.run import Run

__all__ = ["made"]

Change = Callable[[Record], float]


def slower_disk(record: Record) -> float:
    return 1.6 if record.probe == "storage.sync" else 1.0


def without(run: Run, probe: str) -> Run:
    return Run(run.header, [record for record in run.records if record.probe != probe], run.footer)


def page(a: list[Run], b: list[Run]) -> Document:
    return compared.document(compare(Side("before", tuple(a)), Side("after", tuple(b))))


def section(document: Document, name: str) -> Section:
    return next(own for own in document.sections if own.id == name)


@pytest.fixture
def changed(made: Made) -> Document:
    """The disk syncs slower, and one side has no round trips."""
    a = [made(seed) for seed in range(5)]
    b = [without(made(seed, change=slower_disk), "network.roundtrip") for seed in range(5, 10)]
    return page(a, b)


def test_the_verdict_is_the_title_and_what_changed_comes_first(made: Made, changed: Document) -> None:
    assert changed.title.startswith("1 of 11 headline figures changed.")
    first = section(changed, "headline-table").listings[0].table
    assert first.rows[0][0] == "disk, durable 4 KiB write"
    assert first.rows[0][2] == "changed"
    others = section(changed, "others")
    assert "storage.sync: append, fdatasync" in {row[0] for row in others.figures[0].table.rows}
    assert {row[2] for row in others.figures[0].table.rows} == {"changed"}


def test_no_data_is_said_and_is_never_no_difference(changed: Document) -> None:
    table = section(changed, "headline-table").listings[0].table
    (row,) = (row for row in table.rows if row[0] == "round trip on loopback")
    assert row[1] is None
    assert row[2] == "not comparable: point: only in before"
    assert row[4] == "no data"
    picture = json.dumps(section(changed, "headlines").figures[0].spec)
    assert "no data in after" in picture
    chart = section(changed, "chart-network_roundtrip")
    assert not chart.figures
    assert chart.absence.startswith("no data in after: ")
    assert "network.roundtrip" in section(changed, "not-comparable").listings[0].table.rows[0][2]  # type: ignore[operator]


def test_both_sides_have_the_same_colour_in_every_chart(changed: Document) -> None:
    drawn = [own for own in changed.sections if own.id.startswith("chart-") and own.figures]
    assert len(drawn) > 5
    for own in drawn:
        domains = [
            part["scale"]["domain"] for part in _parts(own.figures[0].spec, "color") if "scale" in part
        ]
        assert domains, own.id
        assert all(domain == ["before", "after"] for domain in domains), own.id


def _parts(node: object, name: str) -> list[dict[str, dict[str, object]]]:
    if isinstance(node, list):
        return [part for each in node for part in _parts(each, name)]
    if not isinstance(node, dict):
        return []
    own = [node[name]] if name in node else []
    return [*own, *(part for each in node.values() for part in _parts(each, name))]


def test_every_probe_and_every_figure_are_on_the_page(made: Made) -> None:
    found = compare(Side("a", (made(1),)), Side("b", (made(2),)))
    document = compared.document(found)
    probes = {own.id for own in document.sections if own.id.startswith("probe-")}
    assert probes == {f"probe-{each.probe}".replace(".", "-") for each in found.figures}
    assert words.verdict(found) == document.title


def test_causes_of_slow_operations_are_in_a_table_each(made: Made) -> None:
    document = page(five(made, 0, 20), five(made, 5, 120, 3.0))
    (listing,) = section(document, "tails").listings
    assert listing.title.endswith(": 1.00 ms or longer, in a million")
    cause = listing.table.rows[1]
    assert (cause[0], cause[4]) == ("timer tick", "changed")


def test_machines_that_differ_are_said_with_the_field(made: Made) -> None:
    other = made(2)
    plain = msgspec.to_builtins(dict(other.header.machine))
    plain["cpu"]["model_name"] = "Another CPU"
    header = msgspec.structs.replace(other.header, machine=type(other.header.machine)(plain))
    document = page([made(1)], [Run(header, other.records, other.footer)])
    assert document.title == "Not comparable: no figure was measured the same way on both sides."
    (notice,) = section(document, "headlines").notices
    assert "CPU: AMD EPYC against Another CPU" in notice.text
    assert section(document, "not-comparable").listings[0].table.rows[0][0] == notice.text


def test_a_page_of_ten_runs_is_one_file_of_two_megabytes_at_most(changed: Document) -> None:
    text = html.render(changed)
    assert len(text.encode()) <= 2_000_000
    assert "http://" not in text.partition("<script")[0]


def test_names_of_strangers_do_nothing(made: Made) -> None:
    hostile = poison.HOSTILE
    found = compare(Side(f"a {hostile}", (made(1),)), Side(f"b {hostile}", (made(2),)))
    text = html.render(compared.document(found))
    assert "<script>alert" not in text
    assert "\x1b" not in text


def test_the_command_writes_the_page_and_says_so(made: Made, tmp_path: Path) -> None:
    files = [str(made(seed).save(tmp_path / f"{seed}.latlab.jsonl")) for seed in (1, 2)]
    plain = {"HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    reported = called(["compare", *files, "--html", "page.html"], tmp_path, plain)
    assert (reported.returncode, reported.stderr) == (0, "wrote page.html\n")
    assert reported.stdout.startswith("Nothing demonstrably changed")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    wrong = called(["compare", *files, "--html", "page.pdf"], tmp_path, plain)
    assert wrong.returncode == 2
    assert "use a name that ends in .html" in wrong.stderr
    assert not (tmp_path / "page.pdf").exists()
