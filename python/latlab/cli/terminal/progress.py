"""What is seen while it measures: one live line on a terminal, a plain line now and then elsewhere.

Drawing costs CPU time on the machine that is being measured: the live line is drawn at most four times a
second, and only when something was reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from latlab import units
from latlab.cli.terminal.header import header_lines, trust_lines
from latlab.cli.terminal.probe_table import plan_line
from latlab.cli.terminal.screen import Line, Screen, console_of, say, screen_of
from latlab.text import listed

if TYPE_CHECKING:
    from rich.live import Live

    from latlab.run.core import Plan

#: Seconds between two drawings of the live line.
_LIVE_EVERY_S = 0.25
#: Seconds between two plain lines: a log of a standard run has twenty.
_PLAIN_EVERY_S = 5.0
_BAR_CELLS = 16
#: Narrower screens get a shorter bar and no word before it.
_ROOMY = 100


class Progress(Protocol):
    """A receiver of events."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Takes one event of the measuring process."""


@contextmanager
def progress_on(stream: TextIO, *, plan: Plan, quiet: bool = False) -> Iterator[Progress]:
    """The display that suits a stream.

    Args:
        stream: Standard error.
        plan: What will be run, for the line that stands before it.
        quiet: Whether to show nothing.
    """
    if quiet:
        yield Silent()
        return
    screen = screen_of(stream)
    if not screen.is_terminal:
        yield Plain(stream, screen, plan)
        return
    from rich.live import Live  # noqa: PLC0415 - terminals only: 40 ms

    with Live(console=console_of(stream), auto_refresh=False, transient=True, redirect_stdout=False) as live:
        yield Lively(live, stream, screen, plan)


class Silent:
    """Shows nothing."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Ignores it."""


class Plain:
    """A line now and then, for logs."""

    #: Seconds between two of them.
    every_s = _PLAIN_EVERY_S

    def __init__(self, stream: TextIO, screen: Screen, plan: Plan) -> None:
        self._stream = stream
        self._screen = screen
        self._plan = plan
        self._due = 0.0
        self._greeted = False

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Prints the header once, what has died, and how far it is when that is due again."""
        if event.get("event") == "hello" and not self._greeted:
            self._greeted = True
            say(opening_lines(event, self._plan, self._screen), self._stream)
        elif event.get("event") == "died":
            self._make_room()
            say(death_lines(event, self._screen), self._stream)
        elif event.get("event") == "progress":
            now = time.monotonic()
            if now >= self._due:
                self._due = now + self.every_s
                self._show(event)

    def _make_room(self) -> None:
        """Before lines that stay."""

    def _show(self, event: Mapping[str, Any]) -> None:
        say([Line(self._screen.fit(status_text(event)))], self._stream)


class Lively(Plain):
    """One line that changes in its place."""

    every_s = _LIVE_EVERY_S

    def __init__(self, live: Live, stream: TextIO, screen: Screen, plan: Plan) -> None:
        super().__init__(stream, screen, plan)
        self._live = live

    def _make_room(self) -> None:
        self._live.update("", refresh=True)

    def _show(self, event: Mapping[str, Any]) -> None:
        from rich.text import Text  # noqa: PLC0415 - terminals only

        # A resized window must not wrap the line: it could not be erased then.
        line = live_line(event, screen_of(self._stream))
        self._live.update(Text(line, no_wrap=True, overflow="crop"), refresh=True)


def opening_lines(hello: Mapping[str, Any], plan: Plan, screen: Screen) -> list[Line]:
    """The machine, what limits the figures, and how long the run will take."""
    import msgspec  # noqa: PLC0415 - once a run

    from latlab.doctor import examine, load_average  # noqa: PLC0415 - once a run
    from latlab.run.model import Finding, Machine  # noqa: PLC0415 - once a run

    machine = Machine(hello.get("machine") or {})
    version = str((hello.get("tool") or {}).get("version", "?"))
    if "doctor" in hello:
        findings = msgspec.convert(hello["doctor"], tuple[Finding, ...], from_attributes=True)
    else:
        findings = examine(machine, hello.get("clock"), load_now=load_average())
    lines = [*header_lines(version, machine, screen), *trust_lines(findings, screen), Line()]
    lines += plan_line(plan, screen)
    rounds, cpus = hello.get("rounds"), hello.get("cpus")
    if isinstance(rounds, int) and isinstance(cpus, list | tuple) and rounds > 1 and cpus:
        named = listed([str(cpu) for cpu in sorted(cpus)])
        which = f"CPUs {named} in turn" if len(cpus) > 1 else f"CPU {named}"
        more = " or more" if plan.passes > 1 else ""
        lines += screen.wrapped(f"{rounds} rounds{more}, pinned to {which}", first="", rest="  ")
    return [*lines, Line()]


def death_lines(event: Mapping[str, Any], screen: Screen) -> list[Line]:
    """What became of the measuring process, where, and whether the run goes on."""
    where = ", ".join(part for part in (str(event.get("probe") or ""), str(event.get("point") or "")) if part)
    what = f"{where}: {event.get('text')}" if where else str(event.get("text"))
    then = "the run goes on" if event.get("restarts") else "nothing is left to run"
    return screen.wrapped(f"{what}; {then}", first=" ! ", rest="   ")


def live_line(event: Mapping[str, Any], screen: Screen) -> str:
    """` measuring ▓▓░░ memory.poke · 1 GB, read · p50 188 ns so far · at most 31 s left`, cut to fit."""
    share = min(max(float(event.get("fraction") or 0.0), 0.0), 1.0)
    full, empty = ("▓", "░") if screen.unicode else ("#", "-")
    done = round(share * _BAR_CELLS)
    bar = full * done + empty * (_BAR_CELLS - done)
    left = screen.fit(f" · {_left(event)}")
    room = screen.width - 1
    head = f" measuring  {bar}  " if room >= _ROOMY else f" {bar[:: _BAR_CELLS // 8]} "
    probe, point, estimate = map(screen.fit, _doing(event))
    # The point gives way first: where it is now says less than what it has found.
    dot = screen.fit(" · ")
    space = (
        room - len(head) - len(left) - len(probe) - len(dot) - (len(dot) + len(estimate) if estimate else 0)
    )
    mark = screen.fit("…")
    if len(point) > space:
        point = point[: space - len(mark)].rstrip(" ,") + mark if space > len(mark) + 3 else ""
    middle = dot.join(part for part in (probe, point, estimate) if part)
    return f"{head}{middle[: max(room - len(head) - len(left), 0)]}{left}"[:room]


def status_text(event: Mapping[str, Any]) -> str:
    """One line of a log: `41 % · memory.poke · 1 GB, read · p50 188 ns so far · at most 31 s left`."""
    share = min(max(float(event.get("fraction") or 0.0), 0.0), 1.0)
    return " · ".join([f"{share:4.0%}", *filter(None, _doing(event)), _left(event)])


def _doing(event: Mapping[str, Any]) -> tuple[str, str, str]:
    """Probe, point and estimate; empty where there is none."""
    p50 = event.get("p50")
    estimate = ""
    if isinstance(p50, int | float):
        estimate = f"p50 {units.format_value(float(p50), str(event.get('unit') or 'ns'))} so far"
    return str(event.get("probe") or ""), str(event.get("point") or ""), estimate


def _left(event: Mapping[str, Any]) -> str:
    left = event.get("left_s")
    return (
        f"at most {units.format_seconds(max(float(left), 0.0))} left"
        if isinstance(left, int | float)
        else "measuring"
    )
