"""Why a host is slow: what its description and its run say that those of its peers do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from latlab.fleet.host import Class, Host, Key, Value
from latlab.fleet.why import differences
from latlab.run.meanwhile import Meanwhile
from latlab.run.model import Machine, Settings

CLASS = Class((), 0, "", ("quick",))
PEERS = 8


def host(met: Meanwhile | None = None, **machine: Any) -> Host:  # noqa: ANN401 - JSON
    """A host of two CPUs with this description, whose run met this."""
    described = Machine({"cpu": {"logical_cpus": 2}} | machine)
    return Host("node", CLASS, described, Settings(), {}, 0, 1, met)


def why(own: Host, peers: list[Host], probe: str = "cpu.time") -> list[str]:
    """What is said of a host that is slow by a figure of this probe."""
    return list(differences(own, peers, {probe}))


def test_causes_with_one_cure_are_one_line() -> None:
    quota = host(Meanwhile(throttled=0.8), limits={"cgroup": {"cpu_quota": 0.2}})
    peers = [host(Meanwhile(throttled=0.0))] * PEERS
    assert why(quota, peers) == [
        "stopped by a CPU quota: 80 % of the time, peers 0 % of the time; CPU quota: 0.2, peers none: "
        "raise or remove the CPU quota of its cgroup"
    ]


@pytest.mark.parametrize(
    ("met", "peers", "said"),
    [
        (Meanwhile(stolen=0.3), Meanwhile(stolen=0.01), "steal by the hypervisor: 30 % of the time"),
        (Meanwhile(other_cpus=1.5), Meanwhile(other_cpus=0.01), "CPUs that other programs kept busy"),
        (Meanwhile(core_ghz=1.5), Meanwhile(core_ghz=3.0), "core clock: 1.50 GHz, peers 3.00 GHz"),
        # Too little to make a figure slow, or not far more than the peers have; or the better clock.
        (Meanwhile(stolen=0.02), Meanwhile(stolen=0.001), ""),
        (Meanwhile(stolen=0.3), Meanwhile(stolen=0.2), ""),
        (Meanwhile(core_ghz=3.0), Meanwhile(core_ghz=1.5), ""),
        (Meanwhile(), Meanwhile(stolen=0.2), ""),
        (Meanwhile(stolen=0.3), Meanwhile(), ""),
    ],
)
def test_a_quantity_is_a_cause_if_it_matters_and_the_peers_have_far_less(
    met: Meanwhile, peers: Meanwhile, said: str
) -> None:
    found = why(host(met), [host(peers)] * PEERS)
    assert [line.startswith(said) for line in found] == [True] * bool(said)


def test_most_of_the_peers_must_agree() -> None:
    slow, idle, stolen = host(Meanwhile(stolen=0.5)), Meanwhile(stolen=0.0), Meanwhile(stolen=0.4)
    assert why(slow, [host(idle)] * 6 + [host(stolen)] * 2)
    assert not why(slow, [host(idle)] * 5 + [host(stolen)] * 3)
    usual, other = host(cpu={"governor": "performance"}), host(cpu={"governor": "powersave"})
    assert why(other, [usual] * 6 + [host()] * 2)
    assert not why(other, [usual] * 5 + [host()] * 3)


def test_a_cause_is_named_only_for_figures_that_it_makes_slow() -> None:
    limit = {"cgroup": {"disk": {"read_requests_per_s": 50}}}
    own = host(Meanwhile(other_disk_bytes_per_s=5e7), limits=limit, memory={"thp": {"enabled": "never"}})
    peers = [host(Meanwhile(other_disk_bytes_per_s=1e3), memory={"thp": {"enabled": "always"}})] * PEERS
    traffic, limited = why(own, peers, "storage.read.random")
    assert traffic.startswith("traffic of other programs on its disk: 50.0 MB/s, peers 1.00 kB/s: ")
    assert limited == (
        "limit of reads a second: 50, peers none: raise or remove the limits of its cgroup for this disk"
    )
    (pages,) = why(own, peers, "memory.load.dependent")
    assert pages.startswith("transparent huge pages: never, peers always: ")
    assert why(own, peers, "kernel.syscall") == []


def test_a_host_whose_figures_were_disturbed_beside_peers_whose_were_not_has_that_as_its_cause() -> None:
    figures = {
        Key("memory.load.dependent", f"{number} KiB"): Value(1.0, None, "ns", 1) for number in range(10)
    }
    own, quiet, some = (replace(host(), figures=figures, disturbed=count) for count in (9, 1, 4))
    (said,) = why(own, [quiet] * PEERS)
    assert said.startswith("figures that something else on its core, shared cache or memory disturbed: 90 %,")
    assert why(some, [quiet] * PEERS) == why(own, [own] * PEERS) == []


def test_fewer_cpus_are_a_cause_and_others_are_none() -> None:
    peers = [host(limits={"allowed_cpus": [0, 1, 2, 3]})] * PEERS
    (said,) = why(host(limits={"allowed_cpus": [4]}), peers)
    assert said.startswith("CPUs that it may use: 1, peers 4: ")
    assert why(host(limits={"allowed_cpus": [4, 5, 6, 7]}), peers) == []
