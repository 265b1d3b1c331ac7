"""Files over the network: one, many, and how many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from latlab.run.findings import ends, findings, positive, stated
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.text import clean
from latlab.topics import network_concurrency, network_phases, network_workers, transfers
from latlab.topics.transfers import CONNECTIONS, PATHS, PROBE, Kind
from latlab.units import format_bytes, format_digits, format_rate, format_span
from latlab.view.evidence import evidence
from latlab.view.figure import Absent
from latlab.view.prose import Notice
from latlab.view.table import Cell, Listing, Quantity, listed
from latlab.view.topic import Topic

#: A speed-up whose interval is wider than this by a factor says nothing.
_WIDEST: Final = 2.0
#: Medians of a few blocks may lie this much above what ten files allow.
_ABOVE_THE_MOST: Final = 1.05
#: Python's engines, by the point's `engine`.
_ENGINES: Final = {"latlab": "latlab", "python-requests": "Python, requests", "python-httpx": "Python, httpx"}
_LESSON_WORKERS: Final = 6
#: 10 / ceil(10 / 6).
_LESSON_MOST: Final = 5


def _listings(run: Run) -> Iterator[Listing]:
    """The server that the user named, the experiment, the model, the knees, and one file beside many."""
    yield from listed(
        "One transfer of --url by its phases",
        [row for row in findings(run, PROBE).sections("named") if row.text("connections") in CONNECTIONS],
        ("connections", "text", lambda row: CONNECTIONS[str(row.text("connections"))]),
        ("one transfer", "text", lambda row: stated(row, "time_ns")),
        *map(_phase, transfers.PHASES),
        ("bytes", "text", _bodies),
        ("transfers", "count", lambda row: row.integer("transfers")),
    )
    yield from listed(
        "Ten files by six workers",
        [
            (*named, row)
            for row in transfers.rows(run, "ten_files")
            if (named := _named(row)) is not None
            and row.text("engine") in _ENGINES
            and row.integer("workers") == _LESSON_WORKERS
        ],
        ("ten files, connections", "text", lambda at: f"{at[0]}, {at[1]}"),
        ("path", "text", lambda at: at[2]),
        ("by", "text", lambda at: _ENGINES[str(at[3].text("engine"))]),
        ("one worker (95 %)", "text", lambda at: stated(at[3], "sequential_ns")),
        ("six workers (95 %)", "text", lambda at: stated(at[3], "pool_ns")),
        ("times as fast", "number", lambda at: _speed_up(at[3])),
        ("95 %", "text", lambda at: _between(at[3])),
        ("at most", "number", lambda at: positive(at[3], "ceiling")),
    )
    yield from listed(
        "The model beside the measurement",
        [at for at in _of_kinds(run, "singles") if positive(at[1], "model.time_ns") is not None],
        ("transfer", "text", lambda at: at[0].name),
        ("measured (95 %)", "text", lambda at: stated(at[1], "time_ns")),
        ("model", "ns", lambda at: positive(at[1], "model.time_ns")),
        ("model / measured", "number", lambda at: positive(at[1], "model.over_measured")),
        ("round trips", "number", lambda at: positive(at[1], "model.round_trips")),
        ("of these window and pace", "number", lambda at: at[1].number("model.slow_start")),
        ("software's part", "ns", lambda at: positive(at[1], "model.floor_ns")),
        ("limited by", "text", lambda at: at[1].text("verdict") or "unknown"),
    )
    yield from listed(
        "Knees",
        [at for at in _of_kinds(run, "knees") if transfers.count(at[1], "knee") or at[1].text("not_found")],
        ("transfers", "text", lambda at: at[0].name),
        ("knee", "count", lambda at: transfers.count(at[1], "knee")),
        ("95 % from", "count", lambda at: _end(at[1], "knee", 0)),
        ("95 % to", "count", lambda at: _end(at[1], "knee", 1)),
        ("foretold", "number", lambda at: positive(at[1], "foretold")),
        ("from", "number", lambda at: _end(at[1], "foretold", 0)),
        ("to", "number", lambda at: _end(at[1], "foretold", 1)),
        ("plateau (95 %)", "text", lambda at: stated(at[1], "plateau_bytes_per_s", format_rate)),
        ("remarks", "text", lambda at: _remarks(at[1])),
    )
    yield from listed(
        "One file or many",
        [row for row in transfers.rows(run, "one_or_many") if row.text("connections") in CONNECTIONS],
        ("path", "text", lambda row: PATHS[str(row.text("path"))]),
        ("connections", "text", lambda row: row.text("connections")),
        ("one of 1,000 KiB (95 %)", "text", lambda row: stated(row, "one_ns")),
        ("ten of 100 KiB (95 %)", "text", lambda row: stated(row, "many_ns")),
        ("ten by six (95 %)", "text", lambda row: stated(row, "pool_ns")),
        ("ten / one", "text", lambda row: stated(row, "many_over_one", "{:.2g}".format)),
    )


def _of_kinds(run: Run, name: str) -> list[tuple[Kind, Machine]]:
    """The rows of one of its conclusions that say what they are about."""
    return [(kind, row) for row in transfers.rows(run, name) if (kind := transfers.kind_of(row)) is not None]


def _phase(name: str) -> tuple[str, Quantity, Callable[[Machine], Cell]]:
    return name, "text", lambda row: stated(row.section("phases_ns"), name) or None


def _bodies(row: Machine) -> str:
    both = transfers.ends(row, "bodies_bytes")
    return format_span(*both, lambda size: format_bytes(round(size))) if both else "0"


def _between(row: Machine) -> str | None:
    spread = ends(row, "speed_up")
    return format_span(*spread, "{:.3g}".format) if spread else None


def _end(row: Machine, name: str, which: int) -> float | None:
    both = ends(row, name)
    return both[which] if both else None


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
        return "the sets differ too much from one another"
    if ceiling is not None and times > ceiling * _ABOVE_THE_MOST:
        return (
            f"{times:.3g} is more than ten files allow: something slowed down the sets of one worker "
            "but not those of six"
        )
    return ""


def _remarks(row: Machine) -> str:
    """How closely the knee is known, and what came of foretelling it."""
    if reason := row.text("not_found"):
        least = transfers.count(row, "at_least")
        why = clean(reason, most=200)
        return f"{why}; the knee is at {least} or more" if least else why
    words = []
    below, knee = transfers.count(row, "below"), transfers.count(row, "knee")
    if row.flag("one_step") is False and below and knee:
        words.append(f"nothing between {below} and {knee} was measured: the time was used up")
    if row.flag("beyond"):
        words.append("the goodput still rises at the end")
    verified = row.flag("verified")
    if verified is None:
        words.append("not predicted")
    else:
        words.append(f"predicted{'' if verified else ' not'} within a factor of 2")
    if positive(row, "foretold") and not ends(row, "foretold"):
        words.append("no interval of that: measured once")
    return "; ".join(words)


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
                    f"{files}: the speed-up of six workers is unknown{between}, because "
                    f"{_doubt(row)}; {allowed}."
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
                text += f"; predicted from one transfer: {stated(row, 'foretold', '{:.1f}'.format)}"
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
            "No emulated path: the server waits instead",
            "Round trips of connecting and of slow start are missing. Only the time to the first "
            "byte is that of a distance; no model, knee or speed-up is derived from it.",
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
    title="What does downloading a file cost, and how many should be downloaded at once?",
    shown=_is_shown,
    prose=_sentences,
    listings=_listings,
    notices=_notices,
    evidence=_evidence,
)
