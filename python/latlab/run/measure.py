"""`latlab.measure`: from what people write in Python to a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from latlab.run.conduct import conduct
from latlab.run.events import Listener
from latlab.run.run import Run
from latlab.run.settings import make_settings


def measure(  # noqa: PLR0917 - in a notebook `measure("memory.*")` is natural
    only: str | Iterable[str] | None = None,
    skip: str | Iterable[str] | None = None,
    profile: str = "standard",
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - named as the option is
    budget: float | str | None = None,
    max_bytes: int | str | None = None,
    cpus: str | Iterable[int] | None = None,
    seed: int | None = None,
    gentle: bool = False,
    out: str | os.PathLike[str] | None = None,
    progress: Listener | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    first_touch: str | os.PathLike[str] | None = None,
    drop_caches: bool = False,
    delay_ms: float | None = None,
    rate_mbit: float | None = None,
    distance: str | None = None,
    url: str | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    requests_per_s: int | None = None,
    anonymous: bool = False,
) -> Run:
    """Measures this machine and saves the run.

    With few probes rounds go on until figures agree to 3, 2 or 1 % (quick, standard, thorough), for at least
    10 s (quick: 5 s) and at most the profile's time, or the budget.

    Interrupting it (Ctrl-C, a notebook's stop button) returns what was measured so far, with
    `run.stopped_by == "interrupted"`; a second interrupt does not wait for the last records.

    Args:
        only: globs of probe ids to run, `"memory.*"`; a text may hold several with commas. All by default.
        skip: globs of probe ids to leave out.
        profile: `quick` (half a minute), `standard` (a minute and a half) or `thorough` (ten minutes).
        dir: directory whose file system is measured.
        budget: wall time instead of the profile's: seconds or `"2min"`.
        max_bytes: most bytes that may be written: a number or `"1GB"`.
        cpus: CPUs to use: numbers or `"0,2-3"`.
        seed: of every random choice; a new one each time by default.
        gentle: one CPU and no probe that saturates what others use, for machines that are serving.
        out: run file to make, instead of one in the store.
        progress: called with each event (`Hello`, `Begin`, `Progress`, `Recorded`, `End`, `Died`).
        file: a file of yours to measure reading from, instead of one that is made; nothing is written then.
        first_touch: directory whose files are read for the first and the second time.
        drop_caches: root only: empties the machine's caches before cold reads of many files.
        delay_ms: delay between the two sides of network probes, there and back together, milliseconds.
        rate_mbit: rate between them, in each direction, 10^6 bits a second.
        distance: a delay by its name: `same-rack` (0.1 ms), `same-city` (2 ms), `london-california` (140 ms).
        url: HTTP or HTTPS URL that `network.http`, `.connect` and `.transfer` ask. Only then does
            anything leave this machine.
        secret_file: file with the secret of another latlab's server there.
        requests_per_s: requests a second that `network.http` sends.
        anonymous: leave host, user, paths and addresses out of the run and its file.

    Returns:
        The run; `run.path` is its file.

    Raises:
        UserError: something above is not possible; nothing was measured.
        WorkerError: the measuring process could not be started.
        KeyboardInterrupt: before anything was measured.
    """
    settings = make_settings(
        only=only,
        skip=skip,
        profile=profile,
        dir=dir,
        budget=budget,
        max_bytes=max_bytes,
        cpus=cpus,
        seed=seed,
        gentle=gentle,
        file=file,
        first_touch=first_touch,
        drop_caches=drop_caches,
        delay_ms=delay_ms,
        rate_mbit=rate_mbit,
        distance=distance,
        url=url,
        secret_file=secret_file,
        requests_per_s=requests_per_s,
    )
    listener, close = (progress, None) if progress is not None else _cell_listener()
    try:
        return conduct(settings, out=out, listener=listener, anonymous=anonymous)
    finally:
        if close is not None:
            close()


def _cell_listener() -> tuple[Listener | None, Callable[[], object] | None]:
    """Progress for a notebook's cell, where there is one."""
    if "IPython" not in sys.modules:
        return None, None
    from latlab.notebook.progress import in_this_cell  # noqa: PLC0415 - only in a notebook

    listener = in_this_cell()
    return listener, None if listener is None else listener.close
