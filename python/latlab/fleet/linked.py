"""A survey of the links of a Dask cluster: rounds of pairs of hosts, over sockets of their own.

Nothing goes through Dask but what is asked and answered: each host starts a process that serves as
`latlab serve` does, on the address of its worker, and measures towards the others (latlab.fleet.linking).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from latlab.fleet import agent
from latlab.fleet.cluster import ANSWER_S, Cluster, Place, UnansweredError
from latlab.fleet.pairs import Links, Pair, again, confirmed, judged, rounds, without
from latlab.fleet.standings import Failure
from latlab.text import clean

if TYPE_CHECKING:
    from distributed import Client, Future

#: An end of the links that nobody ends, ends itself after so long.
_LIFE_S: Final = 600.0


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
    say: Callable[[str], object] = lambda _: None,
    answer_s: float = ANSWER_S,
    seed: int | None = None,
) -> Links:
    """Measures links between the hosts of a Dask cluster, and names slow hosts and slow links.

    Args:
        client: A client of the cluster; with an asynchronous one the result is to be awaited.
        say: Told what is going on, a line at a time.
        answer_s: Seconds that a host may take to answer at all, and for one pair.
        seed: Of who meets whom; a new one each time by default.

    Returns:
        The survey; hosts and pairs that could not be measured are its `failed`.

    Raises:
        UserError: The scheduler does not list its workers.
    """
    cluster = Cluster(client, {}, _LIFE_S, answer_s, say)
    surveyed: Links = client.sync(_surveyed, cluster, answer_s, random.Random(seed))  # noqa: S311 - decides an order
    return surveyed


async def _surveyed(cluster: Cluster, answer_s: float, dice: random.Random) -> Links:
    await cluster.label_work()
    await cluster.new_places()
    survey = _Survey(cluster, answer_s, secrets.token_hex(32))
    try:
        await survey.open()
        found = await survey.rounds(rounds(list(survey.ends), dice))
        first = judged(found)
        if pairs := again(first, dice):
            cluster.say("measuring again what stands out")
            found = [*without(found, first), *await survey.rounds([[pair] for pair in pairs])]
            first = confirmed(first, judged(found))
    finally:
        await survey.close()
    survey.blame({host for pair in found for host in (pair.a, pair.b)})
    return replace(
        first,
        failed=tuple(Failure(name, reason) for name, reason in sorted(survey.failed.items())),
        broken=tuple((*ends, reason) for ends, reason in sorted(survey.broken.items())),
        notes=tuple(cluster.notes),
    )


class _Survey:
    """The ends of the links, from their start to their end."""

    def __init__(self, cluster: Cluster, answer_s: float, secret: str) -> None:
        self._cluster = cluster
        self._answer_s = answer_s
        self._secret = secret
        self.ends: dict[str, _End] = {}
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
        self.ends[name] = end
        try:
            answer = await self._ask(end, {"bind": place.address, "secret": self._secret})
            end.address = answer["address"]
        except UnansweredError as error:
            self.failed[name] = str(error)

    async def rounds(self, planned: list[list[tuple[str, str]]]) -> list[Pair]:
        """What the pairs of all rounds have measured, those of one round at the same time."""
        found: list[Pair] = []
        for number, pairs in enumerate(planned, 1):
            answers = await asyncio.gather(*(self._pair(a, b) for a, b in pairs))
            found += [pair for pair in answers if pair is not None]
            self._cluster.say(f"round {number} of {len(planned)}: {len(found)} pairs measured")
        return found

    async def _pair(self, a: str, b: str) -> Pair | None:
        if a in self.failed or b in self.failed:
            return None
        ends = self.ends[a], self.ends[b]
        async with contextlib.AsyncExitStack() as held:
            # In one order, whoever measures: pairs do not wait for each other in a circle.
            for machine in sorted({end.place.machine for end in ends}):
                await held.enter_async_context(self._cluster.turns[machine])
            try:
                answer = await self._ask(ends[0], {"towards": ends[1].address})
                return Pair(a, b, answer["rtt_ns"], answer["to"], answer["from"])
            except UnansweredError as error:
                self.broken[a, b] = str(error)
                return None

    def blame(self, reached: set[str]) -> None:
        """Makes broken pairs a failure of their host, where none of its pairs worked."""
        for host in set(self.ends) - reached - set(self.failed):
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
            *(self._ask(end, {"served": True}) for end in self.ends.values()), return_exceptions=True
        )
        for end in self.ends.values():
            if end.lease is not None:
                end.lease.release()
        refused = sum(answer["refused"] for answer in answers if isinstance(answer, dict))
        if refused:
            self._cluster.notes.append(f"{refused:,} requests without the shared secret were refused.")
