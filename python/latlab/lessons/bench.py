"""Where a lesson works: its folder, its clock, its limits, and the list of what could not be done.

Standard library only, as the plain-Python programs are.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from latlab.errors import LatlabError
from latlab.lessons.figures import Cell, Published, Unit
from latlab.lessons.folder import own_folder
from latlab.lessons.model import Missing, Size
from latlab.lessons.processes import last_words
from latlab.text import clean
from latlab.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from latlab.run.run import Run

T = TypeVar("T")
K = TypeVar("K")

#: Why there is no figure of what needs more than the standard library.
PLAIN: Final = "only the plain-Python program was asked for (--plain)"
#: What a lesson leaves free of a disk. Measuring also keeps a twentieth; a lesson writes less, and has to
#: work where 4 GiB are free, also on a large disk.
KEPT_BYTES = 1 << 30
#: Chance that a 95 % interval lies wholly above what it is of, or wholly below.
_EACH_SIDE: Final = 0.025
#: One round has no spread.
_FEWEST_ROUNDS: Final = 2
#: Who waits is told again how far it is after so long.
_SILENT_S: Final = 10.0


class Cannot(Exception):  # noqa: N818 - it is an answer, not an error
    """Something cannot be measured here; the text says why, and what would help."""


@dataclass(frozen=True, slots=True)
class Times:
    """The same work, timed several times: seconds, or what else was counted of it.

    Attributes:
        values: In the order of the rounds; none where it could not be done.
        why: The reason then.
    """

    values: tuple[float, ...] = ()
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def median(self) -> float:
        """The middle one; not a number where there is none."""
        return statistics.median(self.values) if self.values else math.nan

    @property
    def best(self) -> float:
        """The smallest."""
        return min(self.values)

    def cell(self, unit: Unit = "s", *, divide: float = 1.0, published: Published | None = None) -> Cell:
        """As a figure: the median and its interval, of one of `divide` operations."""
        if not self.values:
            return nothing(unit, self.why, published)
        low, high = interval(self.values)
        count = len(self.values)
        return Cell(unit, self.median / divide, low / divide, high / divide, count, published)

    def over(self, other: Times, *, published: Published | None = None) -> Cell:
        """How many times as long as `other`: the ratio of both medians, with the interval of the pairs."""
        if not self.values or not other.values:
            return nothing("ratio", self.why or other.why, published)
        ratio = self.median / other.median
        pairs = [mine / theirs for mine, theirs in zip(self.values, other.values, strict=False)]
        return Cell.within("ratio", ratio, interval(pairs), len(pairs), published)

    def rate(self, amount: float, *, published: Published | None = None) -> Cell:
        """`amount` bytes in this time."""
        if not self.values:
            return nothing("bytes_per_s", self.why, published)
        low, high = interval(self.values)
        count = len(self.values)
        return Cell("bytes_per_s", amount / self.median, amount / high, amount / low, count, published)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the 95 % interval of the median, by ranks; of fewer than nine values the smallest and largest.

    One value that something else disturbed decides nothing then.

    The median lies outside of the k-th smallest and largest of n with the chance of fewer than k heads in n
    throws of a coin, at each side.
    """
    ordered, left_out, chance = sorted(values), 0, 0.5 ** len(values)
    while (chance := chance + math.comb(len(values), left_out + 1) * 0.5 ** len(values)) <= _EACH_SIDE:
        left_out += 1
    return ordered[left_out], ordered[-1 - left_out]


def nothing(unit: Unit = "s", why: str = "", published: Published | None = None) -> Cell:
    """A cell without a figure, and why."""
    return Cell(unit=unit, published=published, why=why)


def times_of(found: Mapping[K, Iterable[float]]) -> dict[K, Times]:
    """The values of each variant."""
    return {name: Times(tuple(values)) for name, values in found.items()}


class Arms(dict[K, Times]):
    """Times by variant; of one that could not be timed, times without values.

    Attributes:
        why: The reason.
    """

    def __init__(self, found: Mapping[K, Times] | None = None, why: str = "") -> None:
        super().__init__(found or {})
        self.why = why

    def __missing__(self, arm: K) -> Times:
        return Times(why=self.why)


#: Of what nobody timed.
NOT_TIMED: Final = Arms[Any]()


class Bench:
    """What a lesson's function is given.

    Attributes:
        size: `small`, `default` or `original`.
        plain: The Rust probe is not run, and the core is not even imported.
        missing: What could not be done, so far.
        run: The run of Rust probes.
        urls: Files of real servers, as the user named them.
        file: A file of the user's that is to be used, where the lesson takes one.
        second: A directory of another disk that is compared, where the lesson takes one.
    """

    def __init__(
        self,
        size: Size = "default",
        *,
        plain: bool = False,
        directory: str | os.PathLike[str] | None = None,
        second: str | os.PathLike[str] | None = None,
        urls: tuple[str, ...] = (),
        file: str | os.PathLike[str] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.urls = urls
        self.size: Size = size
        self.plain = plain
        self.missing: list[Missing] = []
        self.run: Run | None = None
        self.file = None if file is None else Path(file)
        self.second = None if second is None else Path(second)
        self._asked = None if directory is None else Path(directory)
        self._folder: Path | None = None
        self._held = contextlib.ExitStack()
        self._reasons: dict[str, str] = {}
        self._say = say
        self._reported_at = time.perf_counter()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()

    @property
    def folder(self) -> Path:
        """A folder of the lesson's own, empty at first, removed at the end; made when it is first asked for.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            self._folder = self._held.enter_context(own_folder(self.directory))
        return self._folder

    @property
    def directory(self) -> Path:
        """The directory that is measured: as asked, else the user's cache folder, else a temporary one."""
        if self._asked is not None:
            return self._asked
        # A user that the system does not know, as in some containers, has no home.
        with contextlib.suppress(RuntimeError):
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            if os.access(cache, os.W_OK):
                return cache
        return Path(tempfile.gettempdir())

    def tell(self, text: str) -> None:
        """What is being done now, for a waiting user."""
        self._reported_at = time.perf_counter()
        if self._say is not None:
            self._say(text)

    def attempt(self, what: str, work: Callable[[], T], *, reported: bool = True) -> T | None:
        """Does some work; where this machine does not let it, the reason is kept and the rest goes on.

        Args:
            what: What is being measured, for the list of what is missing.
            work: Raises `Cannot`, `OSError`, `MemoryError`, a failed program's or latlab's own error.
            reported: Whether it is said that this is done now.
        """
        if reported:
            self.tell(what)
        try:
            return work()
        except Cannot as error:
            self.lacks(what, str(error))
        except MemoryError:
            self.lacks(what, "there is not enough memory")
        except OSError as error:
            self.lacks(what, reason_of(error))
        except subprocess.TimeoutExpired as error:
            self.lacks(what, f"it took longer than {error.timeout:.0f} s")
        except subprocess.CalledProcessError as error:
            said = last_words(error.stderr)
            self.lacks(what, f"the program ended with {error.returncode}{f': {said}' if said else ''}")
        except (LatlabError, ImportError) as error:
            self.lacks(what, clean(error, most=300))
        return None

    def arms(self, what: str, work: Callable[[], Mapping[K, Times]]) -> Arms[K]:
        """`attempt` of something that times several arms."""
        found = self.attempt(what, work)
        return Arms(found, self.why(what))

    def lacks(self, what: str, why: str) -> None:
        """Keeps what was not measured, and why."""
        self._reasons[what] = why
        self.missing.append(Missing(what, why))

    def keep_why(self, what: str, why: str) -> None:
        """Keeps why a part was not measured, whose whole is named as missing already."""
        self._reasons[what] = why

    def why(self, what: str) -> str:
        """Why that could not be done; empty when it was."""
        return self._reasons.get(what, "")

    def native(self, what: str, only: str, *, profile: str = "quick", **options: Any) -> Run | None:  # noqa: ANN401 - those of measure
        """Runs probes of the measuring core, in its own process; None where that cannot be.

        The run file goes into the lesson's folder and away with it.
        """
        if self.plain:
            self.lacks(what, PLAIN)
            return None

        def work() -> Run:
            from latlab.run.measure import measure  # noqa: PLC0415 - the core is not there everywhere

            with self.scratch() as place:
                return measure(
                    only=only,
                    profile=profile,
                    dir=self.directory,
                    out=place / "native.latlab.jsonl",
                    progress=lambda _: None,
                    **options,
                )

        self.run = self.attempt(what, work) or self.run
        return None if self.why(what) else self.run

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for what is not measured itself: where the disk is measured may be read-only or full.

        Raises:
            OSError: there is no place for it.
        """
        with contextlib.ExitStack() as stack:
            try:
                place = stack.enter_context(own_folder(self.folder))
            except OSError:
                place = stack.enter_context(own_folder(Path(tempfile.gettempdir())))
            yield place

    def room(self, needed: int, place: Path | None = None) -> None:
        """Checks that the disk has room, beyond what is kept free.

        Args:
            needed: Bytes.
            place: On that disk; by default the lesson's folder.

        Raises:
            Cannot: it has not.
            OSError: there is no folder to write in.
        """
        usage = shutil.disk_usage(place or self.folder)
        free = usage.free - KEPT_BYTES
        if free < needed:
            raise Cannot(
                f"the disk of {clean(place or self.directory, most=200)} has no room for"
                f" {format_bytes(needed)}: {format_bytes(usage.free)} are free, of which a lesson "
                f"leaves {format_bytes(KEPT_BYTES)}; name another disk with --dir"
            )

    def times(
        self, arms: Mapping[K, Callable[[], float]], rounds: int, within: float = math.inf
    ) -> dict[K, Times]:
        """Each variant, which returns its seconds, once a round, alternately: see `in_turns`."""
        found: dict[K, list[float]] = {name: [] for name in arms}
        for name in self.turns(arms, rounds, within):
            found[name].append(arms[name]())
        return times_of(found)

    def rounds(
        self,
        arms: Mapping[K, tuple[str, Callable[[], T]]],
        rounds: int,
        within: float = math.inf,
        *,
        reported: bool = False,
    ) -> dict[K, list[T]]:
        """Each variant once a round, alternately, with its name; one that fails has no further round.

        Args:
            arms: What each is, for the list of what is missing, and its work: see `attempt`.
            rounds: How many at most.
            within: Seconds; see `in_turns`.
            reported: Whether to print when a variant begins.
        """
        kept: dict[K, list[T]] = {name: [] for name in arms}
        for name in self.turns(arms, rounds, within):
            if name in kept:
                what, work = arms[name]
                found = self.attempt(what, work, reported=reported and not kept[name])
                if found is None:
                    del kept[name]
                else:
                    kept[name].append(found)
        return kept

    def turns(self, items: Iterable[T], rounds: int, within: float = math.inf) -> Iterator[T]:
        """`in_turns`, and prints the number of the round."""
        kept, begun = list(items), time.perf_counter()
        for number, item in enumerate(in_turns(kept, rounds, within)):
            done, rest = divmod(number, len(kept))
            if done and not rest and time.perf_counter() - self._reported_at > _SILENT_S:
                left = (time.perf_counter() - begun) / done * (rounds - done)
                self.tell(f"round {done + 1} of {rounds}, about {format_seconds(left)} left")
            yield item


def in_turns(items: Iterable[T], rounds: int, within: float = math.inf) -> Iterator[T]:
    """Each once a round, forwards and backwards in turn (A B B A): none always comes second.

    Args:
        items: What takes turns.
        rounds: How many at most.
        within: Seconds. After two rounds none is begun that would end later, at the pace of those before.
    """
    kept, begun = list(items), time.perf_counter()
    for number in range(rounds):
        if number >= _FEWEST_ROUNDS and (time.perf_counter() - begun) * (number + 1) / number > within:
            return
        yield from kept if number % 2 == 0 else reversed(kept)


def counting(work: Callable[[], T], *names: str) -> tuple[T, int | None]:
    """Does some work; and what `getrusage` counts of it meanwhile, None where it is not there."""
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return work(), None

    def counted() -> int:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return sum(int(getattr(used, name)) for name in names)

    before = counted()
    return work(), counted() - before


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def reason_of(error: OSError) -> str:
    """What the system said, and what would help."""
    said = clean(error.strerror or error, most=200)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"the disk is full ({said}): free some space, or name another with --dir"
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return f"the directory cannot be written ({said}): name another with --dir"
    return said
