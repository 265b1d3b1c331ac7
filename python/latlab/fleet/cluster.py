"""A survey of a Dask cluster: one measurement a host, compared with the others.

    identity() ──► one worker a host ──► latlab.fleet.agent there ──► run files here ──► as `fleet merge`
                        │
                        └── hosts that share a machine measure one after the other

The scheduler is asked once for all workers, and for each host: who it is, its measurement, and a task that
keeps it from being retired as idle. Hosts that stand out are measured again, and named only if they still do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import zstandard

from latlab.errors import RunFileError, UserError
from latlab.fleet import agent
from latlab.fleet.host import damage, hosts, tell_apart
from latlab.fleet.standings import Failure, Survey, confirmed, in_order, judged
from latlab.run.conduct import seconds_of
from latlab.run.settings import make_settings
from latlab.run.store import new_id
from latlab.text import clean

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

#: How long a worker may take to say where it is: Dask gives a connection 30 s, and importing latlab from a
#: busy network file system takes seconds.
ANSWER_S: Final = 45.0
#: What a measurement may take besides its own time: the process, its end, the way back.
EXTRA_S: Final = 60.0
#: Workers of a host that are asked in turn where it is, if one does not answer.
_MOST_ASKED: Final = 2
#: How often workers that joined meanwhile are looked for.
_MOST_LOOKED: Final = 3
_CONNECT_S: Final = 20
#: No run file of a survey is larger.
_MOST_BYTES: Final = 256 << 20


@dataclass(slots=True)
class Place:
    """A host of the cluster.

    Attributes:
        name: As people call it.
        address: Of the host, which distinguishes two of one name.
        worker: The worker that measures there.
        machine: Hosts with the same one take turns.
        reason: Why it has no figures; empty where it has.
        files: Its run files.
    """

    name: str
    address: str
    worker: str
    machine: str = ""
    reason: str = ""
    files: list[Path] = field(default_factory=list)


class UnansweredError(Exception):
    """A worker that did not do what it was asked: why, in words."""


def survey(
    client: Client,
    *,
    profile: str = "quick",
    only: str | None = None,
    budget: float | str | None = None,
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - named as the option is
    folder: str | os.PathLike[str] | None = None,
    say: Callable[[str], object] = lambda _: None,
    answer_s: float = ANSWER_S,
    extra_s: float = EXTRA_S,
) -> Survey:
    """Measures every host of a Dask cluster, and compares each with the others of its class.

    Args:
        client: A client of the cluster; with an asynchronous one the result is to be awaited.
        profile: `quick`, `standard` or `thorough`; see `latlab.measure`, as for the next three.
        only: Globs of probe ids to run.
        budget: Wall time of one measurement instead of the profile's.
        dir: Directory on each host whose file system is measured.
        folder: Where the run files are kept; nowhere by default.
        say: Told what is going on, a line at a time.
        answer_s: Seconds that a worker may take to answer at all.
        extra_s: Seconds that a measurement may take beyond its own time.

    Returns:
        The survey; hosts that could not be measured are its `failed`.

    Raises:
        UserError: The settings are not possible.
    """
    asked: dict[str, object] = {
        "profile": profile,
        "only": only,
        "budget": budget,
        "dir": None if dir is None else os.fspath(dir),
    }
    # A directory is a host's: it is looked for there.
    most_s = seconds_of(make_settings(**asked | {"dir": None})) + extra_s
    cluster = Cluster(client, asked, most_s, answer_s, say)
    with contextlib.ExitStack() as made:
        if folder is None and not client.asynchronous:
            # Removed by this thread: Ctrl-C does not reach that of Dask.
            folder = made.enter_context(tempfile.TemporaryDirectory(prefix="latlab-survey-"))
        surveyed: Survey = client.sync(cluster.surveyed, None if folder is None else Path(folder))
        return surveyed


class Cluster:
    """What surveys of a cluster share: its hosts, and what is asked of them.

    Attributes:
        places: The hosts, by what tells agents that they are different.
        turns: What a host of a machine holds while it measures.
        notes: What is to be said of the survey.
    """

    def __init__(
        self,
        client: Client,
        asked: dict[str, object],
        most_s: float,
        answer_s: float,
        say: Callable[[str], object],
    ) -> None:
        self._client = client
        self._asked = asked
        self._most_s = most_s
        self._answer_s = answer_s
        self.say = say
        self.places: dict[str, Place] = {}
        self._seen: set[str] = set()
        self.turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.notes: list[str] = []
        #: How many hosts a machine has.
        self._sharing: Counter[str] = Counter()
        #: Whether the cluster forbids functions that are no tasks.
        self._only_tasks = False

    async def surveyed(self, folder: Path | None) -> Survey:
        """The whole; run files are kept in a folder, or in a temporary one until the end."""
        if folder is not None:
            found = await self._in(folder)
            files = {file: name for name, own in self.called().items() for file in own.files}
            await asyncio.to_thread(tell_apart, files)
            return found
        with tempfile.TemporaryDirectory(prefix="latlab-survey-") as own:
            return await self._in(Path(own))

    async def _in(self, folder: Path) -> Survey:
        await self.label_work()
        for _ in range(_MOST_LOOKED):
            found = await self.new_places()
            if not found:
                break
            await self._measure(found, folder)
        else:
            self.notes.append("Workers kept joining; the last to join were not measured.")
        first = await asyncio.to_thread(self._judged)
        doubtful = {own.host.name for own in first.standings if own.because}
        again = [own for name, own in self.called().items() if name in doubtful]
        if not again:
            return first
        self.say(f"measuring {len(again)} again that stand out")
        await self._measure(again, folder)
        second = await asyncio.to_thread(self._judged)
        both = confirmed(first.standings, second.standings, lambda own: own.host.name)
        return replace(second, standings=in_order(both))

    async def label_work(self) -> None:
        """Notes that the cluster has other work, which makes figures slower."""
        try:
            processing = await self._client.processing()
        except (OSError, ValueError) as error:
            self.notes.append(f"Whether the cluster was working is not known: {clean(error, most=200)}.")
            return
        busy = [len(keys) for keys in processing.values() if keys]
        if busy:
            text = f"The cluster was working: {sum(busy):,} tasks on {len(busy):,} workers at the beginning."
            self.notes.append(f"{text} Figures may be slower than on an idle one.")
            self.say(text)

    async def new_places(self) -> list[Place]:
        """Hosts that were not known before.

        Raises:
            UserError: The scheduler does not list its workers, and there was no host before.
        """
        try:
            identity = await self._client.scheduler.identity(n_workers=-1)
        except (OSError, ValueError) as error:
            text = f"the scheduler does not list its workers: {clean(error, most=200)}"
            if not self.places:
                raise UserError(text) from None
            self.notes.append(f"At the end {text}.")
            return []
        workers: dict[str, list[str]] = {}
        for worker, about in identity["workers"].items():
            if worker not in self._seen:
                self._seen.add(worker)
                workers.setdefault(about["host"], []).append(worker)
        found = await asyncio.gather(*(self._where(host, own) for host, own in workers.items()))
        new: list[Place] = []
        for key, place in found:
            if key not in self.places:
                self.places[key] = place
                self._sharing[place.machine] += 1
                new.append(place)
        if new:
            self.say(f"hosts: {len(new)}, workers: {sum(map(len, workers.values()))}")
        return new

    async def _where(self, host: str, workers: list[str]) -> tuple[str, Place]:
        """Which host this is, by its first worker that answers."""
        place = Place(host, host, workers[0])
        for worker in workers[:_MOST_ASKED]:
            try:
                here = await self.ask(worker, self._answer_s, agent.where)
            except UnansweredError as error:
                place.reason = place.reason or str(error)
                continue
            place = Place(clean(here["name"], most=60), host, worker, here["machine"])
            ours = (await agent.where())["version"]
            if here["version"] != ours:
                theirs = clean(here["version"], most=60)
                place.reason = f"latlab {theirs} is installed there, {ours} here; install the same"
            return here["host"], place
        return host, place

    async def _measure(self, places: list[Place], folder: Path) -> None:
        """Measures hosts, those of different machines at once."""
        done = 0

        async def one(place: Place) -> None:
            nonlocal done
            if not place.reason:
                try:
                    await self._in_turn(place, folder)
                except Exception as error:
                    reason = str(error) if isinstance(error, UnansweredError) else _words(error)
                    if place.files:
                        self.notes.append(f"{place.name} was not measured a second time: {reason}.")
                    else:
                        place.reason = reason
            done += 1
            self.say(f"{done} of {len(places)}: {place.name}: {place.reason or 'measured'}")

        await asyncio.gather(*map(one, places))

    async def _in_turn(self, place: Place, folder: Path) -> None:
        token = f"latlab-lease-{secrets.token_hex(8)}"
        lease = self.lease(place, token, self._most_s * self._sharing[place.machine])
        try:
            async with self.turns[place.machine]:
                most_s = self._most_s + self._answer_s
                answer = await self.ask(place.worker, most_s, agent.measure, self._asked, self._most_s, token)
            if "failed" in answer:
                raise UnansweredError(clean(answer["failed"], most=300))
            file = folder / f"{new_id()}-{_file_name(place.name)}.latlab.jsonl"
            place.files.append(await asyncio.to_thread(_kept, answer["packed"], file))
        finally:
            if lease is not None:
                lease.release()

    def lease(self, place: Place, token: str, most_s: float) -> Future | None:
        """A task for the time until a host has measured; none where measurements are tasks themselves.

        It would take the thread of the worker that they need.
        """
        if self._only_tasks:
            return None
        return self._client.submit(agent.lease, token, most_s, key=token, **_pinned(place.worker))

    async def ask(
        self, worker: str, most_s: float, function: Callable[..., Awaitable[T]], *what: object
    ) -> T:
        """What an async function returns on a worker; as a task, where the cluster forbids to run others.

        Raises:
            UnansweredError: It does not.
        """
        try:
            async with asyncio.timeout(most_s):
                if not self._only_tasks:
                    try:
                        return await self._run(worker, function, *what)
                    except Exception as error:
                        if "explicitly disallowed" not in str(error):
                            raise
                        self._only_tasks = True
                return await self._submitted(worker, function, *what)
        except TimeoutError:
            raise UnansweredError(f"no answer within {most_s:.0f} s: it hangs, or is overloaded") from None
        except Exception as error:
            raise UnansweredError(_words(error)) from None

    async def _run(self, worker: str, function: Callable[..., Awaitable[T]], *what: object) -> T:
        answers = await self._client.run(function, *what, workers=[worker], on_error="return")
        if isinstance(answers[worker], Exception):
            raise answers[worker]
        answer: T = answers[worker]
        return answer

    async def _submitted(self, worker: str, function: Callable[..., Awaitable[T]], *what: object) -> T:
        future = self._client.submit(function, *what, **_pinned(worker))
        try:
            answer: T = await future
            return answer
        finally:
            future.release()

    def called(self) -> dict[str, Place]:
        """All hosts by name, those of one name with their address or their worker's."""
        called: dict[str, Place] = {}
        names = Counter(own.name for own in self.places.values())
        for own in self.places.values():
            name = own.name if names[own.name] == 1 else f"{own.name} ({own.address})"
            called[f"{own.name} ({own.worker})" if name in called else name] = own
        return called

    def _judged(self) -> Survey:
        """What the last run file of each host says."""
        measured = {own.files[-1]: name for name, own in self.called().items() if own.files}
        try:
            found = hosts(measured, measured)
        except RunFileError:
            for own in self.places.values():
                own.reason = own.reason or (damage(own.files[-1]) if own.files else "")
            measured = {file: name for file, name in measured.items() if not damage(file)}
            found = hosts(measured, measured)
        failed = (Failure(name, own.reason) for name, own in self.called().items() if own.reason)
        survey = judged(*found)
        return replace(
            survey,
            failed=tuple(sorted(failed, key=lambda own: own.name)),
            notes=(*survey.notes, *self.notes),
        )


def _pinned(worker: str) -> dict[str, Any]:
    """How a task is submitted to one worker, once."""
    return {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}


def _kept(packed: bytes, file: Path) -> Path:
    """Writes a run file that came packed.

    Raises:
        UnansweredError: What came is none.
    """
    try:
        file.write_bytes(zstandard.ZstdDecompressor().decompress(packed, max_output_size=_MOST_BYTES))
    except zstandard.ZstdError as error:
        raise UnansweredError(f"what it sent is no run file: {clean(error, most=100)}") from None
    return file


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:60]


def _words(error: Exception) -> str:
    """Why a worker did not answer, for people."""
    said = clean(error, most=200)
    if isinstance(error, ImportError | AttributeError) and "latlab" in said:
        return f"this version of latlab is not installed there ({said})"
    if isinstance(error, OSError) and error.errno is None:
        return f"its worker ended, or cannot be reached ({said})"
    return f"{type(error).__name__}: {said}"


@contextlib.contextmanager
def connected(
    scheduler: str, *, ca_file: str | None = None, cert: str | None = None, key: str | None = None
) -> Iterator[Client]:
    """A client of a scheduler.

    Args:
        scheduler: Its address; without `tcp://` or `tls://` the latter is meant where a file is given.
        ca_file: Certificates of who may sign the scheduler's.
        cert: The client's certificate.
        key: Its key.

    Raises:
        UserError: Dask is not installed, a file is not there, or the scheduler cannot be reached.
    """
    try:
        import distributed  # noqa: PLC0415 - an extra, and it takes a second
    except ImportError as error:
        raise UserError(
            f"a survey of a cluster needs the extra dask ({error}): pip install 'latlab[dask]'"
        ) from None
    tls = {"tls_ca_file": ca_file, "tls_client_cert": cert, "tls_client_key": key}
    given = {name: file for name, file in tls.items() if file is not None}
    for name, file in given.items():
        if not Path(file).is_file():
            option = name.replace("client_", "").replace("_", "-")
            raise UserError(f"--{option}: there is no file {clean(file, most=200)!r}")
    address = scheduler if "://" in scheduler else f"{'tls' if given else 'tcp'}://{scheduler}"
    # What it would log is said in words.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as opened, warnings.catch_warnings():
        # Other versions of Dask and Python there: what is needed here is what every version has.
        warnings.simplefilter("ignore")
        try:
            security = distributed.Security(require_encryption=True, **given) if given else None
            client = distributed.Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
            opened.enter_context(client)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            shown = clean(error, most=200)
            raise UserError(f"no Dask scheduler at {clean(address, most=100)}: {shown}") from None
        yield client
