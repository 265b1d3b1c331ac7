"""Where a lesson works: its folder, its clock, its limits, and the list of what could not be done.

Standard library only, as the plain arms are.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from latlab.errors import LatlabError
from latlab.lessons.model import Cell, Missing, Published, Size, Unit
from latlab.text import clean
from latlab.units import format_bytes

if TYPE_CHECKING:
    from latlab.run.run import Run

T = TypeVar("T")

PREFIX = "latlab-lesson-"
#: What a lesson leaves free of a disk. Measuring also keeps a twentieth; a lesson writes less, and has to
#: work where 4 GiB are free, also on a large disk.
KEPT_BYTES = 1 << 30
_YOUNG_S = 60.0


class Cannot(Exception):  # noqa: N818 - it is an answer, not an error
    """Something cannot be measured here; the text says why, and what would help."""


@dataclass(frozen=True, slots=True)
class Times:
    """The same work, timed several times: seconds."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        """The smallest."""
        return min(self.values)

    def cell(self, *, divide: float = 1.0, published: Published | None = None, best: bool = False) -> Cell:
        """As a figure in seconds.

        Args:
            divide: By how many operations.
            published: The document's figure for the same.
            best: The smallest instead of the median, where the document gives that.
        """
        return Cell(
            unit="s",
            value=(self.best if best else self.median) / divide,
            low=min(self.values) / divide,
            high=max(self.values) / divide,
            repeats=len(self.values),
            published=published,
        )

    def over(self, other: Times, *, published: Published | None = None) -> Cell:
        """How many times as long as `other`: the ratio of both medians; the spread is that of the pairs."""
        ratio = self.median / other.median
        pairs = [mine / theirs for mine, theirs in zip(self.values, other.values, strict=False)]
        return Cell(
            unit="ratio",
            value=ratio,
            low=min(ratio, *pairs),
            high=max(ratio, *pairs),
            repeats=len(pairs),
            published=published,
        )

    def rate(self, amount: float, *, published: Published | None = None) -> Cell:
        """`amount` bytes in this time."""
        return Cell(
            unit="bytes_per_s",
            value=amount / self.median,
            low=amount / max(self.values),
            high=amount / min(self.values),
            repeats=len(self.values),
            published=published,
        )


def nothing(unit: Unit = "s", why: str = "", published: Published | None = None) -> Cell:
    """A cell without a figure, and why."""
    return Cell(unit=unit, published=published, why=why)


class Bench:
    """What a lesson's function is given.

    Attributes:
        size: `small`, `default` or `original`.
        plain: The native arm is not run, and the core is not even imported.
        missing: What could not be done, so far.
        run: The native arm's run.
    """

    def __init__(
        self,
        size: Size = "default",
        *,
        plain: bool = False,
        directory: str | os.PathLike[str] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.size: Size = size
        self.plain = plain
        self.missing: list[Missing] = []
        self.run: Run | None = None
        self._asked = None if directory is None else Path(directory)
        self._folder: Path | None = None
        self._lock: int | None = None
        self._reasons: dict[str, str] = {}
        self._say = say

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    @property
    def folder(self) -> Path:
        """A folder of the lesson's own, empty at first, removed at the end; made when it is first asked for.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            place = self.directory
            sweep(place)
            self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            self._lock = _locked(self._folder)
        return self._folder

    @property
    def directory(self) -> Path:
        """The directory that is measured: as asked, else the user's cache folder, else a temporary one."""
        if self._asked is not None:
            return self._asked
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache if os.access(cache, os.W_OK) else Path(tempfile.gettempdir())

    def tell(self, text: str) -> None:
        """What is being done now, for who waits."""
        if self._say is not None:
            self._say(text)

    def attempt(self, what: str, work: Callable[[], T]) -> T | None:
        """Does some work; where this machine does not let it, the reason is kept and the rest goes on.

        Args:
            what: What is being measured, for the list of what is missing.
            work: Raises `Cannot`, `OSError`, `MemoryError`, a failed program's or latlab's own error.
        """
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
            told = (error.stderr or b"") if isinstance(error.stderr, bytes) else (error.stderr or "").encode()
            last = clean(told.decode("utf-8", "replace").strip().rpartition("\n")[2], most=200)
            self.lacks(what, f"the program ended with {error.returncode}{f': {last}' if last else ''}")
        except (LatlabError, ImportError) as error:
            self.lacks(what, clean(error, most=300))
        return None

    def lacks(self, what: str, why: str) -> None:
        """Keeps what was not measured, and why."""
        self._reasons[what] = why
        self.missing.append(Missing(what, why))

    def why(self, what: str) -> str:
        """Why that could not be done; empty when it was."""
        return self._reasons.get(what, "")

    def native(self, what: str, only: str, *, profile: str = "quick", **options: Any) -> Run | None:  # noqa: ANN401 - those of measure
        """Runs probes of the measuring core, in its own process; None where that cannot be.

        The run file goes into the lesson's folder and away with it.
        """
        if self.plain:
            self.lacks(what, "only the plain-Python arm was asked for (--plain)")
            return None

        def work() -> Run:
            from latlab.run.conduct import measure  # noqa: PLC0415 - the core is not there everywhere

            with self._place() as place:
                return measure(
                    only=only,
                    profile=profile,
                    dir=self.directory,
                    out=Path(place) / "native.latlab.jsonl",
                    progress=_silently,
                    **options,
                )

        self.run = self.attempt(what, work) or self.run
        return None if self.why(what) else self.run

    def _place(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for a run file: where the disk is measured may be read-only or full."""
        try:
            return tempfile.TemporaryDirectory(dir=self.folder)
        except OSError:
            return tempfile.TemporaryDirectory(prefix=PREFIX)

    def room(self, needed: int) -> None:
        """Checks that the disk has room, beyond what is kept free.

        Raises:
            Cannot: it has not.
            OSError: there is no folder to write in.
        """
        usage = shutil.disk_usage(self.folder)
        free = usage.free - KEPT_BYTES
        if free < needed:
            raise Cannot(
                f"the disk has no room for {format_bytes(needed)}: {format_bytes(usage.free)} are free, and"
                f" {format_bytes(KEPT_BYTES)} of them are left alone; name another disk with --dir"
            )

    def times(self, arms: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Times]:
        """Each arm once a round, forwards and backwards in turn (A B B A): none always runs second.

        Args:
            arms: Each returns the seconds that its work took.
            rounds: How many.
        """
        names = list(arms)
        found: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds):
            for name in names if number % 2 == 0 else reversed(names):
                found[name].append(arms[name]())
        return {name: Times(tuple(values)) for name, values in found.items()}


def _silently(event: object) -> None:
    """What the native arm tells while it runs: the lesson says what it does itself."""
    del event


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def available_memory() -> int | None:
    """Bytes that this process may still take without swapping; None where nobody says."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with contextlib.suppress(OSError, ValueError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
            found.append(max(int(limit) - used, 0))
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - Unix only

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            used_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            found.append(max(soft - used_pages * os.sysconf("SC_PAGE_SIZE"), 0))
    return min(found) if found else None


def reason_of(error: OSError) -> str:
    """What the system said, and what would help."""
    said = clean(error.strerror or error, most=200)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"the disk is full ({said}): free some of it, or name another with --dir"
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return f"the directory cannot be written ({said}): name another with --dir"
    return said


def sweep(directory: Path) -> int:
    """Removes folders that killed lessons of this user left behind: those that nobody holds.

    Returns:
        How many.
    """
    removed = 0
    for folder in _ours(directory):
        lock = _locked(folder)
        if lock is None:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        removed += 1
    return removed


def _ours(directory: Path) -> Iterator[Path]:
    if not hasattr(os, "getuid"):
        return
    with contextlib.suppress(OSError):
        for folder in directory.glob(f"{PREFIX}*"):
            found = folder.lstat()
            # One that was made just now may not be locked yet.
            young = time.time() - found.st_mtime < _YOUNG_S
            if not young and found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink():
                yield folder


def _locked(folder: Path) -> int | None:
    """A lock on the folder that ends with this process; None where another holds it or there are no locks."""
    if sys.platform == "win32":
        return None
    import fcntl  # noqa: PLC0415 - Unix only

    descriptor = -1
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor >= 0:
            os.close(descriptor)
        return None
    return descriptor
