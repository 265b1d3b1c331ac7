"""Who meets whom: each host another one each time, inside its group and across."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet.simulated import racks

from latlab.fleet.matchings import ROUNDS, rounds


def check(groups: dict[str, str], seed: int) -> list[tuple[str, str]]:
    """The pairs of all rounds, of which each host has another one each time, and rests once at most."""
    planned = rounds(groups, random.Random(seed))
    count = len(groups)
    assert len(planned) == max(min(ROUNDS, count + count % 2 - 1), 0)
    met = [pair for own in planned for pair in own]
    assert len(set(map(frozenset, met))) == len(met)
    for own in planned:
        hosts = [host for pair in own for host in pair]
        assert len(set(hosts)) == len(hosts) == count - count % 2
    seen = Counter(host for pair in met for host in pair)
    assert all(len(planned) - 1 <= seen[name] <= len(planned) for name in groups)
    return met


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6, 7, 64, 999])
def test_each_host_meets_another_one_in_each_round_and_rests_at_most_once(count: int) -> None:
    check(racks(count, 1), count)


def test_small_fleets_meet_all_of_their_pairs() -> None:
    for count in (1, 3):
        met = {frozenset(pair) for pair in check(racks(6, count), 1)}
        assert met == {frozenset(pair) for pair in combinations(racks(6, count), 2)}


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.integers(0, 1000))
def test_groups_of_any_sizes_are_met_like_this_too(sizes: list[int], seed: int) -> None:
    check(
        {f"{group}-{host}": f"rack{group}" for group, size in enumerate(sizes) for host in range(size)}, seed
    )


@pytest.mark.parametrize(("hosts", "count"), [(20, 2), (20, 5), (45, 3), (64, 8), (99, 9), (1000, 50)])
def test_half_of_the_partners_are_inside_the_group(hosts: int, count: int) -> None:
    groups = racks(hosts, count)
    met = check(groups, hosts)
    inside = Counter(host for pair in met if groups[pair[0]] == groups[pair[1]] for host in pair)
    across = Counter(host for pair in met if groups[pair[0]] != groups[pair[1]] for host in pair)
    assert {inside[host] for host in groups} <= {2, 3, 4}
    assert {across[host] for host in groups} <= {2, 3, 4}
    assert sum(inside[host] == 3 for host in groups) >= 0.5 * hosts


def test_partners_across_are_of_different_groups() -> None:
    groups = racks(200, 20)
    met = check(groups, 1)
    seen = Counter((host, groups[other]) for pair in met for host, other in (pair, pair[::-1]))
    twice = sum(times > 1 for (host, group), times in seen.items() if group != groups[host])
    assert twice <= 4


def test_a_group_of_most_hosts_meets_itself_for_lack_of_others() -> None:
    groups = {f"node{number}": "large" if number < 30 else "small" for number in range(36)}
    met = check(groups, 3)
    across = sum(groups[a] != groups[b] for a, b in met)
    # Six hosts have six partners each at most, half of them across.
    assert 3 * 6 <= across <= 6 * 6
