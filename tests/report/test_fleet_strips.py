"""The small charts on the page of a survey of hosts."""

from __future__ import annotations

import random
from dataclasses import replace

import altair as alt
import pytest

from latlab.fleet import Survey
from latlab.fleet.host import HARDWARE, Class, Host, Key, Value
from latlab.fleet.standings import judged
from latlab.report.fleet_page import render
from latlab.report.fleet_strips import figures
from latlab.run.model import Machine, Settings

FIGURES = 13
KEYS = [Key(f"memory.probe{number}", "a point") for number in range(FIGURES)]
NAMES = {key: f"figure {number}" for number, key in enumerate(KEYS)}


def survey(*counts: int, slow: float = 30.0, spread: float = 0.03) -> Survey:
    """A survey of classes of so many hosts; of each the third one is slow by its first two figures."""
    dice = random.Random(1)
    found = []
    for number, count in enumerate(counts):
        own_class = Class((f"CPU {number}",) * len(HARDWARE), 0, "", ("quick",))
        for host in range(count):
            times = [slow if host == 2 and place < 2 else 1.0 for place in range(FIGURES)]
            values = {
                # Of every second figure more is better.
                key: Value(100.0 * dice.lognormvariate(0.0, spread) * own, None, "ns", 1)
                if place % 2 == 0
                else Value(1e9 * dice.lognormvariate(0.0, spread) / own, None, "bytes_per_s", 1)
                for place, (key, own) in enumerate(zip(KEYS, times, strict=True))
            }
            name = f"node{number}-{host}"
            found.append(Host(name, own_class, Machine({}), Settings(), values, 0, 1))
    return judged(found, NAMES)


@pytest.mark.parametrize("count", [4, 64, 1000])
def test_each_figure_is_a_chart_with_a_dot_a_host_in_the_order_of_the_table(count: int) -> None:
    found = survey(count)
    (drawn,) = figures(found)
    alt.ConcatChart.from_dict(drawn.spec, validate=count < 1000)
    assert [own["title"] for own in drawn.spec["concat"]] == [*NAMES.values()]
    assert [row[0] for row in drawn.table.rows] == [own.host.name for own in found.standings]
    for place, own in enumerate(drawn.spec["concat"]):
        rows = own["data"]["values"]
        assert [row["text"].partition(":")[0] for row in rows] == [row[0] for row in drawn.table.rows]
        assert [row["value"] for row in rows] == [row[place + 1] for row in drawn.table.rows]
        heights = [row["y"] for row in rows]
        assert heights == sorted(set(heights))
        assert heights[-1] < own["height"] < 300
        # Of four hosts none has peers.
        assert [row["text"] for row in rows if row["slow"]] == [rows[0]["text"]] * (count > 4)
    assert len(render(found)) < 3e6


def test_an_axis_has_two_ticks_however_close_the_hosts_are() -> None:
    for spread in (0.0001, 0.03, 1.0):
        (drawn,) = figures(survey(20, slow=1.0, spread=spread))
        for own in drawn.spec["concat"]:
            x = own["layer"][1]["encoding"]["x"]
            low, high = x["scale"]["domain"]
            assert high / low >= 4.999
            assert sum(low <= tick <= high for tick in x["axis"]["values"]) >= 2
            assert all(low < row["value"] < high for row in own["data"]["values"])


def test_each_class_has_its_charts_and_a_host_alone_has_none() -> None:
    drawn = list(figures(survey(12, 6, 1)))
    assert [(own.title, len(own.table.rows)) for own in drawn] == [
        ("Figures of class 1", 12),
        ("Figures of class 2", 6),
    ]
    assert drawn[0].alt.startswith("13 figures of 12 hosts. figure 0: ")


def test_a_host_that_lacks_a_figure_has_no_dot_in_its_chart() -> None:
    found = survey(8)
    standings = list(found.standings)
    host = standings[3].host
    kept = {key: own for key, own in host.figures.items() if key != KEYS[4]}
    standings[3] = replace(standings[3], host=replace(host, figures=kept))
    (drawn,) = figures(replace(found, standings=tuple(standings)))
    counts = [len(own["data"]["values"]) for own in drawn.spec["concat"]]
    assert counts == [7 if place == 4 else 8 for place in range(FIGURES)]
    assert drawn.table.rows[3][5] is None
