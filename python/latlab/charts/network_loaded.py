"""Round trips while other connections carry all that they can: how often one takes how long."""

from __future__ import annotations

import altair as alt

from latlab.run.model import Record
from latlab.run.run import Run
from latlab.view import distribution, stairs
from latlab.view.points import why_absent, with_figures
from latlab.view.table import Table

ID = "network_loaded"
TITLE = "How much longer does an answer take while the connection's way is full?"
PROBE = "network.loaded"
#: What lies between the two sides, by the point's `path`; what was asked for first.
PATHS = {"emulated": "emulated path", "loopback": "loopback"}
_MOST_STEPS = 110
_MOST_LINES = 4
_HEIGHT = 320


def by_path(run: Run) -> dict[str, list[Record]]:
    """Records with their distribution, by path, idle first."""
    records = [r for r in with_figures(run, PROBE, "per_op") if r.histogram is not None]
    own = {
        path: sorted((r for r in records if r.point.path == path), key=lambda r: r.point.streams or 0)
        for path in PATHS
    }
    return {path: of[:_MOST_LINES] for path, of in own.items() if of}


def load(record: Record) -> str:
    """What else was carried, in words."""
    streams = record.point.streams or 0
    return "idle" if streams == 0 else f"{streams} stream{'' if streams == 1 else 's'}"


def absence(run: Run) -> str | None:
    """Why there is no chart, when there is none."""
    return None if by_path(run) else why_absent(run, PROBE)


def chart(run: Run) -> alt.HConcatChart | None:
    """One panel a path: what moves to the right is slower."""
    panels = {
        PATHS[path]: {load(record): distribution.steps(record, _MOST_STEPS) for record in own}
        for path, own in by_path(run).items()
    }
    names = list(dict.fromkeys(load(r) for own in by_path(run).values() for r in own))
    titles = ("a round trip takes at least", "share of round trips")
    return stairs.beside(panels, names, titles, _HEIGHT)


def by_name(run: Run) -> dict[str, Record]:
    """Every record by what it is called in a table."""
    return {f"{PATHS[path]}, {load(record)}": record for path, own in by_path(run).items() for record in own}


def alt_text(run: Run) -> str:
    """What the picture shows, for a screen reader."""
    text = (
        "Staircase charts, both axes logarithmic: share of round trips that take at least a time, without and"
        " with load. "
    )
    return text + distribution.in_words(by_name(run)) + "."


def table(run: Run) -> Table:
    """Points of every staircase."""
    return distribution.table(by_name(run), "a round trip takes")
