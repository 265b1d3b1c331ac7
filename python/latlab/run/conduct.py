"""Conducts a run: a measuring process for each round, the run file, and what to do when a process dies.

    settings ──► worker of a round ──events──► Conductor ──lines──► run file ──► fold ──► Run
                   ▲                               │
                   ├──── the next round ◄──────────┤ with what outlives a worker: the test file,
                   │                               │ time and bytes left, what to see closer;
                   │                               │ and another pass of rounds, while there is
                   │                               │ time for one and figures do not agree yet
                   └──── the same round again ◄────┘ when it died, without what it had measured
                                                     and the point that it died on

Nothing is changed in this process or on the machine, so nothing has to be restored: not after Ctrl-C, not
after kill -9.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from latlab.errors import LatlabError, WorkerError
from latlab.masking import masked_url
from latlab.run import events, model
from latlab.run.agreement import AGREED, LEAST_S, widest
from latlab.run.core import list_probes, sweep
from latlab.run.death import OomKills, cause_of_death, last_words, oom_kills
from latlab.run.events import (
    Begin,
    Died,
    End,
    Event,
    Fatal,
    Further,
    Hello,
    Listener,
    Progress,
    Recorded,
    TestFile,
)
from latlab.run.fold import folded, keeping
from latlab.run.run import Run
from latlab.run.settings import make_settings
from latlab.run.sharing import Sharing
from latlab.run.store import Store, new_id
from latlab.run.writer import RunWriter
from latlab.text import clean

__all__ = [
    "Begin",
    "Conductor",
    "Died",
    "End",
    "Event",
    "Fatal",
    "Hello",
    "Listener",
    "Progress",
    "Recorded",
    "conduct",
    "measure",
]

SECONDS: Final = {"quick": 30.0, "standard": 90.0, "thorough": 600.0}
"""Wall time of a whole run by profile: the budgets of the design, used here only to know a hang."""


def seconds_of(settings: model.Settings) -> float:
    """Wall time that a run may take, s: its budget, or its profile's."""
    return settings.budget_s or SECONDS.get(settings.profile, SECONDS["thorough"])


#: A point that killed so many workers is left out of the run; after the first it is left out of its round.
MOST_DEATHS_OF_A_POINT: Final = 2
MOST_DEATHS_IN_ONE_PROBE: Final = 3
MOST_DEATHS: Final = 8
GRACE_S: Final = 3.0
"""How long the worker may take to write what it has, after Ctrl-C."""
SHORTEST_HANG_S: Final = 60.0
_LONGEST_EVENT: Final = 64 << 20
_MOST_STRAY_LINES: Final = 100
_KEPT_STDERR: Final = 8 << 10


# ----------------------------------------------------------------------------------------------------------
# public API


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


def conduct(
    settings: model.Settings,
    *,
    out: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
    command: list[str] | None = None,
    anonymous: bool = False,
    marks: tuple[model.Finding, ...] = (),
) -> Run:
    """Runs checked settings; see `measure`. The file is opened before anything is started.

    `marks` come before what the doctor finds.
    """
    run_id = new_id()
    notice = ""
    if out is not None:
        writer = RunWriter(out)
    else:
        store = Store()
        writer = store.create(run_id)
        notice = store.notice
    with writer:
        conductor = Conductor(
            settings,
            writer,
            run_id=run_id,
            listener=listener,
            command=command,
            anonymous=anonymous,
            marks=marks,
        )
        run = conductor.run()
    if notice:
        run.notes = (notice, *run.notes)
    return run


def _cell_listener() -> tuple[Listener | None, Callable[[], object] | None]:
    """Progress for a notebook's cell, where there is one."""
    if "IPython" not in sys.modules:
        return None, None
    from latlab import notebook  # noqa: PLC0415 - only in a notebook

    listener = notebook.progress_listener()
    return listener, None if listener is None else listener.close


# ----------------------------------------------------------------------------------------------------------
# the conductor


@dataclass(slots=True)
class _Worker:
    """One measuring process and what is read from it."""

    process: subprocess.Popen[bytes]
    oom_kills: OomKills
    out: bytearray = field(default_factory=bytearray)
    searched: int = 0
    err: bytearray = field(default_factory=bytearray)
    current: Begin | None = None
    ended: End | None = None
    fatal: str = ""
    broken: str = ""
    stray: int = 0


class Conductor:
    """One run, from the first process to the footer."""

    def __init__(
        self,
        settings: model.Settings,
        writer: RunWriter | None = None,
        *,
        run_id: str | None = None,
        listener: Listener | None = None,
        command: list[str] | None = None,
        shortest_hang_s: float = SHORTEST_HANG_S,
        grace_s: float = GRACE_S,
        anonymous: bool = False,
        marks: tuple[model.Finding, ...] = (),
    ) -> None:
        """Prepares a run.

        Args:
            settings: what to measure.
            writer: an open run file; None keeps the run in memory.
            run_id: its name.
            listener: called with each event. One that fails is not called again.
            command: the measuring process, instead of this Python with `latlab/worker.py`.
            shortest_hang_s: seconds without an event after which the worker counts as hung, at least.
            grace_s: seconds that it has to write what it has after an interrupt.
            anonymous: what names the host, its user or their files never reaches the run file.
            marks: what distorts this run, besides what the doctor finds.
        """
        self._settings = settings
        self._writer = writer
        self._run_id = run_id or new_id()
        self._listener = listener
        self._command = command
        self._grace_s = grace_s
        deadline = seconds_of(settings)
        self._hang_s = max(shortest_hang_s, 3 * deadline) if command is None else shortest_hang_s
        self._anonymous = anonymous
        self._marks = marks
        self._sharing: Sharing | None = None
        self._header: model.Header | None = None
        self._lines: list[model.Record] = []
        self._round = 0
        self._rounds = 1
        #: What this round has measured.
        self._told: set[tuple[str, model.Point]] = set()
        #: The points that workers died on, with the round.
        self._dead: list[tuple[int, str, model.Point]] = []
        self._deaths: dict[str, int] = {}
        self._left_out: list[str] = []
        self._further: list[tuple[str, msgspec.Raw]] = []
        self._test_file = -1
        self._false_start = ""
        self._written_bytes = 0
        self._restarts = 0
        #: The first worker's greeting: what the run has.
        self._hello: Hello | None = None
        #: When the run is to have measured, whatever its figures.
        self._ends_ns: int | None = None
        #: When this pass began, and after how many lines.
        self._pass_begun = (0, 0)
        self._notes: list[str] = []
        self._interrupts = 0
        self._interrupted_at = 0.0
        self._wake_read, self._wake_write = -1, -1
        self._begun_ns = 0

    def interrupt(self) -> None:
        """Ends the run early, as Ctrl-C does; a second call does not wait. May be called from any thread."""
        self._interrupts += 1
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    def run(self) -> Run:
        """Measures until the plan is done, the user interrupts, or the worker has died too often.

        Raises:
            WorkerError: nothing could be measured at all.
            KeyboardInterrupt: interrupted before anything could be.
        """
        self._begun_ns = time.monotonic_ns()
        self._pass_begun = (self._begun_ns, 0)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        try:
            with self._signals():
                stopped_by = self._until_done()
                return self._conclude(stopped_by)
        finally:
            os.close(self._wake_read)
            os.close(self._wake_write)
            if self._test_file >= 0:
                os.close(self._test_file)
            self._wake_read = self._wake_write = -1

    def _until_done(self) -> str:
        self._sweep()
        while True:
            worker = self._start()
            try:
                self._listen(worker)
            finally:
                _end(worker.process)
            if worker.ended is None:
                self._sweep()
            if self._interrupts:
                return "interrupted"
            if worker.ended is not None:
                self._written_bytes = worker.ended.totals.written_bytes
                before, self._round = self._round, self._next_round()
                self._told.clear()
                stopped_by = clean(worker.ended.stopped_by, most=200)
                if stopped_by != "completed" or (
                    self._round // self._rounds > before // self._rounds and not self._begins_another_pass()
                ):
                    return stopped_by
            elif worker.fatal and worker.process.returncode != 0 and worker.current is None:
                if self._header is None:
                    raise WorkerError(clean(worker.fatal, most=500))
                return f"failed: {clean(worker.fatal, most=500)}"
            elif not self._after_death(worker):
                return self._why_it_ends()

    def _next_round(self) -> int:
        """The round after this one that measures something, maybe of the next pass."""
        idle = frozenset() if self._hello is None else frozenset(self._hello.idle)
        following = range(self._round + 1, self._round + self._rounds + 1)
        return next((number for number in following if number % self._rounds not in idle), following[-1])

    def _begins_another_pass(self) -> bool:
        """Whether there is time for another pass like the one that ended, and a use; see `agreement`."""
        hello, header, now = self._hello, self._header, time.monotonic_ns()
        (begun, lines), self._pass_begun = self._pass_begun, (now, len(self._lines))
        again = any(line.value is not None and line.rank != "once" for line in self._lines[lines:])
        if hello is None or header is None or self._ends_ns is None:
            return False
        fits = 2 * now - begun <= self._ends_ns
        if not (again and fits) or self._written_bytes + hello.again_bytes > hello.written_bytes:
            return False
        profile = self._settings.profile
        if now - self._begun_ns >= LEAST_S[profile] * 1e9:
            figures, _ = folded(header, self._lines, None)
            return widest(figures) > AGREED[profile]
        return True

    def _sweep(self) -> None:
        """Removes scratch folders that a worker left because it was killed: this one's, or an earlier run's.

        They are looked for again at the next start: what cannot be removed now ends no run.
        """
        with contextlib.suppress(LatlabError, OSError, ValueError):
            sweep(self._settings.dir)

    # -------------------------------------------------------------------------------------------------- one
    # worker

    def _start(self) -> _Worker:
        command = self._command or worker_command()
        machine = self._hello.machine if self._hello else None
        request = {
            "settings": self._settings,
            "round": self._round,
            "begun_ns": self._begun_ns,
            "ends_ns": self._ends_ns,
            "usable_memory_bytes": machine.integer("limits.usable_memory_bytes") if machine else None,
            "done": self._unwanted(),
            "done_probes": self._left_out,
            "written_bytes": self._written_bytes,
            "further": self._further,
            "test_file": self._test_file if self._test_file >= 0 else None,
            "packages": _packages(),
        }
        kills = oom_kills()
        process: subprocess.Popen[bytes] | None = None
        try:
            with sigint_blocked():
                process = subprocess.Popen(  # noqa: S603 - our own worker
                    [*command, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    env=clean_environment(),
                    pass_fds=[self._test_file] if self._test_file >= 0 else [],
                )
        except OSError as error:
            reason = clean(error.strerror or error)
            raise WorkerError(
                f"the measuring process cannot be started: {clean(command[0])}: {reason}"
            ) from None
        worker = _Worker(process, kills)
        stdin = process.stdin
        assert stdin is not None  # noqa: S101 - asked for above
        # A worker that died already says so below.
        with contextlib.suppress(OSError):
            stdin.write(msgspec.json.encode(request) + b"\n")
        return worker

    def _unwanted(self) -> list[tuple[str, model.Point]]:
        """Points that the next worker is not to measure: of this round, and those that killed too often."""
        killers = [(probe, point) for _, probe, point in self._dead]
        dead = [
            (probe, point)
            for number, probe, point in self._dead
            if number == self._round or killers.count((probe, point)) >= MOST_DEATHS_OF_A_POINT
        ]
        return list(dict.fromkeys([*self._told, *dead]))

    def _listen(self, worker: _Worker) -> None:
        """Takes events until the worker ends, hangs, or was told to end."""
        out, err = worker.process.stdout, worker.process.stderr
        assert out is not None  # noqa: S101 - pipes were asked for
        assert err is not None  # noqa: S101
        heard = time.monotonic()
        told = False
        with selectors.DefaultSelector() as waiting:
            for stream in (out, err):
                os.set_blocking(stream.fileno(), False)
                waiting.register(stream, selectors.EVENT_READ)
            waiting.register(self._wake_read, selectors.EVENT_READ)
            while out in (key.fileobj for key in waiting.get_map().values()):
                if self._interrupts and not told:
                    told, self._interrupted_at = True, time.monotonic()
                    worker.process.terminate()
                limit = self._interrupted_at + self._grace_s if told else heard + self._hang_s
                if self._interrupts > 1 or time.monotonic() >= limit or worker.broken:
                    if not told:
                        worker.broken = worker.broken or f"it said nothing for {self._hang_s:.0f} s"
                    worker.process.kill()
                    # What it wrote before is still in the pipe.
                    self._drain(worker)
                    return
                for key, _ in waiting.select(min(max(limit - time.monotonic(), 0.0), 1.0)):
                    if key.fd == self._wake_read:
                        with contextlib.suppress(BlockingIOError):
                            os.read(self._wake_read, 64)
                    elif key.fileobj is err:
                        if not _read_into(err.fileno(), worker.err, keep=_KEPT_STDERR):
                            waiting.unregister(err)
                    else:
                        alive = _read_into(out.fileno(), worker.out)
                        if self._take_lines(worker):
                            heard = time.monotonic()
                        if not alive:
                            waiting.unregister(out)
            self._drain(worker)

    def _drain(self, worker: _Worker) -> None:
        """After the last event: lets it end, and takes what it said on standard error."""
        if worker.process.stdin is not None:
            worker.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(timeout=_end_patience(worker))
        for stream, into, keep in (
            (worker.process.stdout, worker.out, None),
            (worker.process.stderr, worker.err, _KEPT_STDERR),
        ):
            # A grandchild may hold the pipe open: only what is there now is read.
            for _ in range(1 << 12):
                if stream is None or not _read_into(stream.fileno(), into, keep=keep, only_ready=True):
                    break
        self._take_lines(worker)

    def _take_lines(self, worker: _Worker) -> bool:
        """Handles the whole lines that have come; says whether any was an event."""
        lines: list[bytearray] = []
        # What was searched before is the beginning of one line: a long one is not searched again and again.
        if worker.out.find(b"\n", worker.searched) >= 0:
            *lines, worker.out = worker.out.split(b"\n")
        if len(worker.out) > _LONGEST_EVENT:
            worker.broken = "it wrote a line without end"
            worker.out.clear()
        worker.searched = len(worker.out)
        any_event = False
        for line in lines:
            if worker.broken:
                break
            try:
                event = events.EVENT.decode(line)
                if isinstance(event, Recorded):
                    self._keep(event)
            except events.DAMAGE as error:
                self._note_stray(worker, bytes(line), error)
                continue
            any_event = True
            self._take(worker, event)
        return any_event

    def _note_stray(self, worker: _Worker, line: bytes, error: BaseException) -> None:
        worker.stray += 1
        if worker.stray == 1:
            said = clean(line[:100].decode(errors="replace"), most=80)
            self._notes.append(
                f"the measuring process wrote what is no event ({clean(error, most=100)}): {said}"
            )
        if worker.stray > _MOST_STRAY_LINES:
            worker.broken = "it wrote lines that are no events"

    def _take(self, worker: _Worker, event: Event) -> None:
        if isinstance(event, Hello):
            if self._header is None:
                self._hello, self._rounds = event, max(event.rounds, 1)
                self._ends_ns = time.monotonic_ns() + int(event.left_s * 1e9)
                self._open(event)
        elif isinstance(event, Begin):
            self._written_bytes = event.written_bytes
            worker.current = event
        elif isinstance(event, Further):
            known = {(probe, bytes(point)) for probe, point in self._further}
            self._further += [
                (event.probe, point) for point in event.points if (event.probe, bytes(point)) not in known
            ]
        elif isinstance(event, TestFile):
            self._keep_test_file(worker, event.fd)
        elif isinstance(event, End):
            worker.ended = event
        elif isinstance(event, Fatal):
            worker.fatal = event.text
        elif isinstance(event, Progress):
            event = self._timed(event)
        self._tell(event)

    def _timed(self, event: Progress) -> Progress:
        now = time.monotonic_ns()
        elapsed_s = (now - self._begun_ns) / 1e9
        whole_s = ((self._ends_ns or now) - self._begun_ns) / 1e9
        return msgspec.structs.replace(
            event,
            elapsed_s=elapsed_s,
            left_s=max(whole_s - elapsed_s, 0.0),
            fraction=min(elapsed_s / whole_s, 1.0) if whole_s > 0 else 0.0,
        )

    def _keep_test_file(self, worker: _Worker, descriptor: int) -> None:
        """Opens the worker's test file, which has no name, for the workers of the rounds to come.

        Where that is not possible the next one lays out its own.
        """
        if self._test_file < 0:
            with contextlib.suppress(OSError):
                path = f"/proc/{worker.process.pid}/fd/{descriptor}"
                self._test_file = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))

    def _tell(self, event: Event | Died) -> None:
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception as error:
            self._listener = None
            self._notes.append(
                f"progress could not be shown: {type(error).__name__}: {clean(error, most=200)}"
            )

    # ----------------------------------------------------------------------------------------------- what is
    # kept

    def _open(self, hello: Hello) -> None:
        started = datetime.now().astimezone()
        self._header = model.Header(
            schema=f"{model.SCHEMA_NAME}/{model.SCHEMA_VERSION}",
            id=self._run_id,
            started=started.isoformat(timespec="milliseconds"),
            tool=hello.tool,
            machine=hello.machine,
            clock=hello.clock,
            # The file may be passed on; only the measuring process needs the URL as it is.
            settings=msgspec.structs.replace(self._settings, url=masked_url(self._settings.url)),
            plan=hello.plan,
            rounds=hello.rounds,
            cpus=hello.cpus,
            doctor=(*self._marks, *_findings(hello, self._settings)),
        )
        if self._anonymous:
            self._sharing = Sharing(self._header)
            self._header = self._sharing.header
        if self._writer is not None:
            self._writer.header(self._header)
        if self._false_start and hello.plan:
            text = (
                f"nothing of it is missing: {self._false_start} before the first probe, and was started again"
            )
            self._append(self._absent(hello.plan[0].id, model.Point(), text))

    def _keep(self, event: Recorded) -> None:
        """Appends a line to the file, unless a worker before this one measured that point in this round."""
        self._append(event.record, bytes(event.raw))

    def _append(self, record: model.Record, raw: bytes | None = None) -> None:
        key = (record.probe, record.point)
        if raw is not None:
            if key in self._told and record.point != model.Point():
                return
            self._told.add(key)
        if self._sharing is not None:
            record, raw = self._sharing.record(record), None
        self._lines.append(record)
        if self._writer is not None and self._header is not None:
            self._writer.record(record if raw is None else raw)

    def _conclude(self, stopped_by: str) -> Run:
        if self._header is None:
            if self._interrupts:
                raise KeyboardInterrupt
            raise WorkerError("the measuring process ended before it measured anything")
        kinds: dict[str, int] = {}
        for record in self._lines:
            kinds[record.kind] = kinds.get(record.kind, 0) + 1
        footer = model.Footer(
            ended=datetime.now().astimezone().isoformat(timespec="milliseconds"),
            stopped_by=stopped_by,
            totals=model.Totals(
                records=kinds,
                seconds=round((time.monotonic_ns() - self._begun_ns) / 1e9, 3),
                written_bytes=self._written_bytes,
                disturbed_blocks=sum(block.disturbed for record in self._lines for block in record.blocks),
                worker_restarts=self._restarts,
            ),
        )
        if self._sharing is not None:
            footer = self._sharing.footer(footer)
        figures, doubts = folded(self._header, self._lines, None)
        self._notes += doubts
        footer = keeping(footer, figures)
        path, error = None, None
        if self._writer is not None:
            self._writer.footer(footer)
            path, error = self._writer.path, self._writer.error
            if error is not None:
                self._notes.append(f"{clean(path)} does not hold the whole run: {error}")
        return Run(
            self._header,
            figures,
            footer,
            lines=self._lines,
            path=path,
            notes=self._notes,
            write_error=error,
        )

    # -------------------------------------------------------------------------------------------- death and
    # restart

    def _after_death(self, worker: _Worker) -> bool:
        """Records what the worker died of; returns whether another one is to go on."""
        text = (
            f"the measuring process was stopped: {worker.broken}"
            if worker.broken
            else cause_of_death(worker.process.returncode, fatal=worker.fatal, before=worker.oom_kills)
        )
        said = last_words(worker.err)
        if self._header is None:
            return self._after_false_start(
                f"{text}; it said: {said}" if said else text, hung=bool(worker.broken)
            )
        current = worker.current or Begin("", model.Point())
        probe, point = current.probe, current.point
        self._deaths[probe] = self._deaths.get(probe, 0) + 1
        if not probe:
            text = f"while round {self._round + 1} was set up, {text}"
        else:
            self._dead.append((self._round, probe, point))
        if (probe, point) in self._told:
            # Of this point nothing is missing.
            point = model.Point()
            text = f"between two points, {text}"
        sentence = f"{text}; it said: {said}" if said else text
        first = next((each.id for each in self._header.plan if each.id not in self._left_out), "")
        self._append(self._absent(probe or first, point, sentence))
        if probe and self._deaths[probe] >= MOST_DEATHS_IN_ONE_PROBE:
            self._left_out.append(probe)
            times = self._deaths[probe]
            skipped = f"the measuring process died {times} times in this probe: the rest of it is left out"
            self._append(self._absent(probe, model.Point(), skipped))
        # Nobody knows what it wrote since its last word.
        self._written_bytes += current.most_bytes
        unmeasured = {planned.id for planned in self._header.plan} - set(self._left_out)
        goes_on = not self._died_too_often() and bool(unmeasured)
        if goes_on:
            self._restarts += 1
        self._tell(Died(probe, point.label(), sentence, restarts=goes_on))
        return goes_on

    def _after_false_start(self, sentence: str, *, hung: bool) -> bool:
        """A worker that died before it had described the machine is started once more.

        Raises:
            WorkerError: it was already, or waiting again for one that hangs is too long.
        """
        if self._false_start or hung:
            raise WorkerError(f"{sentence}, before it measured anything")
        self._false_start = sentence
        self._restarts += 1
        self._tell(Died("", "", sentence, restarts=True))
        return True

    def _died_too_often(self) -> bool:
        """Whether no worker is worth another start: of all, or of those that never came to a point."""
        in_all = sum(self._deaths.values())
        return in_all >= MOST_DEATHS or self._deaths.get("", 0) >= MOST_DEATHS_OF_A_POINT

    def _why_it_ends(self) -> str:
        if not self._died_too_often():
            return "completed"
        return f"failed: the measuring process died {sum(self._deaths.values())} times"

    def _absent(self, probe: str, point: model.Point, text: str) -> model.Record:
        method, unit = self._kind_of(probe)
        return model.Record(
            probe=probe,
            method=method,
            unit=unit,
            kind="absent",
            stopped_by="failed",
            point=point,
            round=self._round,
            error=model.Absence(kind="worker_died", text=text),
        )

    def _kind_of(self, probe: str) -> tuple[int, model.Unit]:
        """Method and unit of a probe: as the core says, else as its other records have them."""
        if self._command is None:
            with contextlib.suppress(LatlabError, msgspec.MsgspecError):
                for info in list_probes():
                    if info.id == probe:
                        return info.method_version, info.unit
        for record in self._lines:
            if record.probe == probe:
                return record.method, record.unit
        return 1, "ns"

    # ---------------------------------------------------------------------------------------------------
    # interrupts

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """While it runs, Ctrl-C is noted instead of raised: a line of the file is never written by half."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {}

        def note(_number: int, _frame: FrameType | None) -> None:
            self.interrupt()

        # SIGTERM and SIGHUP too, where nobody else has a use for them. A signal that is ignored (nohup) stays
        # so.
        for number, replaceable in (
            (signal.SIGINT, (signal.default_int_handler, signal.SIG_DFL)),
            (signal.SIGTERM, (signal.SIG_DFL,)),
            (getattr(signal, "SIGHUP", signal.SIGTERM), (signal.SIG_DFL,)),
        ):
            handler = signal.getsignal(number)
            custom = number is signal.SIGINT and callable(handler)
            if number not in before and (handler in replaceable or custom):
                before[number] = signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _findings(hello: Hello, settings: model.Settings) -> tuple[model.Finding, ...]:
    """What distorts figures here; a rule that fails is a fault of ours, not of the run."""
    try:
        from latlab import doctor  # noqa: PLC0415 - 20 ms that reading a run does not need

        return doctor.examine(hello.machine, hello.clock, settings, load_now=doctor.load_average())
    except Exception as error:
        title = f"the doctor failed: {type(error).__name__}: {clean(error, most=200)}"
        return (
            model.Finding(id="doctor-failed", severity="note", title=title, effect="its advice is missing"),
        )


def worker_command() -> list[str]:
    """How the measuring process is started; what follows is the id of this one."""
    if not sys.executable:
        raise WorkerError(
            "this Python does not know its own program (sys.executable): run latlab from a normal one"
        )
    return [sys.executable, "-I", "-S", os.fspath(Path(__file__).resolve().parent.parent / "worker.py")]


def _packages() -> str | None:
    """The folder that NumPy would be imported from: the measuring process has no site-packages of its own."""
    spec = importlib.util.find_spec("numpy")
    return None if spec is None or spec.origin is None else os.fspath(Path(spec.origin).parent.parent)


def clean_environment() -> dict[str, str]:
    """The environment without what would load an allocator or a profiler into the measuring process."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "DYLD_INSERT_LIBRARIES"}
        and not name.startswith(("MALLOC_", "PYTHON"))
    }
    # Who leaves restartable sequences to others has a reason, and they cost nothing that is measured.
    kept = [
        tunable
        for tunable in os.environ.get("GLIBC_TUNABLES", "").split(":")
        if tunable.startswith("glibc.pthread.rseq=")
    ]
    return environment | ({"GLIBC_TUNABLES": ":".join(kept)} if kept else {})


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A process started within is born deaf to Ctrl-C; one for this process is delivered afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _read_into(
    descriptor: int, into: bytearray, *, keep: int | None = None, only_ready: bool = False
) -> bool:
    """Reads once; False at the end.

    Args:
        descriptor: a pipe that does not block.
        into: where the bytes are added.
        keep: at most so many bytes are kept, the last ones.
        only_ready: whether nothing to read right now counts as the end.
    """
    try:
        data = os.read(descriptor, 1 << 18)
    except BlockingIOError:
        return not only_ready
    except OSError:
        return False
    into += data
    if keep is not None and len(into) > keep:
        del into[:-keep]
    return bool(data)


def _end_patience(worker: _Worker) -> float:
    return 5.0 if worker.ended is not None else 2.0


def _end(process: subprocess.Popen[bytes]) -> None:
    """No worker is left behind; one that the kernel does not let go of is not waited for."""
    if process.poll() is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2.0)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
