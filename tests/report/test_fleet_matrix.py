"""The map of pairs on the page of a survey of links."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import pytest
from tests.fleet.simulated import Simulated, leaving, racks

from latlab.fleet import Links
from latlab.report.fleet_matrix import figure
from latlab.report.fleet_page import document, render


def survey(hosts: int, groups: int) -> Links:
    """A survey, one host and one rack of which are slow."""
    fleet = Simulated(racks(hosts, groups), seed=1)
    fleet.hosts["node2"] = 8.0
    fleet.ways = leaving("rack3", 8.0)
    return fleet.survey()


def domain(spec: dict[str, Any], axis: str) -> list[str]:
    """The names along an axis of the first map."""
    names: list[str] = spec["hconcat"][0]["layer"][0]["encoding"][axis]["scale"]["domain"]
    return names


def test_every_pair_is_there_in_both_directions_and_no_other() -> None:
    found = survey(20, 5)
    drawn = figure(found)
    assert domain(drawn.spec, "x") == domain(drawn.spec, "y") == [f"node{number}" for number in range(20)]
    cells = {(str(a), str(b)): row for a, b, *row in drawn.table.rows}
    pairs = {(own.a, own.b): own for own in found.measured}
    assert len(cells) == 2 * len(pairs)
    for (a, b), own in pairs.items():
        assert cells[a, b] == [1, own.rtt_ns, own.to]
        assert cells[b, a] == [1, own.rtt_ns, own.back]
    assert drawn.title == "Pairs by host"


@pytest.mark.parametrize(
    ("hosts", "groups", "rows", "what"),
    [(4, 1, 4, "host"), (64, 8, 64, "host"), (1000, 50, 50, "group"), (1000, 1, 40, "block of hosts")],
)
def test_a_map_of_many_hosts_is_of_groups_or_of_blocks_and_the_page_stays_small(
    hosts: int, groups: int, rows: int, what: str
) -> None:
    found = survey(hosts, groups)
    drawn = figure(found)
    assert len(domain(drawn.spec, "x")) == rows
    assert drawn.title == f"Pairs by {what}"
    assert sum(int(row[2] or 0) for row in drawn.table.rows) == 2 * len(found.measured)
    assert len(render(found)) < 2e6


def test_hosts_and_groups_are_in_order_as_people_count() -> None:
    names = domain(figure(survey(1000, 50)).spec, "x")
    assert names[:3] == ["rack0", "rack1", "rack2"]
    blocks = domain(figure(survey(1000, 1)).spec, "x")
    assert blocks[:2] == ["node0–node24", "node25–node49"]


def test_what_is_slow_has_a_stronger_colour_in_its_direction_and_lines_separate_groups() -> None:
    fleet = Simulated(racks(60, 10), seed=1)
    fleet.ways = leaving("rack3", 8.0)
    spec = figure(fleet.survey()).spec
    trips, rates = (
        {(row["a"], row["b"]): row["times"] for row in part["data"]["values"]} for part in spec["hconcat"]
    )
    dark = {pair for pair, times in rates.items() if times > 4}
    assert dark == {(a, b) for a, b in rates if fleet.groups[a] == "rack3" != fleet.groups[b]}
    assert max(trips.values()) < 2
    borders = spec["hconcat"][0]["layer"][1]["data"]["values"]
    assert [row["a"] for row in borders] == [f"node{6 * number}" for number in range(1, 10)]


def test_the_page_is_valid_and_has_contention_and_boundaries() -> None:
    page = document(survey(60, 10))
    sections = {own.id: own for own in page.sections}
    assert [*sections] == ["pairs", "boundaries", "hosts", "links", "reasons"]
    (drawn,) = sections["pairs"].figures
    json.dumps(drawn.spec, allow_nan=False)
    alt.HConcatChart.from_dict(drawn.spec, validate=True)
    assert sections["pairs"].sentences[0].startswith("All at once, pairs across groups have ")
    assert sections["boundaries"].listings[0].table.rows[0][:2] == ("rack3", "slow")
