"""The measuring core (Rust). A structured value is JSON text of the Rust type that owns it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

__version__: str
FOLD_VERSION: int
"""Changes with whatever changes figures."""

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

Samples: TypeAlias = NDArray[np.float64] | Sequence[float]
"""Values in any unit."""

# ---- machine, clock, forms of data

def describe(dir: str | None = None) -> str:  # noqa: A002 - named as the option is
    """`{"machine": Machine, "clock": ClockFacts, "tool": Tool}`; takes about 70 ms."""

def sweep(dir: str | None = None) -> int:  # noqa: A002 - named as the option is
    """Removes scratch folders of this user's that no process holds any more in a directory; how many."""

def schema_json() -> str:
    """The JSON Schema of run files, as committed in `schema/run.v2.json`."""

def decode_histogram(encoding: str, data: str) -> list[tuple[float, float, int]]:
    """`(lowest ns, highest ns, count)` of every occupied bucket, ascending; ValueError when damaged."""

def fold(header: bytes, lines: list[bytes]) -> bytes:
    """The figures of a run file's records, derived ones included, as a JSON array.

    `header` and each of `lines` are JSON as they stand in the file, without the footer.

    ValueError: one of them is not what it should be; `record 3 of 577: ...`.
    """

# ---- probes and measuring

def list_probes() -> str:
    """Each probe as `{id, tier, title, question, method, method_version, unit, convention, needs, ...}`."""

def plan(settings_json: str) -> str:
    """`{probes, seconds, memory_bytes, written_bytes, cpus, unmatched}`; ValueError for bad settings."""

def run_worker(request_json: str, fd: int, child: list[str] | None = None) -> None:
    """Measures, one event a line to `fd`; returns when done or stopped by SIGTERM, OSError when unread."""

def run_child(program: str, fd: int) -> bool:
    """Serves a child program: requests from standard input, answers to `fd`. False: no such program."""

def noise(
    seconds: float = 10.0,
    cpu: int | None = None,
    threshold_ns: float = 1000.0,
    level: str | None = None,
    in_worker: bool = False,
) -> str:
    """What keeps a thread on a CPU from looking at the clock, with causes; on the quietest CPU without one.

    `level` is the most evidence that is used. Ctrl-C raises; `in_worker`, SIGTERM ends it with what there is.
    """

def noise_self_test(
    seconds: float = 2.0, cpu: int | None = None, level: str | None = None, in_worker: bool = False
) -> str:
    """How well the causes of known disturbances are found here; `seconds` for each of four kinds."""

def noise_survey(seconds: float = 2.0, level: str | None = None, in_worker: bool = False) -> str:
    """How disturbed each CPU is, in short listens, and the quietest in the rest of `seconds`, with causes."""

def die_with_parent() -> bool:
    """Asks the kernel to kill this process when its parent ends; False where that cannot be arranged."""

# ---- where a program's wall time goes

def explain_program(
    arguments: list[str],
    level: int = 1,
    runs: int = 1,
    kept: str = "[]",
    overhead: float | None = None,
) -> str:
    """Runs a program and returns the ledger of its wall time.

    `overhead`: share of its CPU time that recording may cost (otherwise 5 %); infinite: all is recorded.

    `kept`: calibrations of this machine, as the `calibration` of ledgers before; others are measured.

    ChildProcessError: it could not be started; `errno` is the exit code of a shell, `strerror` the reason.
    """

def explain_process(
    pid: int, seconds: float, level: int = 1, kept: str = "[]", overhead: float | None = None
) -> str:
    """The same of a process that runs already. ValueError: there is none, or it may not be looked at."""

# ---- what the network probes measure against

class Server:
    """A running HTTP server, ended by `close` or with the process."""

    def __init__(self, bind: str | None = None, secret: bytes | None = None) -> None:
        """Starts it: at `bind` (`address:port`) or on the loopback.

        ValueError: it cannot listen there.
        """

    @property
    def listening(self) -> str:
        """`{"address": "127.0.0.1:4711", "certificate_sha256": "...", "guarded": false}`."""

    def close(self) -> str | None:
        """Ends it. `{"connections", "open", "requests", "refused", "sent_bytes", "received_bytes"}`."""

# ---- stages

class Stage:
    """A stage of a program: a context manager, a decorator, or over the items of an iterator."""

    bytes: int

    def __enter__(self) -> Stage: ...
    def __exit__(self, kind: object, error: object, trace: object) -> None: ...
    def __call__(self, function: _F) -> _F:
        """The function, each call of it a stage."""

    def over(self, items: Iterable[_T]) -> Iterator[_T]:
        """The items; the stage is the time that producing each takes."""

def stage(name: str, bytes: int = 0) -> Stage:  # noqa: A002 - what it goes through
    """A stage by this name; where nobody listens, one object for all that does nothing."""

def stages_start() -> None:
    """Listens to this process and what it forks from now on; OSError where that cannot be."""

def stages_heard() -> str | None:
    """`{stages: [{name, count, ...}], lost, unmatched, refused, first_refused}`; None: nobody listens."""

def stages_environment() -> list[tuple[str, str]]:
    """What the environment of children must hold for their stages to be heard; empty when nobody listens."""

def stages_file(language: str) -> tuple[str, str] | None:
    """The file by which another language marks stages: its name, its text."""

# ---- statistics
# A refusal (too few samples) is a ValueError whose text can be printed.

def quantile(samples: Samples, q: float) -> float:
    """The value that a share `q` of the samples lies below; NaN when there are none."""

def order_statistic_interval(samples: Samples, q: float, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a quantile of independent samples."""

def min_samples(q: float, level: float = 0.95) -> int:
    """Fewest independent samples for which quantile `q` has an interval of this confidence."""

def moments(samples: Samples) -> tuple[float, float | None, float, float] | None:
    """`(mean, standard deviation with n - 1, smallest, largest)`; None when there are no samples."""

def centre(values: list[float]) -> float | None:
    """The centre of runs, as two sides of them are compared; None where no value is finite and positive.

    On the logarithm the median of the means of all pairs (Hodges and Lehmann 1963).
    """

def contrast_groups(points: list[list[list[float]]]) -> list[tuple[float, float, float, float] | None]:
    """Of each point `(log ratio, standard error, deviation between runs, degrees of freedom)`.

    A point has values by group; its second group is compared with its first, further ones only say how far
    runs lie apart.
    """

def t_quantile(p: float, df: float) -> float:
    """The `p` quantile of Student's t with `df` degrees of freedom."""

def t_tail(t: float, df: float) -> float:
    """How often Student's t with `df` degrees of freedom lies beyond `t`, on either side."""

def digamma(x: float) -> float:
    """First derivative of the logarithm of the gamma function, for x > 0."""

def trigamma_inverse(v: float) -> float:
    """The x > 0 at which its second derivative is `v`, for v > 0."""
