from __future__ import annotations

import dataclasses
import json
from itertools import combinations

import msgspec
import pytest
from tests.charts.schema import against_its_schema
from tests.some import some

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import core_to_core


def machine_of(run: Run, cpus: int) -> Run:
    """As many CPUs, two sockets: within one 60 ns, between them 240 ns."""
    one = run.select("memory.core_to_core", kind="batch_mean")[0]
    assert one.summary is not None
    records = []
    for first, second in combinations(range(cpus), 2):
        cost = 60.0 if (first < cpus / 2) == (second < cpus / 2) else 240.0
        point = msgspec.structs.replace(one.point, from_cpu=first, to_cpu=second)
        summary = msgspec.structs.replace(one.summary, p50=cost, intervals={"p50": (cost, cost)})
        records.append(msgspec.structs.replace(one, point=point, summary=summary, flags=()))
    return Run(run.header, records)


def test_every_pair_is_there_once_and_drawn_on_both_sides(run: Run) -> None:
    for own in some(core_to_core.pairs(run).values()):
        assert len(own) == 6
        assert core_to_core.cpus(own) == [0, 1, 2, 3]


def test_a_disturbed_pair_is_marked(run: Run) -> None:
    doubted = [pair for pair in core_to_core.pairs(run)["compare and swap"] if pair.disturbed]
    assert [(pair.first, pair.second) for pair in doubted] == [("1", "3")]
    assert "1 disturbed" in named("core_to_core").alt_text(run)


@pytest.mark.parametrize("cpus", [2, 32, 33, 192])
def test_a_map_of_many_cpus_joins_neighbours_and_stays_small(run: Run, cpus: int) -> None:
    many = machine_of(run, cpus)
    (own,) = core_to_core.pairs(many).values()
    drawn, names = core_to_core.joined(own)
    assert len(names) <= 32
    assert {pair.first for pair in drawn} | {pair.second for pair in drawn} <= set(names)
    drawing = named("core_to_core").chart(many)
    assert drawing is not None
    assert len(json.dumps(against_its_schema(drawing))) < 120_000


def test_joined_neighbours_keep_what_sets_the_sockets_apart(run: Run) -> None:
    (own,) = core_to_core.pairs(machine_of(run, 64)).values()
    drawn, names = core_to_core.joined(own)
    assert names[0] == "0–1"
    assert {pair.value for pair in drawn} == {60.0, 240.0}


@pytest.mark.parametrize(("of_four", "doubted"), [(2, False), (3, True), (4, True)])
def test_a_cell_is_doubted_when_most_of_its_pairs_are(run: Run, of_four: int, *, doubted: bool) -> None:
    (own,) = core_to_core.pairs(machine_of(run, 64)).values()
    some_of = [
        dataclasses.replace(pair, disturbed=2 * (int(pair.first) % 2) + int(pair.second) % 2 < of_four)
        for pair in own
    ]
    cells = [pair for pair in core_to_core.joined(some_of)[0] if pair.first != pair.second]
    assert {pair.disturbed for pair in some(cells)} == {doubted}
