"""Surveys of a simulated cluster of many hosts: who is named, and how often the scheduler is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from tests.fleet import loops
from tests.fleet.files import run_of
from tests.fleet.simulated import Simulated, leaving, racks

from latlab.fleet import agent, links, survey

#: Of a run file: its header, and a footer with the figures of memory.
KEPT = "memory.load.dependent"


class Cluster:
    """What surveys use of a client, over hosts that are simulated; each on a machine of its own."""

    asynchronous = False

    def __init__(self, count: int, slow: dict[str, float]) -> None:
        self.slow = slow
        self.hosts = {f"tcp://10.{n >> 16}.{n >> 8 & 255}.{n & 255}:1": f"node{n}" for n in range(count)}
        self.asked: Counter[str] = Counter()
        self.fleet = Simulated(count, seed=1)
        self.fleet.hosts = slow
        self.scheduler = self
        self.version = loops.run(agent.where())["version"]
        #: Throughput is by this power less than how many pairs are measured at once.
        self.share = 0.0
        self.measuring = 0

    def sync(self, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what it returns
        return loops.run(function(*arguments))

    async def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        self.asked["identity"] += 1
        return {"workers": {worker: {"host": worker[6:-2]} for worker in self.hosts}}

    async def processing(self) -> dict[str, Any]:
        self.asked["processing"] += 1
        return dict.fromkeys(self.hosts, ())

    def submit(self, function: object, *arguments: object, workers: list[str], **more: object) -> Cluster:
        assert function is agent.lease
        assert len(workers) == 1
        self.asked["lease"] += 1
        return self

    def release(self) -> None:
        self.asked["release"] += 1

    async def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401 - as Dask's
        workers: list[str],
        on_error: str,
    ) -> dict[str, Any]:
        (worker,) = workers
        self.asked[function.__name__] += 1
        name = self.hosts[worker]
        if function is agent.where:
            return {worker: {"version": self.version, "name": name, "machine": name, "host": name}}
        if function is agent.measure:
            return {worker: {"packed": packed(name, self.slow.get(name, 1.0))}}
        _, asked, _ = arguments
        if "bind" in asked:
            return {worker: {"address": f"{asked['bind']}:2"}}
        if "served" in asked:
            return {worker: {"refused": 0}}
        self.measuring += 1
        # All that are measured at once have begun.
        await asyncio.sleep(0)
        self.fleet.at_once = self.measuring**self.share
        pair = self.fleet.pair(name, self.hosts[f"tcp://{asked['towards'][:-2]}:1"])
        await asyncio.sleep(0)
        self.measuring -= 1
        return {worker: {"rtt_ns": pair.rtt_ns, "to": pair.to, "from": pair.back}}


def packed(name: str, slow: float) -> bytes:
    """A run file of few figures."""
    text = run_of(name, int(name[4:]), slow, only=KEPT)
    return zstandard.ZstdCompressor().compress(text.encode())


@pytest.mark.slow
@pytest.mark.parametrize("count", [50, 1000])
def test_a_survey_of_many_names_the_slow_ones_and_asks_little_of_the_scheduler(count: int) -> None:
    cluster: Any = Cluster(count, {"node7": 3.0, "node30": 3.0})
    found = survey(cluster)
    assert {own.host.name for own in found.named} == {"node7", "node30"}
    assert len(found.standings) == count
    again = cluster.asked["measure"] - count
    # The two, and what chance finds.
    assert 2 <= again <= 4
    assert cluster.asked == {
        "processing": 1,
        "identity": 2,
        "where": count,
        **dict.fromkeys(("measure", "lease", "release"), count + again),
    }


@pytest.mark.parametrize("count", [50, 1000])
def test_a_survey_of_many_links_asks_each_host_a_few_times(count: int) -> None:
    cluster: Any = Cluster(count, {"node7": 3.0, "node30": 3.0})
    # Data that leaves one rack of 20, or of 5.
    cluster.fleet.groups = racks(count, max(10, count // 20))
    cluster.fleet.ways = leaving("rack4", 6.0)
    found = links(cluster, groups=cluster.fleet.groups, seed=1)
    assert {own.called for own in found.named} == {"node7", "node30", "the rack4 boundary"}
    pairs = 6 * count // 2
    again = cluster.asked["link"] - 2 * count - pairs - 6
    # Three rounds of all hosts, one more for what chance finds.
    assert 3 * count // 2 <= again <= 5 * count // 2
    assert cluster.asked["where"] == cluster.asked["lease"] == count
    assert cluster.asked["identity"] == cluster.asked["processing"] == 1


def test_hosts_are_in_groups_by_their_subnets_and_what_they_share_is_noticed() -> None:
    cluster: Any = Cluster(600, {})
    cluster.share = 0.5
    found = links(cluster, seed=1)
    assert set(found.groups.values()) == {"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"}
    assert found.named == ()
    assert found.contention is not None
    # 300 pairs at once have as little as that.
    assert found.contention.shared
    assert found.contention.throughput.ratio == pytest.approx(300**-0.5, rel=0.2)
