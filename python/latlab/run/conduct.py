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
import os
import time
from typing import Final

import msgspec

from latlab.errors import LatlabError, WorkerError
from latlab.masking import masked_url
from latlab.run import events, model
from latlab.run.agreement import AGREED, LEAST_S, widest
from latlab.run.core import list_probes, sweep
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
from latlab.run.fold import folded
from latlab.run.interrupts import Interrupts
from latlab.run.journal import Journal, now_text
from latlab.run.process import Worker, worker_command
from latlab.run.run import Run
from latlab.run.store import Store, new_id
from latlab.run.writer import RunWriter
from latlab.text import clean

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
        self._run_id = run_id or new_id()
        self._listener = listener
        self._command = command
        self._grace_s = grace_s
        deadline = seconds_of(settings)
        self._hang_s = max(shortest_hang_s, 3 * deadline) if command is None else shortest_hang_s
        self._marks = marks
        self._journal = Journal(writer, anonymous=anonymous)
        self._round = 0
        self._rounds = 1
        #: What this round has measured.
        self._reported: set[tuple[str, model.Point]] = set()
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
        self._interrupts = Interrupts()

    def interrupt(self) -> None:
        """Ends the run early, as Ctrl-C does; a second call does not wait. May be called from any thread."""
        self._interrupts.note()

    def run(self) -> Run:
        """Measures until the plan is done, the user interrupts, or the worker has died too often.

        Raises:
            WorkerError: nothing could be measured at all.
            KeyboardInterrupt: interrupted before anything could be.
        """
        self._journal.begun_ns = time.monotonic_ns()
        self._pass_begun = (self._journal.begun_ns, 0)
        try:
            with self._interrupts:
                stopped_by = self._until_done()
                return self._conclude(stopped_by)
        finally:
            if self._test_file >= 0:
                os.close(self._test_file)

    def _until_done(self) -> str:
        self._sweep()
        while True:
            worker = self._start()
            try:
                for line in worker.lines(self._interrupts, grace_s=self._grace_s, hang_s=self._hang_s):
                    self._hear(worker, line)
            finally:
                worker.end()
            if worker.ended is None:
                self._sweep()
            if self._interrupts.count:
                return "interrupted"
            if worker.ended is not None:
                self._written_bytes = worker.ended.totals.written_bytes
                before, self._round = self._round, self._next_round()
                self._reported.clear()
                stopped_by = clean(worker.ended.stopped_by, most=200)
                if stopped_by != "completed" or (
                    self._round // self._rounds > before // self._rounds and not self._begins_another_pass()
                ):
                    return stopped_by
            elif worker.fatal and worker.process.returncode != 0 and worker.current is None:
                if self._journal.header is None:
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
        hello, header, now = self._hello, self._journal.header, time.monotonic_ns()
        (begun, lines), self._pass_begun = self._pass_begun, (now, len(self._journal.lines))
        again = any(line.value is not None and line.rank != "once" for line in self._journal.lines[lines:])
        if hello is None or header is None or self._ends_ns is None:
            return False
        fits = 2 * now - begun <= self._ends_ns
        if not (again and fits) or self._written_bytes + hello.again_bytes > hello.written_bytes:
            return False
        profile = self._settings.profile
        if now - self._journal.begun_ns >= LEAST_S[profile] * 1e9:
            figures, _ = folded(header, self._journal.lines, None)
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

    def _start(self) -> Worker:
        machine = self._hello.machine if self._hello else None
        kept = () if self._test_file < 0 else (self._test_file,)
        request: dict[str, object] = {
            "settings": self._settings,
            "round": self._round,
            "begun_ns": self._journal.begun_ns,
            "ends_ns": self._ends_ns,
            "usable_memory_bytes": machine.integer("limits.usable_memory_bytes") if machine else None,
            "done": self._unwanted(),
            "done_probes": self._left_out,
            "written_bytes": self._written_bytes,
            "further": self._further,
            "test_file": next(iter(kept), None),
        }
        return Worker.start(self._command or worker_command(), request, kept)

    def _unwanted(self) -> list[tuple[str, model.Point]]:
        """Points that the next worker is not to measure: of this round, and those that killed too often."""
        killers = [(probe, point) for _, probe, point in self._dead]
        dead = [
            (probe, point)
            for number, probe, point in self._dead
            if number == self._round or killers.count((probe, point)) >= MOST_DEATHS_OF_A_POINT
        ]
        return list(dict.fromkeys([*self._reported, *dead]))

    def _hear(self, worker: Worker, line: bytes) -> None:
        """Handles an event; a line that is none is noted."""
        try:
            event = events.EVENT.decode(line)
            if isinstance(event, Recorded):
                self._keep(event)
        except events.DAMAGE as error:
            if not worker.stray:
                said = clean(line[:100].decode(errors="replace"), most=80)
                self._journal.notes.append(
                    f"the measuring process wrote an invalid event ({clean(error, most=100)}): {said}"
                )
            worker.note_stray()
            return
        self._take(worker, event)
        worker.heard = time.monotonic()

    def _take(self, worker: Worker, event: Event) -> None:
        if isinstance(event, Hello):
            if self._journal.header is None:
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
        elapsed_s = (now - self._journal.begun_ns) / 1e9
        whole_s = ((self._ends_ns or now) - self._journal.begun_ns) / 1e9
        return msgspec.structs.replace(
            event,
            elapsed_s=elapsed_s,
            left_s=max(whole_s - elapsed_s, 0.0),
            fraction=min(elapsed_s / whole_s, 1.0) if whole_s > 0 else 0.0,
        )

    def _keep_test_file(self, worker: Worker, descriptor: int) -> None:
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
            self._journal.notes.append(
                f"progress could not be shown: {type(error).__name__}: {clean(error, most=200)}"
            )

    # ----------------------------------------------------------------------------------------------- what is
    # kept

    def _open(self, hello: Hello) -> None:
        header = model.Header(
            schema=f"{model.SCHEMA_NAME}/{model.SCHEMA_VERSION}",
            id=self._run_id,
            started=now_text(),
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
        self._journal.open(header)
        if self._false_start and hello.plan:
            text = f"nothing is missing: {self._false_start} before the first probe, and was restarted"
            self._journal.add(self._absent(hello.plan[0].id, model.Point(), text))

    def _keep(self, event: Recorded) -> None:
        """Appends a line to the file, unless a worker before this one measured that point in this round."""
        record = event.record
        key = (record.probe, record.point)
        if key not in self._reported or record.point == model.Point():
            self._reported.add(key)
            self._journal.add(record, bytes(event.raw))

    def _conclude(self, stopped_by: str) -> Run:
        header = self._journal.header
        if header is None:
            if self._interrupts.count:
                raise KeyboardInterrupt
            raise WorkerError("the measuring process ended before it measured anything")
        return self._journal.close(
            header, stopped_by, written_bytes=self._written_bytes, restarts=self._restarts
        )

    # -------------------------------------------------------------------------------------------- death and
    # restart

    def _after_death(self, worker: Worker) -> bool:
        """Records what the worker died of; returns whether another one is to go on."""
        text = worker.cause_of_death()
        header = self._journal.header
        if header is None:
            return self._after_false_start(worker.with_last_words(text), hung=bool(worker.broken))
        current = worker.current or Begin("", model.Point())
        probe, point = current.probe, current.point
        self._deaths[probe] = self._deaths.get(probe, 0) + 1
        if not probe:
            text = f"while round {self._round + 1} was set up, {text}"
        else:
            self._dead.append((self._round, probe, point))
        if (probe, point) in self._reported:
            # Of this point nothing is missing.
            point = model.Point()
            text = f"between two points, {text}"
        sentence = worker.with_last_words(text)
        first = next((each.id for each in header.plan if each.id not in self._left_out), "")
        self._journal.add(self._absent(probe or first, point, sentence))
        if probe and self._deaths[probe] >= MOST_DEATHS_IN_ONE_PROBE:
            self._left_out.append(probe)
            times = self._deaths[probe]
            skipped = f"the measuring process died {times} times in this probe: its other points are left out"
            self._journal.add(self._absent(probe, model.Point(), skipped))
        # Nobody knows what it wrote since its last word.
        self._written_bytes += current.most_bytes
        unmeasured = {planned.id for planned in header.plan} - set(self._left_out)
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
        for record in self._journal.lines:
            if record.probe == probe:
                return record.method, record.unit
        return 1, "ns"


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
