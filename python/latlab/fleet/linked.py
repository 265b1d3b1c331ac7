"""A survey of the links of a Dask cluster: rounds of pairs of hosts, over sockets of their own.

Nothing goes through Dask but what is asked and answered: each host starts a process that serves as
`latlab serve` does, on the address of its worker, and measures towards the others (latlab.fleet.linking).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from latlab.errors import UserError
from latlab.fleet import agent
from latlab.fleet.cluster import ANSWER_S, Cluster, Place, UnansweredError
from latlab.fleet.judging import survey
from latlab.fleet.matchings import Matching
from latlab.fleet.pairs import Links, Pair
from latlab.fleet.standings import Failure
from latlab.text import clean, some

if TYPE_CHECKING:
    from distributed import Client, Future

#: An end of the links that nobody ends, ends itself after so long.
_LIFE_S: Final = 600.0
#: A survey takes so long where links allow it. Rounds get this share of the time left when they begin:
#: what stands out is measured again later.
_WHOLE_S: Final = 8.0
_ROUNDS_TIME: Final = 0.6
#: The least and the most for a pair; with more there is nothing to do.
_PAIR_S: Final = (0.1, 0.6)


@dataclass(slots=True)
class _End:
    """A host's end of the links: its name, where it serves, and what keeps its worker."""

    place: Place
    token: str
    address: str = ""
    lease: Future | None = None


def links(
    client: Client,
    *,
    groups: Mapping[str, str] | None = None,
    say: Callable[[str], object] = lambda _: None,
    answer_s: float = ANSWER_S,
    seed: int | None = None,
) -> Links:
    """Measures links between the hosts of a Dask cluster, and names slow boundaries, hosts and links.

    Args:
        client: A client of the cluster; with an asynchronous one the result is to be awaited.
        groups: The rack or switch of hosts, by their names or addresses; by default a host's group is its
            subnet, a /24 of IPv4 or a /64 of IPv6.
        say: Told what is going on, a line at a time.
        answer_s: Seconds that a host may take to answer at all, and for one pair.
        seed: Of who meets whom; a new one each time by default.

    Returns:
        The survey; hosts and pairs that could not be measured are its `failed`.

    Raises:
        UserError: The scheduler does not list its workers, or none of them has a group that was given.
    """
    cluster = Cluster(client, {}, _LIFE_S, answer_s, say)
    dice = random.Random(seed)  # noqa: S311 - decides an order
    surveyed: Links = client.sync(_surveyed, cluster, groups, answer_s, dice)
    return surveyed


async def _surveyed(
    cluster: Cluster, given: Mapping[str, str] | None, answer_s: float, dice: random.Random
) -> Links:
    ends_s = time.monotonic() + _WHOLE_S
    await cluster.label_work()
    await cluster.new_places()
    groups = _groups(cluster, given)
    ends = _Ends(cluster, answer_s, secrets.token_hex(32), ends_s)
    try:
        await ends.open()
        machines = Counter(end.place.machine for end in ends.opened.values())
        turns = {name for name, end in ends.opened.items() if machines[end.place.machine] > 1}
        plan = survey({name: groups[name] for name in ends.opened}, dice, turns)
        wanted = next(plan)
        while True:
            if wanted.why:
                cluster.say(wanted.why)
            try:
                wanted = plan.send(await ends.measure(wanted.rounds))
            except StopIteration as ended:
                found: Links = ended.value
                break
    finally:
        await ends.close()
    ends.blame({host for pair in found.measured for host in (pair.a, pair.b)})
    return replace(
        found,
        failed=tuple(Failure(name, reason) for name, reason in sorted(ends.failed.items())),
        broken=tuple((*names, reason) for names, reason in sorted(ends.broken.items())),
        notes=(*found.notes, *cluster.notes),
    )


def _groups(cluster: Cluster, given: Mapping[str, str] | None) -> dict[str, str]:
    """The group of each host: as given, or its subnet; empty where it has none.

    Raises:
        UserError: None of the hosts is among those whose groups are given.
    """
    called = cluster.called()
    if given is None:
        return {name: _subnet(place.address) for name, place in called.items()}
    found = {
        name: next((given[own] for own in (name, place.name, place.address) if own in given), "")
        for name, place in called.items()
    }
    without = [name for name, group in found.items() if not group]
    if called and len(without) == len(called):
        raise UserError(f"no host of the cluster has a group: its hosts are {some(without)}")
    if without:
        cluster.notes.append(f"Hosts without a group: {some(without)}.")
    return found


def _subnet(address: str) -> str:
    """The subnet of an address, `10.0.3.0/24`; empty where it is a name."""
    try:
        own = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    return str(ipaddress.ip_network((own, 24 if own.version == 4 else 64), strict=False))  # noqa: PLR2004 - IPv4


class _Ends:
    """The ends of the links, from their start to their end.

    Args:
        cluster: Whose hosts they are on.
        answer_s: Seconds in which one answers.
        secret: What they share.
        ends_s: When all is to be measured, on the monotonic clock.
    """

    def __init__(self, cluster: Cluster, answer_s: float, secret: str, ends_s: float) -> None:
        self._cluster = cluster
        self._answer_s = answer_s
        self._secret = secret
        self._ends_s = ends_s
        self.opened: dict[str, _End] = {}
        self.failed: dict[str, str] = {}
        self.broken: dict[tuple[str, str], str] = {}

    async def open(self) -> None:
        """Starts an end on each host."""
        await asyncio.gather(*(self._open(name, place) for name, place in self._cluster.called().items()))

    async def _open(self, name: str, place: Place) -> None:
        if place.reason:
            self.failed[name] = place.reason
            return
        end = _End(place, f"latlab-links-{secrets.token_hex(8)}")
        end.lease = self._cluster.lease(place, end.token, _LIFE_S)
        self.opened[name] = end
        try:
            answer = await self._ask(end, {"bind": place.address, "secret": self._secret})
            end.address = answer["address"]
        except UnansweredError as error:
            self.failed[name] = str(error)

    async def measure(self, planned: list[Matching]) -> list[Pair]:
        """What the pairs of all rounds have measured, those of one round at the same time."""
        found: list[Pair] = []
        most_s = self._pair_s(planned)
        for number, pairs in enumerate(planned, 1):
            answers = await asyncio.gather(*(self._pair(a, b, most_s) for a, b in pairs))
            found += [pair for pair in answers if pair is not None]
            self._cluster.say(f"round {number} of {len(planned)}: {len(found)} pairs measured")
        return found

    def _pair_s(self, planned: list[Matching]) -> float:
        """What a pair may take, s: hosts of one machine measure one after the other, and rounds likewise."""
        least_s, most_s = _PAIR_S
        left_s = self._ends_s - time.monotonic()
        machines = (
            Counter(own for pair in pairs for own in {self.opened[host].place.machine for host in pair})
            for pairs in planned
        )
        turns = sum(max(own.values(), default=0) for own in machines)
        return min(max(_ROUNDS_TIME * left_s / max(turns, 1), least_s), most_s)

    async def _pair(self, a: str, b: str, most_s: float) -> Pair | None:
        if a in self.failed or b in self.failed:
            return None
        ends = self.opened[a], self.opened[b]
        async with contextlib.AsyncExitStack() as held:
            # In one order, whoever measures: pairs do not wait for each other in a circle.
            for machine in sorted({end.place.machine for end in ends}):
                await held.enter_async_context(self._cluster.turns[machine])
            try:
                answer = await self._ask(ends[0], {"towards": ends[1].address, "most_s": most_s})
                return Pair(a, b, answer["rtt_ns"], answer["to"], answer["from"])
            except UnansweredError as error:
                self.broken[a, b] = str(error)
                return None

    def blame(self, reached: set[str]) -> None:
        """Makes broken pairs a failure of their host, where none of its pairs worked."""
        for host in set(self.opened) - reached - set(self.failed):
            if reasons := [reason for ends, reason in self.broken.items() if host in ends]:
                self.failed[host] = f"none of its links works: {reasons[0]}"
        self.broken = {
            ends: reason for ends, reason in self.broken.items() if not set(ends) & set(self.failed)
        }

    async def _ask(self, end: _End, asked: dict[str, Any]) -> dict[str, Any]:
        answer = await self._cluster.ask(
            end.place.worker, self._answer_s, agent.link, end.token, asked, _LIFE_S
        )
        if "failed" in answer:
            raise UnansweredError(clean(answer["failed"], most=300))
        return answer

    async def close(self) -> None:
        """Ends the ends; notes how many requests came without the secret."""
        answers = await asyncio.gather(
            *(self._ask(end, {"served": True}) for end in self.opened.values()), return_exceptions=True
        )
        for end in self.opened.values():
            if end.lease is not None:
                end.lease.release()
        refused = sum(answer["refused"] for answer in answers if isinstance(answer, dict))
        if refused:
            self._cluster.notes.append(f"{refused:,} requests without the shared secret were refused.")
