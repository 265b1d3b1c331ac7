"""Files over the network: one, many, and how many at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from latlab.run.findings import ends, findings, positive, stated
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.text import clean
from latlab.topics import network_concurrency, network_phases, network_workers, transfers
from latlab.topics.transfers import CONNECTIONS, PATHS, PROBE
from latlab.units import format_bytes, format_digits, format_rate, format_span
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.prose import Notice
from latlab.view.table import Cell, Column, Listing, Table
from latlab.view.topic import Topic

#: A speed-up whose interval is wider than this by a factor says nothing.
_WIDEST: Final = 2.0
#: Medians of a few blocks may lie this much above what ten files allow.
_ABOVE_THE_MOST: Final = 1.05
_EXPERIMENT: Final = (
    Column("ten files, connections"),
    Column("path"),
    Column("by"),
    Column("one worker (95 %)"),
    Column("six workers (95 %)"),
    Column("times as fast", "number"),
    Column("95 %"),
    Column("at most", "number"),
)
_MODEL: Final = (
    Column("transfer"),
    Column("measured (95 %)"),
    Column("model", "ns"),
    Column("model / measured", "number"),
    Column("round trips", "number"),
    Column("of these window and pace", "number"),
    Column("software's part", "ns"),
    Column("limited by"),
)
_KNEES: Final = (
    Column("transfers"),
    Column("knee", "count"),
    Column("95 % from", "count"),
    Column("95 % to", "count"),
    Column("foretold", "number"),
    Column("from", "number"),
    Column("to", "number"),
    Column("plateau (95 %)"),
    Column("remarks"),
)
_ONE_OR_MANY: Final = (
    Column("path"),
    Column("connections"),
    Column("one of 1,000 KiB (95 %)"),
    Column("ten of 100 KiB (95 %)"),
    Column("ten by six (95 %)"),
    Column("ten / one"),
)
#: Of the server that the user names; every figure with its 95 % interval.
_NAMED: Final = (
    Column("connections"),
    Column("one transfer"),
    *(Column(phase) for phase in transfers.PHASES),
    Column("bytes"),
    Column("transfers", "count"),
)
#: Python's engines, by the point's `engine`.
_ENGINES: Final = {"latlab": "latlab", "python-requests": "Python, requests", "python-httpx": "Python, httpx"}
_LESSON_WORKERS: Final = 6
#: 10 / ceil(10 / 6).
_LESSON_MOST: Final = 5


def _listings(run: Run) -> Iterator[Listing]:
    """The experiment, the model and the knees."""
    for title, columns, rows in (
        ("One transfer of --url by its phases", _NAMED, _named_server(run)),
        ("Ten files by six workers", _EXPERIMENT, _experiment(run)),
        ("The model beside the measurement", _MODEL, _model(run)),
        ("Knees", _KNEES, _knees(run)),
        ("One file or many", _ONE_OR_MANY, _one_or_many(run)),
    ):
        if rows:
            yield Listing(title, Table(columns, tuple(rows)))


def _named(row: Machine) -> tuple[str, str, str] | None:
    size, connections, path = row.integer("file_bytes"), row.text("connections"), row.text("path")
    if size is None or size <= 0 or connections not in CONNECTIONS or path not in PATHS:
        return None
    return format_bytes(size), str(connections), PATHS[path]


def _speed_up(row: Machine) -> float | None:
    """How many times as fast the pool was; nothing where there is a doubt."""
    return None if _doubt(row) else positive(row, "speed_up")


def _doubt(row: Machine) -> str:
    """Why it is not known how much faster the pool was; empty where it is."""
    times, spread = positive(row, "speed_up"), ends(row, "speed_up")
    ceiling = positive(row, "ceiling")
    if times is None or spread is None:
        return "it was measured once"
    if spread[1] > spread[0] * _WIDEST:
        return "the sets differ too much among themselves"
    if ceiling is not None and times > ceiling * _ABOVE_THE_MOST:
        return (
            f"{times:.3g} is more than ten files allow: the sets of one worker were kept from their work by"
            " something that left those of six alone"
        )
    return ""


def _named_server(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in findings(run, PROBE).sections("named"):
        connections = row.text("connections")
        if connections not in CONNECTIONS:
            continue
        phases = [stated(row.section("phases_ns"), name) or None for name in transfers.PHASES]
        bodies = transfers.ends(row, "bodies_bytes")
        rows.append(
            (
                CONNECTIONS[connections],
                stated(row, "time_ns"),
                *phases,
                format_span(*bodies, lambda size: format_bytes(round(size))) if bodies else "0",
                row.integer("transfers"),
            )
        )
    return rows


def _experiment(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "ten_files"):
        named, engine = _named(row), row.text("engine")
        if named is None or engine not in _ENGINES or row.integer("workers") != _LESSON_WORKERS:
            continue
        spread = ends(row, "speed_up")
        between = format_span(*spread, "{:.3g}".format) if spread else None
        figures = [stated(row, name) for name in ("sequential_ns", "pool_ns")]
        times = _speed_up(row)
        size, connections, path = named
        who = (f"{size}, {connections}", path, _ENGINES[engine])
        rows.append((*who, *figures, times, between, positive(row, "ceiling")))
    return rows


def _model(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "singles"):
        kind, model = transfers.kind_of(row), row.section("model")
        if kind is None or positive(model, "time_ns") is None:
            continue
        rows.append(
            (
                kind.name,
                stated(row, "time_ns"),
                positive(model, "time_ns"),
                positive(model, "over_measured"),
                positive(model, "round_trips"),
                model.number("slow_start"),
                positive(model, "floor_ns"),
                row.text("verdict") or "unknown",
            )
        )
    return rows


def _knees(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "knees"):
        kind, knee = transfers.kind_of(row), transfers.count(row, "knee")
        if kind is None or (knee is None and not row.text("not_found")):
            continue
        low, high = ends(row, "knee") or (None, None)
        foretold = ends(row, "foretold") or (None, None)
        rows.append(
            (
                kind.name,
                knee,
                low,
                high,
                positive(row, "foretold"),
                *foretold,
                stated(row, "plateau_bytes_per_s", format_rate),
                _remarks(row),
            )
        )
    return rows


def _remarks(row: Machine) -> str:
    """How closely the knee is known, and what came of foretelling it."""
    reason = row.text("not_found")
    if reason:
        least = transfers.count(row, "at_least")
        why = clean(reason, most=200)
        return f"{why}; the knee is at {least} or more" if least else why
    words = []
    below, knee = transfers.count(row, "below"), transfers.count(row, "knee")
    if row.flag("one_step") is False and below and knee:
        words.append(f"nothing between {below} and {knee} was measured: the time was up")
    if row.flag("beyond"):
        words.append("the goodput still rises at the end")
    verified = row.flag("verified")
    if verified is None:
        words.append("not foretold")
    else:
        words.append(f"foretold{'' if verified else ' not'} within a factor of 2")
    if positive(row, "foretold") and not ends(row, "foretold"):
        words.append("no interval of that: measured once")
    return "; ".join(words)


def _one_or_many(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "one_or_many"):
        path, connections = row.text("path"), row.text("connections")
        if path in PATHS and connections in CONNECTIONS:
            times = (stated(row, f"{name}_ns") for name in ("one", "many", "pool"))
            rows.append((PATHS[path], connections, *times, stated(row, "many_over_one", "{:.2g}".format)))
    return rows


def _sentences(run: Run) -> tuple[str, ...]:
    sentences = []
    for row in transfers.rows(run, "ten_files")[:1]:
        named = _named(row)
        one, six = (positive(row, name) for name in ("sequential_ns", "pool_ns"))
        if named and one and six and row.integer("workers") == _LESSON_WORKERS:
            size, connections, path = named
            files = f"Ten files of {size} over the {path}, {CONNECTIONS[connections]}"
            times, spread = _speed_up(row), ends(row, "speed_up")
            allowed = f"ten files allow {positive(row, 'ceiling') or _LESSON_MOST:.3g}"
            if times is not None and spread is not None:
                sentences.append(
                    f"{files}: {stated(row, 'sequential_ns')} one after the other,"
                    f" {stated(row, 'pool_ns')} by six workers: {times:.2f} times as fast"
                    f" (95 % interval {spread[0]:.2f} to {spread[1]:.2f}), where {allowed}."
                )
            else:
                both = " to ".join(format_digits(end, 2) for end in spread or ())
                between = f" (95 % interval {both})" if spread else ""
                sentences.append(
                    f"{files}: by how much six workers are faster is not known{between}, because"
                    f" {_doubt(row)}; {allowed}."
                )
    for row in transfers.rows(run, "knees")[:1]:
        kind, knee = transfers.kind_of(row), transfers.count(row, "knee")
        interval, foretold = ends(row, "knee"), positive(row, "foretold")
        reason = row.text("not_found")
        if kind and knee:
            known = f"95 % interval {interval[0]:.0f} to {interval[1]:.0f}" if interval else "measured once"
            plateau = stated(row, "plateau_bytes_per_s", format_rate)
            text = (
                f"With {kind.name}, {knee} at once ({known})"
                f" reach{'es' if knee == 1 else ''} 80 % of the {plateau} there is to get"
            )
            if foretold:
                text += f"; foretold from one transfer: {stated(row, 'foretold', '{:.1f}'.format)}"
            sentences.append(f"{text}.")
        elif kind and reason:
            sentences.append(f"With {kind.name} no knee was found: {clean(reason, most=200)}.")
    return tuple(sentences)


def _notices(run: Run) -> tuple[Notice, ...]:
    words = transfers.route_words(run, "emulated")
    if "first byte only" not in words:
        return ()
    return (
        Notice(
            "warning",
            "There is no path: the server waits instead",
            "Round trips of connecting and of slow start are missing. Only the time to the first byte is that"
            " of a distance; no model, knee or speed-up is concluded for it.",
            "Allow user namespaces, or run as root, for a path between two namespaces.",
        ),
    )


def _congestion_control(run: Run) -> list[str]:
    names = [row.text("congestion_control") for row in transfers.rows(run, "paths")]
    known = dict.fromkeys(clean(name, most=40) for name in names if name)
    paced = " and leave at a pace, as BBR has it"
    return [
        f"The server's congestion control is {name}; the model's windows double with each round trip"
        f"{paced if name.startswith('bbr') else ''}."
        for name in known
    ]


def _unmeasured(run: Run) -> list[str]:
    lines = []
    for row in findings(run, PROBE).sections("python"):
        engine, reason = row.text("engine"), row.text("not_measured")
        if engine in _ENGINES and reason:
            lines.append(f"Not measured by {_ENGINES[engine]}: {clean(reason, most=200)}.")
    return lines


def _evidence(run: Run) -> Iterator[str]:
    yield from filter(None, [transfers.route_words(run, "emulated")])
    yield from _congestion_control(run)
    yield from _unmeasured(run)
    yield from evidence(run, PROBE)


def _is_shown(run: Run) -> bool:
    drawn = any(not isinstance(chart.of(run), Absent) for chart in TOPIC.charts)
    return drawn or any(_listings(run))


TOPIC: Final = Topic(
    network_phases.CHART,
    others=(network_workers.CHART, network_concurrency.CHART),
    id="network_transfer",
    title="What does a file cost that comes over the network, and how many should come at once?",
    shown=_is_shown,
    prose=_sentences,
    listings=_listings,
    notices=_notices,
    evidence=_evidence,
)
