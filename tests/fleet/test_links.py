"""Links between hosts: who meets whom, who is named in simulated fleets, and what really runs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sys
import urllib.error
import urllib.request
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.calling import called
from tests.fleet.conftest import HOSTS, Fleet, children

from latlab.fleet import links
from latlab.fleet.linked import _Survey
from latlab.fleet.pairs import ROUNDS, Links, Pair, again, confirmed, judged, rounds, without


class Simulated:
    """A fleet whose round trips are 100 µs and whose throughput is 1 GB/s, with a spread of 5 %."""

    def __init__(self, count: int, seed: int) -> None:
        self.names = [f"node{number}" for number in range(count)]
        self.dice = random.Random(seed)
        #: By how much hosts, links and directions are slower.
        self.hosts: dict[str, float] = {}
        self.links: dict[frozenset[str], float] = {}
        self.outwards: dict[str, float] = {}

    def pair(self, a: str, b: str) -> Pair:
        slow = self.hosts.get(a, 1.0) * self.hosts.get(b, 1.0) * self.links.get(frozenset((a, b)), 1.0)
        rtt, to, back = (self.dice.lognormvariate(0.0, 0.05) for _ in range(3))
        return Pair(
            *(a, b, 1e5 * rtt * slow),
            1e9 / slow / self.outwards.get(a, 1.0) * to,
            1e9 / slow / self.outwards.get(b, 1.0) * back,
        )

    def survey(self) -> Links:
        found = [self.pair(a, b) for own in rounds(self.names, self.dice) for a, b in own]
        first = judged(found)
        pairs = again(first, self.dice)
        return confirmed(first, judged([*without(found, first), *(self.pair(a, b) for a, b in pairs)]))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6, 7, 64, 999])
def test_each_host_meets_another_one_in_each_round_and_rests_at_most_once(count: int) -> None:
    names = [str(number) for number in range(count)]
    planned = rounds(names, random.Random(count))
    even = count + count % 2
    assert len(planned) == max(min(ROUNDS, even - 1), 0)
    met = [frozenset(pair) for own in planned for pair in own]
    assert len(set(met)) == len(met)
    assert all(len(pair) == 2 for pair in met)
    for own in planned:
        hosts = [host for pair in own for host in pair]
        assert len(set(hosts)) == len(hosts) == count - count % 2
    seen = [sum(name in pair for pair in met) for name in names]
    assert all(len(planned) - 1 <= own <= len(planned) for own in seen)


def test_small_fleets_meet_all_of_their_pairs() -> None:
    met = {frozenset(pair) for own in rounds(list("abcdef"), random.Random(1)) for pair in own}
    assert met == {frozenset(pair) for pair in combinations("abcdef", 2)}


@pytest.mark.parametrize("count", [6, 20, 64])
def test_a_slow_host_is_named_and_none_of_its_partners(count: int) -> None:
    fleet = Simulated(count, seed=count)
    fleet.hosts["node4"] = 30.0
    found = fleet.survey()
    assert [str(own) for own in found.named] == ["node4"]
    assert {each.name for each in found.named[0].because} == {
        *("round trip", "throughput to it", "throughput from it"),
    }


def test_a_host_that_is_slow_in_one_direction_is_named_with_it() -> None:
    fleet = Simulated(20, seed=5)
    fleet.outwards["node3"] = 10.0
    (named,) = fleet.survey().named
    assert str(named) == "node3"
    assert [each.name for each in named.because] == ["throughput from it"]
    assert named.because[0].ratio == pytest.approx(10.0, rel=0.2)


def test_one_slow_link_is_told_from_a_slow_host() -> None:
    fleet = Simulated(6, seed=3)
    fleet.links[frozenset(("node1", "node2"))] = 10.0
    found = fleet.survey()
    assert [set(own.names) for own in found.named] == [{"node1", "node2"}]
    assert {own.kind for own in found.hosts} == {"ok"}
    assert (len(found.links), found.possible) == (15, 15)


def test_a_link_that_was_not_met_is_not_judged() -> None:
    fleet = Simulated(64, seed=2)
    found = fleet.survey()
    assert (len(found.links), found.possible) == (6 * 32, 64 * 63 // 2)


def test_healthy_fleets_have_nobody_named() -> None:
    named = [str(own) for seed in range(300) for own in Simulated(20, seed).survey().named]
    # One fleet in 1,000 may; of 300 two or more have with a probability of 4 %.
    assert len(named) <= 2


def test_a_thousand_hosts_with_two_slow_ones_are_six_rounds() -> None:
    fleet = Simulated(1000, seed=9)
    fleet.hosts |= {"node10": 2.0, "node500": 2.0}
    found = fleet.survey()
    assert {str(own) for own in found.named} == {"node10", "node500"}
    # Of the slow ones three pairs each were measured again, most of them new.
    assert 6 * 500 <= len(found.links) <= 6 * 500 + 6


def test_four_hosts_have_no_peers() -> None:
    found = Simulated(4, seed=1).survey()
    assert {own.kind for own in found.hosts} == {"no-peers"}
    assert found.named == ()
    assert found.hosts_visible is None


def test_no_figure_is_infinite() -> None:
    fleet = Simulated(6, seed=1)
    fleet.hosts["node0"] = 1e12
    (named,) = fleet.survey().named
    assert all(math.isfinite(each.high) for each in named.because)
    json.dumps(fleet.survey().as_json(), allow_nan=False)


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="its hosts are addresses of Linux's loopback"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def real_ends(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Hosts whose ends of the links are what they are."""
    monkeypatch.setattr("latlab.fleet.agent.command", lambda module: [sys.executable, "-m", module])
    return fleet


@pytest.mark.slow
def test_all_pairs_of_six_are_measured_and_nothing_runs_afterwards(real_ends: Fleet, tmp_path: Path) -> None:
    address = real_ends.cluster.scheduler_address
    before = set(children(os.getpid()))
    done = called(["fleet", "survey", "--scheduler", address, "--links", "--json"], tmp_path, os.environ)
    found = json.loads(done.stdout)
    assert found["pairs"] == {"tested": 15, "possible": 15}
    assert {own["name"] for own in found["hosts"]} == {f"node{number}" for number in range(HOSTS)}
    assert "failed" not in {own["verdict"] for own in (*found["hosts"], *found["links"])}
    assert set(children(os.getpid())) <= before
    shown = called(["fleet", "survey", "--scheduler", address, "--links", "-v"], tmp_path, os.environ)
    assert "6 hosts, 15 of 15 pairs measured." in shown.stdout
    assert "round 5 of 5: 15 pairs measured" in shown.stderr


def test_who_does_not_know_the_secret_is_refused_and_counted(
    real_ends: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []
    real = _Survey.rounds

    async def tried(self: Any, planned: Any) -> Any:  # noqa: ANN401 - the survey's own
        addresses.append(next(iter(self.ends.values())).address)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://{addresses[0]}/bytes/1", timeout=10)
        return await real(self, planned)

    monkeypatch.setattr(_Survey, "rounds", tried)
    found = links(real_ends.client)
    assert any(note.endswith("requests without the shared secret were refused.") for note in found.notes)
    assert not addresses[0].startswith(("0.0.0.0", "[::]"))
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{addresses[0]}/bytes/1", timeout=10)


def test_an_end_that_ends_costs_its_host_only(real_ends: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _Survey.rounds

    async def killed(self: Any, planned: Any) -> Any:  # noqa: ANN401 - the survey's own
        if (end := self.ends["node2"]).address:
            from latlab.fleet.agent import _ends  # noqa: PLC0415 - what a test breaks

            # Rounds come twice: the second time it is gone.
            with contextlib.suppress(ProcessLookupError):
                _ends[end.token][0].kill()
        return await real(self, planned)

    monkeypatch.setattr(_Survey, "rounds", killed)
    found = links(real_ends.client)
    assert [own.name for own in found.failed] == ["node2"]
    assert found.failed[0].reason.startswith("none of its links works: ")
    assert len(found.links) == 10
    assert found.broken == ()
