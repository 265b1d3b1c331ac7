"""What is kept of a run while it is measured: its header, its lines and its footer, here and in the file."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime

from latlab.run import model
from latlab.run.fold import folded, keeping
from latlab.run.meanwhile import Counters, meanwhile
from latlab.run.run import Run
from latlab.run.sharing import Sharing
from latlab.run.writer import RunWriter
from latlab.text import clean


class Journal:
    """One run's lines as they come.

    Attributes:
        header: None until the run has one.
        lines: the records.
        begun_ns: when the run began, on the monotonic clock.
        notes: sentences for the user.
    """

    def __init__(self, writer: RunWriter | None, *, anonymous: bool) -> None:
        self._writer = writer
        self._anonymous = anonymous
        self._sharing: Sharing | None = None
        self.header: model.Header | None = None
        self.lines: list[model.Record] = []
        self.begun_ns = time.monotonic_ns()
        self._began = Counters.now()
        self.notes: list[str] = []

    def open(self, header: model.Header) -> None:
        """Writes the first line."""
        if self._anonymous:
            self._sharing = Sharing(header)
            header = self._sharing.header
        self.header = header
        if self._writer is not None:
            self._writer.header(header)

    def add(self, record: model.Record, raw: bytes | None = None) -> None:
        """Appends a record, in the file as the core wrote it (`raw`) where nothing is taken out of it."""
        if self._sharing is not None:
            record, raw = self._sharing.record(record), None
        self.lines.append(record)
        if self._writer is not None and self.header is not None:
            self._writer.record(record if raw is None else raw)

    def close(self, header: model.Header, stopped_by: str, *, written_bytes: int, restarts: int) -> Run:
        """Writes the footer; returns the whole run."""
        footer = model.Footer(
            ended=now_text(),
            stopped_by=stopped_by,
            totals=model.Totals(
                records=dict(Counter(record.kind for record in self.lines)),
                seconds=round((time.monotonic_ns() - self.begun_ns) / 1e9, 3),
                written_bytes=written_bytes,
                disturbed_blocks=sum(block.disturbed for record in self.lines for block in record.blocks),
                worker_restarts=restarts,
            ),
            meanwhile=meanwhile(self.lines, header.machine, self._began, Counters.now()),
        )
        if self._sharing is not None:
            footer = self._sharing.footer(footer)
        figures, doubts = folded(header, self.lines, None)
        self.notes += doubts
        footer = keeping(footer, figures)
        path, error = None, None
        if self._writer is not None:
            self._writer.footer(footer)
            path, error = self._writer.path, self._writer.error
            if error is not None:
                self.notes.append(f"{clean(path)} does not hold the whole run: {error}")
        return Run(header, figures, footer, lines=self.lines, path=path, notes=self.notes, write_error=error)


def now_text() -> str:
    """The time as run files have it."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
