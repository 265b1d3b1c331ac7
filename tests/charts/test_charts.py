"""Every chart: what it draws, what it says instead when it cannot, and what it is made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.charts.schema import against_its_schema
from tests.some import some

from latlab.charts import CHARTS, Chart, named, standalone
from latlab.errors import UserError
from latlab.run.run import Run
from latlab.topics.chapters import TOPICS
from latlab.view.points import MOST_POINTS
from latlab.view.theme import DARK, LIGHT, Palette


def each(chart: Chart) -> str:
    return chart.id


def inline_data(spec: object) -> Iterator[list[dict[str, Any]]]:
    """Every list of rows inside a specification."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key == "values" and isinstance(value, list) and value and isinstance(value[0], dict):
                yield value
            yield from inline_data(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from inline_data(value)


def test_every_file_that_is_a_topic_is_listed_under_its_own_name(root: Path) -> None:
    def files(folder: str, line: str) -> set[str]:
        paths = (root / "python/latlab" / folder).glob("*.py")
        return {path.stem for path in paths if line in path.read_text(encoding="utf-8")}

    unlike = files("topics", "\nTOPIC: ") ^ {topic.id for topic in TOPICS}
    assert files("topics", "\nCHART: ") <= {chart.id for chart in CHARTS}
    assert not unlike, f"a topic has its file's name as its id and stands in TOPICS, but for {unlike}"


def test_every_title_is_a_question() -> None:
    assert all(chart.title.endswith("?") for chart in some(CHARTS))


@pytest.fixture(scope="module")
def specs(run: Run) -> dict[str, dict[str, Any]]:
    """What Vega-Lite is given for each chart, checked against its schema."""
    drawn = {chart.id: chart.chart(run) for chart in CHARTS}
    return {name: against_its_schema(chart) for name, chart in drawn.items() if chart is not None}


@pytest.mark.parametrize("chart", CHARTS, ids=each)
def test_a_run_with_all_probes_has_every_chart_with_words_and_figures(
    chart: Chart, run: Run, specs: dict[str, dict[str, Any]]
) -> None:
    assert chart.id in specs
    assert chart.absence(run) is None
    table = chart.table(run)
    assert table.rows
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert len(chart.alt_text(run)) > 60


@pytest.mark.parametrize("chart", CHARTS, ids=each)
def test_a_run_without_records_has_a_reason_instead_of_a_chart(chart: Chart, empty: Run) -> None:
    assert chart.chart(empty) is None
    assert chart.absence(empty)
    assert chart.table(empty).rows == ()
    assert chart.alt_text(empty)


@pytest.mark.parametrize("chart", CHARTS, ids=each)
def test_no_line_embeds_more_points_than_a_screen_shows(
    chart: Chart, specs: dict[str, dict[str, Any]]
) -> None:
    for rows in some(inline_data(specs[chart.id])):
        lines = Counter((row.get("series"), row.get("kind")) for row in rows)
        assert max(lines.values()) <= MOST_POINTS


@pytest.mark.parametrize("chart", CHARTS, ids=each)
def test_a_chart_names_no_colour_so_that_every_theme_can_draw_it(
    chart: Chart, specs: dict[str, dict[str, Any]]
) -> None:
    spec = {name: part for name, part in specs[chart.id].items() if name != "config"}
    assert "#" not in json.dumps(spec)


def test_an_unknown_chart_is_a_users_mistake_and_lists_what_there_is(run: Run) -> None:
    with pytest.raises(UserError, match="hierarchy"):
        named("hierachy")


def test_a_chart_without_data_says_why_when_it_is_asked_for_alone(empty: Run) -> None:
    with pytest.raises(UserError, match="run ended before"):
        standalone("pokes", empty)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_that_carries_meaning_stands_out_from_its_background(palette: Palette) -> None:
    for colour in palette.series:
        assert contrast(colour, palette.surface) >= 3
    for colour in (palette.ink, palette.muted):
        assert contrast(colour, palette.surface) >= 4.5


def contrast(one: str, other: str) -> float:
    """Contrast ratio as the Web Content Accessibility Guidelines define it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
