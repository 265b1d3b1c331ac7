"""Progress in a notebook's cell: one line that changes in place."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from markupsafe import Markup

from latlab.run.events import Died, End, Event, Hello, Progress
from latlab.text import clean
from latlab.units import format_seconds, format_value

#: Each change is a message to the browser; more often than this is only flicker.
_SECONDS_BETWEEN = 0.2


class Handle(Protocol):
    """What IPython returns for an output that can be changed."""

    def update(self, obj: object) -> object:
        """Replaces what is shown."""


class CellProgress:
    """Hears a run's events and keeps one line of the cell up to date."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._shown_at = 0.0
        self._stopped_by = "interrupted"
        self._notes: list[str] = []

    def __call__(self, event: Event | Died) -> None:
        """Takes one event of the run."""
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Hello):
            self._show(f"measuring {len(event.plan)} probes", 0.0)
        elif isinstance(event, Died):
            self._notes.append(event.text)
        elif isinstance(event, End):
            self._stopped_by = event.stopped_by

    def close(self) -> None:
        """Says how it ended, in place of the bar."""
        self._show("; ".join([f"measured ({self._stopped_by})", *self._notes]), None)

    def _progress(self, event: Progress) -> None:
        now = time.monotonic()
        if now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        unit = "bytes_per_s" if event.unit == "bytes_per_s" else "ns"
        estimate = f" · p50 {format_value(event.p50, unit)} so far" if event.p50 is not None else ""
        text = f"{event.probe} · {event.point}{estimate} · at most {format_seconds(event.left_s)} left"
        self._show("; ".join([text, *self._notes]), event.fraction)

    def _show(self, text: str, fraction: float | None) -> None:
        self._handle.update(_Line(text, fraction))


class _Line:
    """The line in the forms that front ends know."""

    def __init__(self, text: str, fraction: float | None) -> None:
        self.text = clean(text)
        self.fraction = fraction

    def __repr__(self) -> str:
        return self.text if self.fraction is None else f"{self.fraction:4.0%} {self.text}"

    def _repr_html_(self) -> str:
        bar = Markup("")
        if self.fraction is not None:
            share = f"{min(max(self.fraction, 0.0), 1.0):.3f}"
            bar = Markup('<progress value="{}" max="1" aria-label="progress of the run"></progress> ').format(
                share
            )
        return str(bar + Markup("<span>{}</span>").format(self.text))


def in_this_cell() -> CellProgress | None:
    """A listener for the running cell; None outside of a notebook's kernel, where a terminal has better."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # Only a kernel can change what it has shown; IPython in a terminal would print line after line.
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # noqa: PLC0415 - it is there: it is running

    handle: Handle | None = display(_Line("starting", 0.0), display_id=True)  # type: ignore[no-untyped-call]
    return None if handle is None else CellProgress(handle)
