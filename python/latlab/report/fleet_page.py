"""A survey of a fleet as one HTML file, in the form of the report: a row a host, slow ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from latlab.fleet.naming import ALARMS, LEAST_HOSTS
from latlab.fleet.pairs import Links
from latlab.fleet.standings import Failure, Reason, Standing, Survey, Tested
from latlab.installed import version
from latlab.report import fleet_matrix, fleet_strips
from latlab.report.document import Document, Section, cleaned
from latlab.text import listed
from latlab.units import format_factor, format_value
from latlab.view.prose import Notice
from latlab.view.table import Cell, Column, Listing, Table

#: Links of a page; a survey of 1,000 hosts has 3,000.
_MOST_LINKS = 1_000
#: Verdicts for people.
_KINDS = {"slow": "slow", "suspect": "suspect", "ok": "like its peers", "no-peers": "no peers"}
_HEADS = (Column("verdict"), Column("by"), Column("here"), Column("peers"), Column("times slower", "number"))


def render(found: Survey | Links) -> bytes:
    """The whole page."""
    from latlab.report import html  # noqa: PLC0415 - takes some time to import

    return html.render(document(found)).encode("utf-8")


def document(found: Survey | Links) -> Document:
    """The page, ready for a renderer."""
    named = [own.host.name if isinstance(own, Standing) else own.called for own in found.named]
    hosts = len(found.standings if isinstance(found, Survey) else found.hosts)
    verdict = f"{listed(named)}: slow" if named else _nobody(found)
    return cleaned(
        Document(
            title="Links of a fleet" if isinstance(found, Links) else "Hosts of a fleet",
            facts=(
                f"{hosts:,} measured, {len(found.failed):,} failed",
                verdict,
                f"false alarms: one fleet in {1 / ALARMS:,.0f}",
            ),
            notices=tuple(Notice("note", "Of this survey", text) for text in found.notes),
            sections=tuple(_links(found) if isinstance(found, Links) else _hosts(found)),
            colophon=f"latlab {version()} · fleet",
        )
    )


def _nobody(found: Survey | Links) -> str:
    if isinstance(found, Survey) and not found.tests:
        return f"nothing to compare: no class has {LEAST_HOSTS} hosts"
    return "nobody is named"


def _hosts(found: Survey) -> Iterable[Section]:
    rows = [
        (own.host.name, own.number, *_cells(own.kind, own.because), "; ".join(own.differs))
        for own in found.standings
    ]
    rows += [(own.name, None, *_failed(own.reason), "") for own in found.failed]
    heads = (Column("host"), Column("class", "count"), *_HEADS, Column("differs from its peers by"))
    listings = (Listing("Hosts", Table(heads, tuple(rows))), *_classes(found))
    yield Section("hosts", "Which host is slow?", listings=listings)
    if drawn := tuple(fleet_strips.figures(found)):
        yield Section("figures", "How far apart are the hosts?", figures=drawn)
    reasons = [(own.host.name, reason) for own in found.standings for reason in own.because]
    if reasons:
        yield _reasons(reasons)


def _classes(found: Survey) -> Iterable[Listing]:
    """What distinguishes the classes."""
    fields = {own.number: own.host.own_class.fields() for own in found.standings}
    if len(fields) < 2:  # noqa: PLR2004 - one is not distinguished
        return
    names = [name for name in fields[1] if len({own[name] for own in fields.values()}) > 1]
    rows: list[tuple[Cell, ...]] = [
        (number, found.classes[number - 1], *(fields[number][name] for name in names))
        for number in sorted(fields)
    ]
    heads = (Column("class", "count"), Column("hosts", "count"), *map(Column, names))
    yield Listing("Classes: hosts of one are compared with one another", Table(heads, tuple(rows)))


def _links(found: Links) -> Iterable[Section]:
    contention = () if found.contention is None else (found.contention.words,)
    pictures = (fleet_matrix.figure(found),) if found.measured else ()
    yield Section("pairs", "What does each pair have?", sentences=contention, figures=pictures)
    if found.boundaries:
        listing = _listing("Boundaries between groups of hosts", found.boundaries[:_MOST_LINKS])
        yield Section("boundaries", "Which boundary is slow?", listings=(listing,))
    yield Section("hosts", "Which host is slow?", listings=(_listing("Hosts", found.hosts, found.failed),))
    broken = [Failure(f"{a}–{b}", why) for a, b, why in found.broken]
    notes = (f"{len(found.links):,} of {found.possible:,} pairs were measured.",)
    shown = _listing("Links", found.links[:_MOST_LINKS], broken, notes)
    yield Section("links", "Which single link is slow?", listings=(shown,))
    reasons = [(own.called, reason) for own in found.tested for reason in own.because]
    if reasons:
        yield _reasons(reasons)


def _listing(
    title: str, tested: Iterable[Tested], failed: Iterable[Failure] = (), notes: tuple[str, ...] = ()
) -> Listing:
    rows = [(str(own), *_cells(own.kind, own.because)) for own in tested]
    rows += [(own.name, *_failed(own.reason)) for own in failed]
    return Listing(title, Table((Column("name"), *_HEADS), tuple(rows)), notes)


def _cells(kind: str, because: Sequence[Reason]) -> tuple[Cell, ...]:
    """The verdict, and the figure that shows it most clearly."""
    if not because:
        return _KINDS[kind], "", "", "", None
    first = because[0]
    own, peers = (format_value(value, first.unit) for value in (first.value, first.peers))
    return _KINDS[kind], first.name, own, peers, round(first.ratio, 2)


def _failed(reason: str) -> tuple[Cell, ...]:
    return "failed", reason, "", "", None


def _reasons(reasons: Sequence[tuple[str, Reason]]) -> Section:
    heads = ("name", "figure", "here", "peers", "times slower", "95 % from", "95 % to")
    rows = (
        (
            name,
            own.name,
            format_value(own.value, own.unit),
            format_value(own.peers, own.unit),
            *(format_factor(value, 3) for value in (own.ratio, own.low, own.high)),
        )
        for name, own in reasons
    )
    table = Table(tuple(map(Column, heads)), tuple(rows))
    return Section("reasons", "By which figures?", listings=(Listing("All figures that differ", table),))
