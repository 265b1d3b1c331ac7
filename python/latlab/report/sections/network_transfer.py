"""Files over the network: one, many, and how many at once."""

from __future__ import annotations

from latlab.charts import network_concurrency, network_phases, network_workers
from latlab.charts import network_transfers as transfers
from latlab.charts.network_transfers import CONNECTIONS, PATHS, PROBE
from latlab.charts.table import Cell, Column, Table
from latlab.report.document import Listing, Notice, Section
from latlab.report.evidence import evidence
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import findings, positive
from latlab.run.model import Machine
from latlab.run.run import Run
from latlab.text import clean
from latlab.units import format_bytes, format_ns, format_rate

_TITLE = "What does a file cost that comes over the network, and how many should come at once?"
_PHASES = (
    "Medians of one transfer at a time. connect and tls: a round trip each; first-byte: the request's round"
    " trip; last-byte: the rest of the body, on a new connection mostly waiting for its window to grow."
    " The tick is the model: it knows this run's round trip and rate, and the file's size."
)
_WORKERS = (
    "Ten files of 100 KiB. w workers take ten files in ceil(10 / w) turns: the staircase is the most that is"
    " possible, 5 times with five to nine workers. Bars at six: 95 % interval."
)
_CONCURRENCY = (
    "While all workers have work: neither the start nor the end counts. Bands are 95 % intervals between"
    " blocks; a ring is the knee, the fewest transfers under way that reach 80 % of the highest goodput."
    " Beyond it each one only waits longer."
)
#: A speed-up whose interval is wider than this by a factor says nothing.
_WIDEST = 2.0
#: Medians of a few blocks may lie this much above what ten files allow.
_ABOVE_THE_MOST = 1.05
_EXPERIMENT = (
    Column("ten files"),
    Column("connections"),
    Column("path"),
    Column("by"),
    Column("one worker", "ns"),
    Column("six workers", "ns"),
    Column("times as fast", "number"),
    Column("95 % from", "number"),
    Column("95 % to", "number"),
    Column("at most", "number"),
)
_MODEL = (
    Column("transfer"),
    Column("measured", "ns"),
    Column("model", "ns"),
    Column("model / measured", "number"),
    Column("round trips", "number"),
    Column("of these slow start", "number"),
    Column("software's part", "ns"),
    Column("limited by"),
)
_KNEES = (
    Column("transfers"),
    Column("knee", "count"),
    Column("95 % from", "count"),
    Column("95 % to", "count"),
    Column("foretold", "number"),
    Column("from", "number"),
    Column("to", "number"),
    Column("plateau", "bytes_per_s"),
    Column("foretold within a factor of 2"),
)
_ONE_OR_MANY = (
    Column("path"),
    Column("connections"),
    Column("one of 1,000 KiB", "ns"),
    Column("ten of 100 KiB", "ns"),
    Column("ten by six", "ns"),
    Column("ten / one", "number"),
)
#: Python's engines, by the point's `engine`.
_ENGINES = {"latlab": "latlab", "python-requests": "Python, requests", "python-httpx": "Python, httpx"}
_LESSON_WORKERS = 6


def section(run: Run, probes: Probes) -> Section:
    """The experiment, the model, the knees, and the charts."""
    tables = {
        "Ten files by six workers": Table(_EXPERIMENT, tuple(_experiment(run))),
        "The model beside the measurement": Table(_MODEL, tuple(_model(run))),
        "Knees": Table(_KNEES, tuple(_knees(run))),
        "One file or many": Table(_ONE_OR_MANY, tuple(_one_or_many(run))),
    }
    listings = tuple(Listing(title, table) for title, table in tables.items() if table.rows)
    figures = (
        *figure(run, network_phases.ID, _PHASES),
        *figure(run, network_workers.ID, _WORKERS),
        *figure(run, network_concurrency.ID, _CONCURRENCY),
    )
    return Section(
        id="network_transfer",
        title=_TITLE,
        sentences=_sentences(run),
        listings=listings,
        figures=figures,
        notices=_notices(run),
        evidence=(
            *filter(None, [transfers.route_words(run, "emulated")]),
            *_congestion_control(run),
            *_unmeasured(run),
            *evidence(run, PROBE),
        ),
        methods=probes.methods_of(PROBE),
        absence="" if figures or listings else transfers.absence(run, ()) or "",
    )


def _named(row: Machine) -> tuple[str, str, str] | None:
    size, connections, path = row.integer("file_bytes"), row.text("connections"), row.text("path")
    if size is None or size <= 0 or connections not in CONNECTIONS or path not in PATHS:
        return None
    return format_bytes(size), str(connections), PATHS[path]


def _speed_up(row: Machine) -> float | None:
    """How many times as fast the pool was; nothing where the spread hides it, or where it cannot be."""
    times, spread = positive(row, "speed_up"), transfers.ends(row, "interval")
    ceiling = positive(row, "ceiling")
    if times is None or (ceiling is not None and times > ceiling * _ABOVE_THE_MOST):
        return None
    # Without blocks enough for an interval it stands for itself.
    return times if spread is None or spread[1] <= spread[0] * _WIDEST else None


def _experiment(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "ten_files"):
        named, engine = _named(row), row.text("engine")
        if named is None or engine not in _ENGINES or row.integer("workers") != _LESSON_WORKERS:
            continue
        low, high = transfers.ends(row, "interval") or (None, None)
        figures = [positive(row, name) for name in ("sequential_ns", "pool_ns")]
        times = _speed_up(row)
        rows.append((*named, _ENGINES[engine], *figures, times, low, high, positive(row, "ceiling")))
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
                positive(row, "time_ns"),
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
        if kind is None or knee is None:
            continue
        low, high = transfers.ends(row, "interval") or (None, None)
        foretold = transfers.ends(row, "foretold_interval") or (None, None)
        verified = row.flag("verified")
        words = "not foretold" if verified is None else "yes" if verified else "no"
        if row.flag("beyond"):
            words += "; the goodput still rises at the end"
        rows.append(
            (
                kind.name,
                knee,
                low,
                high,
                positive(row, "foretold"),
                *foretold,
                positive(row, "plateau_bytes_per_s"),
                words,
            )
        )
    return rows


def _one_or_many(run: Run) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for row in transfers.rows(run, "one_or_many"):
        path, connections = row.text("path"), row.text("connections")
        if path in PATHS and connections in CONNECTIONS:
            names = ("one_ns", "many_ns", "pool_ns", "many_over_one")
            rows.append((PATHS[path], connections, *(positive(row, name) for name in names)))
    return rows


def _sentences(run: Run) -> tuple[str, ...]:
    sentences = []
    for row in transfers.rows(run, "ten_files")[:1]:
        named = _named(row)
        one, six = (positive(row, name) for name in ("sequential_ns", "pool_ns"))
        if named and one and six and row.integer("workers") == _LESSON_WORKERS:
            size, connections, path = named
            files = f"Ten files of {size} over the {path}, {CONNECTIONS[connections]}"
            times, spread = _speed_up(row), transfers.ends(row, "interval")
            if times is not None:
                sentences.append(
                    f"{files}: {format_ns(one)} one after the other, {format_ns(six)} by six workers:"
                    f" {times:.2f} times as fast, where ten files allow 5."
                )
            else:
                between = f" (95 % interval {spread[0]:.2g} to {spread[1]:.2g})" if spread else ""
                sentences.append(
                    f"{files}: by how much six workers are faster is not known{between}; the sets differ too"
                    " much among themselves, and ten files allow 5."
                )
    for row in transfers.rows(run, "knees")[:1]:
        kind, knee = transfers.kind_of(row), transfers.count(row, "knee")
        plateau, foretold = positive(row, "plateau_bytes_per_s"), positive(row, "foretold")
        if kind and knee and plateau:
            text = (
                f"With {kind.name}, {knee} at once reach 80 % of the {format_rate(plateau)} there is to get"
            )
            sentences.append(text + (f"; foretold from one transfer: {foretold:.1f}." if foretold else "."))
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
    return [
        f"TCP's congestion control is {name}; the model's windows double with each round trip."
        for name in known
    ]


def _unmeasured(run: Run) -> list[str]:
    lines = []
    for row in findings(run, PROBE).sections("python"):
        engine, reason = row.text("engine"), row.text("not_measured")
        if engine in _ENGINES and reason:
            lines.append(f"Not measured by {_ENGINES[engine]}: {clean(reason, most=200)}.")
    return lines
