"""Links between hosts: who is named in simulated fleets, and what really runs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.calling import called
from tests.fleet.conftest import HOSTS, Fleet, children
from tests.fleet.simulated import Simulated, leaving, racks

from latlab.cli.terminal.link_lines import link_lines
from latlab.cli.terminal.screen import Screen
from latlab.errors import UserError
from latlab.fleet import linking, links
from latlab.fleet.cluster import Place
from latlab.fleet.judging import survey
from latlab.fleet.linked import _End, _Ends, _subnet
from latlab.fleet.matchings import Matching

#: An end of the links that measures for as short as it can.
SHORT_END = """
from latlab.fleet import linking
linking._TRIPS_S, linking._TRANSFER_S = 0.02, 0.002
linking.main()
"""


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


@pytest.mark.parametrize("count", [1, 5])
def test_healthy_fleets_have_nobody_named(count: int) -> None:
    surveys = (Simulated(racks(20, count), seed, lasting=True).survey() for seed in range(300))
    # One fleet in 1,000 may; of 300 two or more have with a probability of 4 %.
    assert sum(bool(own.named) for own in surveys) <= 2


def test_racks_that_are_far_from_each_other_name_nobody() -> None:
    fleet = Simulated(racks(40, 2), seed=4)
    fleet.trips = lambda one, other: 1.0 if one == other else 5.0
    fleet.ways = lambda one, other: 1.0 if one == other else 4.0
    found = fleet.survey()
    assert found.named == ()
    assert not [own for own in found.tested if own.because]
    assert found.boundaries == ()


@pytest.mark.parametrize(("hosts", "count"), [(24, 6), (100, 20), (200, 10)])
@pytest.mark.parametrize("direction", ["from", "to"])
def test_a_slow_uplink_is_named_with_its_direction_and_no_host_or_link_for_it(
    hosts: int, count: int, direction: str
) -> None:
    fleet = Simulated(racks(hosts, count), seed=hosts)
    slow = leaving("rack3", 10.0)
    fleet.ways = slow if direction == "from" else lambda one, other: slow(other, one)
    found = fleet.survey()
    assert [own.names for own in found.named] == [("rack3",)]
    assert [own.name for own in found.named[0].because] == [f"throughput {direction} it"]
    assert found.named[0].because[0].ratio == pytest.approx(10.0, rel=0.2)
    assert not [own for own in found.tested if own.kind == "suspect"]
    (line, *_) = link_lines(found, Screen(width=120))
    assert line.text.startswith(f"The rack3 boundary is slow: throughput {direction} it: ")


@pytest.mark.parametrize(("hosts", "count"), [(48, 6), (100, 20), (400, 40)])
def test_a_slow_boundary_of_two_groups_is_named_and_neither_of_them(hosts: int, count: int) -> None:
    fleet = Simulated(racks(hosts, count), seed=hosts)
    fleet.trips = lambda one, other: 8.0 if {one, other} == {"rack1", "rack3"} else 1.0
    found = fleet.survey()
    if not any({fleet.groups[own.a], fleet.groups[own.b]} == {"rack1", "rack3"} for own in found.measured):
        # With many groups nobody may have met across it.
        assert found.named == ()
        return
    assert [own.names for own in found.named] == [("rack1", "rack3")]
    assert [own.name for own in found.named[0].because] == ["round trip"]
    assert {own.kind for own in (*found.hosts, *found.links)} == {"ok"}


def test_a_large_slow_group_has_no_small_ones_named_whose_pairs_lead_to_it() -> None:
    sizes = [12, 20, 8, 8, 8, 4, 1]
    groups = {f"{group}-{host}": f"rack{group}" for group, size in enumerate(sizes) for host in range(size)}
    for seed in range(10):
        fleet = Simulated(groups, seed)
        fleet.ways = leaving("rack1", 12.0)
        assert [own.called for own in fleet.survey().named] == ["the rack1 boundary"]


def test_a_slow_network_inside_a_group_is_named() -> None:
    fleet = Simulated(racks(80, 8), seed=6)
    fleet.trips = lambda one, other: 6.0 if one == other == "rack2" else 1.0
    found = fleet.survey()
    assert [own.called for own in found.named] == ["the network inside rack2"]
    assert {own.kind for own in (*found.hosts, *found.links)} == {"ok"}


@pytest.mark.parametrize("host", ["node17", "node40"], ids=["in the rack", "elsewhere"])
def test_a_slow_host_is_found_beside_a_slow_boundary(host: str) -> None:
    fleet = Simulated(racks(60, 10), seed=8)
    fleet.ways = leaving("rack2", 8.0)
    fleet.hosts[host] = 4.0
    assert fleet.groups["node17"] == "rack2"
    found = fleet.survey()
    assert {own.called for own in found.named} == {"the rack2 boundary", host}


@pytest.mark.parametrize("count", [2, 4, 5, 20])
def test_a_slow_host_in_a_good_rack_is_no_boundary(count: int) -> None:
    for seed in range(5):
        fleet = Simulated(racks(60, count), seed)
        fleet.hosts["node7"] = 5.0
        assert [str(own) for own in fleet.survey().named] == ["node7"]


def test_hosts_of_a_slow_rack_are_not_named_where_it_has_no_peers() -> None:
    fleet = Simulated(racks(32, 4), seed=9)
    fleet.ways = leaving("rack3", 10.0)
    found = fleet.survey()
    assert [own for own in found.named if own.what != "boundary"] == []
    assert "No boundary" in "\n".join(line.text for line in link_lines(found, Screen(width=120)))


def test_two_slow_hosts_of_a_thousand_are_six_rounds_and_a_few_more() -> None:
    fleet = Simulated(racks(1000, 50), seed=9)
    fleet.hosts |= {"node10": 2.0, "node500": 2.0}
    found = fleet.survey()
    assert {str(own) for own in found.named} == {"node10", "node500"}
    assert 6 * 500 <= len(found.links) <= (6 + 4) * 500


def test_what_is_measured_again_is_measured_while_the_others_are_busy() -> None:
    fleet = Simulated(20, seed=11)
    fleet.hosts["node4"] = 30.0
    asked: list[list[Matching]] = []
    plan = survey(fleet.groups, random.Random(1))
    wanted = next(plan)
    with contextlib.suppress(StopIteration):
        while True:
            asked.append(wanted.rounds)
            wanted = plan.send([fleet.pair(a, b) for own in wanted.rounds for a, b in own])
    first, again, alone = asked
    assert [len(own) for own in first] == [10] * 6
    assert [len(own) for own in again] == [10] * 3
    assert all(any("node4" in pair for pair in own) for own in again)
    assert [len(own) for own in alone] == [1] * 6
    assert len({host for own in alone for pair in own for host in pair}) == 12
    assert all("node4" not in pair for own in alone for pair in own)


def test_what_pairs_lose_when_all_are_measured_at_once_is_shown() -> None:
    fleet = Simulated(racks(40, 5), seed=12)
    fleet.at_once = 3.0
    found = fleet.survey()
    assert found.named == ()
    own = found.as_json()["contention"]
    assert own["pairs"] == 6
    assert own["low"] <= own["throughput"] <= own["high"]
    assert own["throughput"] == pytest.approx(1 / 3, rel=0.1)
    assert own["round_trip"]["ratio"] == pytest.approx(1.0, rel=0.1)
    said = "\n".join(line.text for line in link_lines(found, Screen(width=400)))
    assert "All at once, pairs across groups have 3" in said
    assert "they share something that limits them" in said
    calm = Simulated(40, seed=12).survey()
    said = "\n".join(line.text for line in link_lines(calm, Screen(width=400)))
    assert "nothing that they share limits them" in said


def test_hosts_of_one_machine_have_no_all_at_once() -> None:
    fleet = Simulated(8, seed=13)
    plan = survey(fleet.groups, fleet.dice, set(fleet.groups))
    wanted = next(plan)
    with pytest.raises(StopIteration) as ended:
        plan.send([fleet.pair(a, b) for own in wanted.rounds for a, b in own])
    found = ended.value.value
    assert found.as_json()["contention"] is None
    assert found.notes == ("Hosts that share a machine took turns, so contention was not measured.",)


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("10.0.3.7", "10.0.3.0/24"),
        ("2001:db8:1:2:3::5", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("node1.example", ""),
    ],
)
def test_the_group_of_an_address_is_its_subnet(address: str, group: str) -> None:
    assert _subnet(address) == group


def test_a_host_without_a_group_is_judged_like_the_others() -> None:
    fleet = Simulated(racks(60, 10), seed=14)
    fleet.groups = fleet.groups | {f"node{number}": "" for number in range(50, 60)}
    fleet.hosts["node55"] = 5.0
    found = fleet.survey()
    assert [str(own) for own in found.named] == ["node55"]
    assert not any("" in own.names for own in found.boundaries)


def test_four_hosts_have_no_peers() -> None:
    found = Simulated(4, seed=1).survey()
    assert {own.kind for own in found.hosts} == {"no-peers"}
    assert found.named == ()
    assert found.visible.keys() <= {"link"}


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
    """Hosts whose ends of the links are what they are, but for a tenth of the time."""
    monkeypatch.setattr("latlab.fleet.agent.command", lambda _: [sys.executable, "-c", SHORT_END])
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
    real = _Ends.measure

    async def tried(self: Any, planned: Any) -> Any:  # noqa: ANN401 - the survey's own
        addresses.append(next(iter(self.opened.values())).address)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://{addresses[0]}/bytes/1", timeout=60)
        return await real(self, planned)

    monkeypatch.setattr(_Ends, "measure", tried)
    found = links(real_ends.client)
    assert any(note.endswith("requests without the shared secret were refused.") for note in found.notes)
    assert not addresses[0].startswith(("0.0.0.0", "[::]"))
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{addresses[0]}/bytes/1", timeout=60)


def test_an_end_that_ends_costs_its_host_only(real_ends: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _Ends.measure

    async def killed(self: Any, planned: Any) -> Any:  # noqa: ANN401 - the survey's own
        if (end := self.opened["node2"]).address:
            from latlab.fleet.agent import _ends  # noqa: PLC0415 - what a test breaks

            # Rounds come twice: the second time it is gone.
            with contextlib.suppress(ProcessLookupError):
                _ends[end.token][0].kill()
        return await real(self, planned)

    monkeypatch.setattr(_Ends, "measure", killed)
    found = links(real_ends.client)
    assert [own.name for own in found.failed] == ["node2"]
    assert found.failed[0].reason.startswith("none of its links works: ")
    assert len(found.links) == 10
    assert found.broken == ()


@pytest.mark.parametrize(("machines", "rounds", "shares"), [(6, 5, 5), (1, 5, 15), (6, 100, 100)])
def test_pairs_get_their_share_of_the_time_that_is_left(machines: int, rounds: int, shares: int) -> None:
    ends = _Ends(None, 1.0, "", time.monotonic() + 8.0)  # type: ignore[arg-type]
    hosts = [f"node{number}" for number in range(6)]
    ends.opened = {
        host: _End(Place(host, host, host, str(number % machines)), "") for number, host in enumerate(hosts)
    }
    planned = [list(zip(hosts[::2], hosts[1::2], strict=True))] * rounds
    expected = min(max(0.6 * 8.0 / shares, 0.1), 0.6)
    assert ends._pair_s(planned) == pytest.approx(expected, rel=0.05)


class Paced(linking.Client):
    """A connection on which nothing is sent, and everything takes as long as it takes at a rate."""

    def __init__(self, rate: float) -> None:
        self.sizes: list[int] = []
        self._rate = rate

    def _took_ns(self, size: int, *, upload: bool) -> int:
        self.sizes.append(size)
        return round(size / self._rate * 1e9)


@pytest.mark.parametrize("rate", [1e4, 25e6, 1e9, 1e12])
def test_transfers_grow_until_they_are_long_and_are_repeated_if_there_is_time(rate: float) -> None:
    for most_s, repeats in ((0.0, 1), (1e6, 2)):
        client = Paced(rate)
        assert client.rate(1e6, most_s, upload=True) == pytest.approx(rate, rel=1e-4)
        assert client.sizes.count(client.sizes[-1]) == 1 + repeats
        assert len(client.sizes) - repeats <= 7
        assert client.sizes[-1] / rate >= 0.02 or client.sizes[-1] == 256 << 20


def test_groups_are_subnets_or_as_given(real_ends: Fleet) -> None:
    found = links(real_ends.client)
    assert set(found.groups.values()) == {"127.0.0.0/24"}
    assert {own["group"] for own in found.as_json()["hosts"]} == {"127.0.0.0/24"}
    given = {"node0": "a", "node1": "a", "127.0.0.4": "b", "node3": "b", "elsewhere": "c"}
    found = links(real_ends.client, groups=given)
    assert [found.groups[f"node{number}"] for number in range(HOSTS)] == ["a", "a", "b", "b", "", ""]
    assert "Hosts without a group: node4 and node5." in found.notes
    with pytest.raises(UserError, match="no host of the cluster has a group: its hosts are node0, "):
        links(real_ends.client, groups={"elsewhere": "c"})
