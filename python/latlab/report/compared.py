"""Two sides of runs as one page: the verdict, what changed, every figure, and both sides in every chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from latlab.charts import named, overlay
from latlab.charts.many import Machine
from latlab.compare import Comparison, Side, words
from latlab.compare import Figure as Compared
from latlab.errors import UserError
from latlab.fleet import change_words
from latlab.fleet.changes import Changes
from latlab.installed import version
from latlab.report import html
from latlab.report.document import Chapter, Document, Figure, Section, cleaned
from latlab.run.saving import save
from latlab.text import cut_apart
from latlab.topics import front
from latlab.units import format_factor, format_ns, format_span, format_stated, format_value
from latlab.view import forest
from latlab.view.drawing import plain_spec, unchecked
from latlab.view.prose import Notice
from latlab.view.table import Column, Listing, Table, table_of

#: Rows of a picture, and of the table of what changed: more say no more.
_MOST_ROWS: Final = 40
#: Operations of which the causes are shown.
_MOST_TAILS: Final = 8
#: An interval that reaches as far to both sides says no more.
_FAR: Final = 10
#: Characters of a side's label in a picture.
_SHORT: Final = 16
#: How to read a picture of ratios.
_ABOUT_RATIOS: Final = (
    "The second side over the first, with the corrected interval; the shaded band counts as the "
    "same. An interval that reaches the edge continues beyond it. For bytes a second, more is better."
)
_TIERS: Final = {
    "clock": "Clock",
    "cpu": "CPU",
    "memory": "Memory",
    "vm": "Pages",
    "alloc": "Allocation",
    "python": "Python",
    "kernel": "Kernel",
    "storage": "Disk",
    "network": "Network",
}


def write(found: Comparison | Changes, path: Path) -> Path:
    """Writes the page; an older file of that name is replaced.

    Raises:
        UserError: the file cannot be written.
    """
    return save(path, html.render(document(found)).encode("utf-8"))


def document(found: Comparison | Changes) -> Document:
    """The page, ready for the renderer; see :func:`write`."""
    if not isinstance(found, Comparison):
        return _of_surveys(found)
    found = replace(found, a=found.a.whole(), b=found.b.whole())
    chapters = cleaned(tuple(_chapters(found)))
    a, b = found.a, found.b
    return Document(
        title=cleaned(words.verdict(found)),
        facts=cleaned((*_facts(a), *_facts(b), *_machines(found))),
        notices=(),
        sections=tuple(section for chapter in chapters for section in chapter.sections),
        colophon=cleaned(f"latlab {version()} · {len(a.runs)} and {len(b.runs)} runs"),
        chapters=chapters,
    )


def _facts(side: Side) -> Iterator[str]:
    """Which runs a side is."""
    first, last = side.runs[0], side.runs[-1]
    started = [run.header.started.replace("T", " ")[:16] for run in (first, last)]
    many = f"{len(side.runs)} runs, {started[0]} to" if len(side.runs) > 1 else f"run {first.id},"
    called = "" if side.label == first.id else f"{side.label}: "
    yield f"{called}{many} {started[1]}, profile {last.settings.profile}"


def _machines(found: Comparison) -> Iterator[str]:
    """The machine; both where they differ."""
    a, b = (tuple(fact for fact in front.machine_facts(own.runs[-1])) for own in (found.a, found.b))
    yield from a if a == b else (f"{found.a.label}: {', '.join(a)}", f"{found.b.label}: {', '.join(b)}")


def _chapters(found: Comparison) -> Iterator[Chapter]:
    for sections in _verdict(found):
        first = sections[0]
        yield Chapter(f"chapter-{first.id}", first.title, "What changed", sections, folded=False)
    yield Chapter("charts", "Both sides in each chart", "Charts", tuple(_charts(found)))
    tiers = Counter(each.probe.partition(".")[0] for each in found.figures)
    for tier in dict.fromkeys([*(name for name in _TIERS if name in tiers), *tiers]):
        own = [each for each in found.figures if each.probe.partition(".")[0] == tier]
        title = _TIERS.get(tier, tier)
        yield Chapter(f"figures-{tier}", title, "All figures", tuple(_probes(own, found)))


# --------------------------------------------------------------------------------------------------- verdict


def _verdict(found: Comparison) -> Iterator[tuple[Section, ...]]:
    """What is not folded: each chapter's sections, pictures before tables."""
    notices = (
        [Notice("caution", "What else differs", "; ".join(found.environment))] if found.environment else []
    )
    if found.machines:
        notices.append(
            Notice("warning", "The machines differ", "; ".join(found.machines), "latlab compare … --across")
        )
    headlines = Section(
        id="headlines",
        title="The headline figures",
        sentences=(
            f"Judged by {found.known_from(found.a, found.b)}.",
            *words.more_runs(found),
        ),
        figures=_forest("headline_figures", "The headline figures", found.headline or found.figures, found),
        notices=tuple(notices),
    )
    table = Section(
        id="headline-table",
        title="The headline figures, in numbers",
        listings=(Listing("The headline figures", _table(found.headline, found)),) if found.headline else (),
        evidence=(
            "Headline figures are corrected together: one in twenty comparisons of a machine with "
            "itself reports a change. All others are exploratory: 5 % of those reported as changed "
            "did not change.",
        ),
    )
    yield headlines, table
    others = [each for each in found.figures if each.kind == "changed" and not each.headline]
    judged = sum(not each.headline and each.kind != "not-comparable" for each in found.figures)
    changed = Section(
        id="others",
        title="Other figures that changed",
        sentences=(
            f"{len(others)} of {judged} other figures that can be compared changed"
            f"{f', of which {_MOST_ROWS} are shown' if len(others) > _MOST_ROWS else ''}.",
        ),
        figures=_forest("other_figures", "Other figures that changed", others, found),
    )
    table = Section(
        id="other-table",
        title="Other figures that changed, in numbers",
        listings=(Listing("Other figures that changed", _table(others[:_MOST_ROWS], found)),)
        if others
        else (),
    )
    yield changed, table
    yield (_tails(found),)
    yield (_not_comparable(found),)


def _tails(found: Comparison) -> Section:
    """Slow operations by cause, where p99 changed."""
    reported = [tail for tail in found.tails if tail.whole is not None]
    listings = tuple(
        Listing(
            f"{tail.figure.title}: {format_ns(tail.least_ns)} or longer, {tail.per}",
            table_of(
                [rate for rate in (tail.whole, *tail.causes) if rate is not None],
                ("cause", "text", lambda rate: rate.name or "all of them"),
                (found.a.label, "number", lambda rate: rate.a),
                (found.b.label, "number", lambda rate: rate.b),
                ("ratio", "text", lambda rate: _with_ends(rate.ratio, rate.low, rate.high)),
                ("verdict", "text", lambda rate: words.KINDS[rate.kind]),
            ),
        )
        for tail in reported[:_MOST_TAILS]
    )
    hidden = len(reported) - len(listings)
    return Section(
        id="tails",
        title="Slow operations where p99 changed",
        sentences=(f"{hidden} more p99 changed: latlab compare -v has their causes.",)
        if hidden
        else ()
        if found.tails
        else ("No p99 demonstrably changed.",),
        listings=listings,
        statements=tuple(f"{tail.figure.title}: {tail.words}" for tail in found.tails if tail.why),
    )


def _not_comparable(found: Comparison) -> Section:
    counts = Counter(each.why for each in found.figures if each.kind == "not-comparable")
    probes = {
        why: list(dict.fromkeys(each.probe for each in found.figures if each.why == why)) for why in counts
    }
    table = table_of(
        counts.most_common(),
        ("what differs", "text", lambda row: row[0]),
        ("figures", "count", lambda row: row[1]),
        ("probes", "text", lambda row: ", ".join(probes[row[0]])),
    )
    return Section(
        id="not-comparable",
        title="What cannot be compared",
        sentences=(f"{counts.total()} figures cannot be compared: whether they changed is unknown.",)
        if counts
        else ("Every figure can be compared.",),
        listings=(Listing("Figures that cannot be compared", table),) if counts else (),
    )


# --------------------------------------------------------------------------------------------------- surveys


def _of_surveys(found: Changes) -> Document:
    """The page of two surveys: figures that hosts share, then hosts."""
    groups = tuple(_group(found, group) for group in range(len(found.groups)))
    return cleaned(
        Document(
            title=change_words.verdict(found),
            facts=tuple(f"{own.label}: {own.hosts:,} hosts, {own.runs:,} runs" for own in (found.a, found.b)),
            notices=(Notice("caution", "What else differs", "; ".join(found.environment)),)
            if found.environment
            else (),
            sections=(*groups, _hosts(found)),
            colophon=f"latlab {version()} · surveys",
        )
    )


def _group(found: Changes, group: int) -> Section:
    """The figures of hosts that are alike."""
    several = len(found.groups) > 1
    title = change_words.of_group(found, group) if several else "All hosts together"
    figures = found.of_group(group)
    return Section(
        id=f"group_{group + 1}" if several else "together",
        title=title,
        sentences=(change_words.basis(found),) if group == 0 else (),
        figures=_forest(f"figures_{group}", "Headline figures over hosts", figures, found),
        listings=(Listing("In numbers", _table(figures, found)),),
        evidence=tuple(change_words.limits(found)) if group == 0 else (),
    )


def _hosts(found: Changes) -> Section:
    """A row a host, those that changed otherwise than the others first."""
    rows: list[tuple[str, ...]] = [
        (
            own.name,
            found.groups[own.group][0] if own.group is not None else "",
            change_words.HOSTS[own.kind],
            "; ".join(change_words.of_host(own)),
        )
        for own in found.hosts
    ]
    rows += [
        (name, "", f"only in {own.label}", "")
        for alone, own in zip(found.only, (found.a, found.b), strict=True)
        for name in alone
    ]
    heads = [Column("host"), Column("group"), Column("verdict"), Column("what changed")]
    if not any(label for label, _ in found.groups):
        heads, rows = [heads[0], *heads[2:]], [(name, *rest) for name, _, *rest in rows]
    return Section("hosts", "Single hosts", listings=(Listing("Hosts", Table(tuple(heads), tuple(rows))),))


# ---------------------------------------------------------------------------------------------------- charts


def _charts(found: Comparison) -> Iterator[Section]:
    """Each chart that lays several runs over one another, or which side has no data for it."""
    names = (found.a.label, found.b.label)
    machines = [Machine(side.label, run) for side in (found.a, found.b) for run in side.runs]
    for name in overlay.NAMES:
        chart = named(name)
        try:
            present, notes = overlay.checked(name, machines)
        except UserError:
            absent = {
                side.label: why
                for side in (found.a, found.b)
                if (why := next(iter(chart.absence(run) for run in side.runs), None)) is not None
            }
            why = "; ".join(f"no data in {label}: {reason}" for label, reason in absent.items())
            yield Section(f"chart-{name}", chart.title, absence=why)
            continue
        parts = overlay.common(name, present)
        if not parts:
            yield Section(f"chart-{name}", chart.title, absence="the sides have no point in common")
            continue
        with unchecked():
            spec = plain_spec(overlay.picture(name, present, parts, names, said=False))
        several = max(len(found.a.runs), len(found.b.runs)) > 1
        picture = Figure(
            name,
            chart.title,
            spec,
            f"{chart.title} Both sides: {', '.join(part.name for part in parts)}.",
            _CAPTION[several],
            overlay.table(name, parts),
        )
        yield Section(
            id=f"chart-{name}",
            title=chart.title,
            figures=(picture,),
            evidence=(*notes, *_of_one_side(name, machines)),
        )


_CAPTION: Final = {
    False: "Bars and bands are the interval of the figure's own run. Cross: disturbed, not judged.",
    True: "Several runs: the median, the lowest and the highest; for distributions, the run with the "
    "middle median. Cross: disturbed, not judged.",
}


def _of_one_side(name: str, machines: Sequence[Machine]) -> Iterator[str]:
    """Parts that one side lacks."""
    for part, own in overlay.sides_of(name, machines).items():
        lacking = [side for side in overlay.names_of(machines) if side not in own]
        if lacking:
            yield f"{part}: no data in {' and '.join(lacking)}"


# --------------------------------------------------------------------------------------------------- figures


def _probes(own: Sequence[Compared], found: Comparison) -> Iterator[Section]:
    for probe in dict.fromkeys(each.probe for each in own):
        figures = [each for each in own if each.probe == probe]
        counts = Counter(words.KINDS[each.kind] for each in figures)
        yield Section(
            id=f"probe-{probe}".replace(".", "-"),
            title=probe,
            sentences=(f"{', '.join(f'{count} {kind}' for kind, count in counts.items())}.".capitalize(),),
            figures=_forest(f"of-{probe}", probe, figures, found),
        )


def _forest(
    name: str, title: str, figures: Sequence[Compared], found: Comparison | Changes
) -> tuple[Figure, ...]:
    shown = figures[:_MOST_ROWS]
    if not shown:
        return ()
    one = len({each.probe for each in shown}) == 1
    rows = [_row(_named(each, with_probe=not one), each, found) for each in shown]
    with unchecked():
        spec = plain_spec(forest.drawn(rows, found.same, f"{found.b.label} / {found.a.label}"))
    hidden = f" The first {_MOST_ROWS} of {len(figures)}." if len(figures) > len(shown) else ""
    if one and not any(each.headline for each in shown) and title != shown[0].probe:
        hidden += f" All are of {shown[0].probe}."
    return (
        Figure(
            name,
            title,
            spec,
            "; ".join(row.words for row in rows),
            f"{_ABOUT_RATIOS}{hidden}",
            _table(shown, found),
        ),
    )


def _named(figure: Compared, *, with_probe: bool) -> str:
    """Its name, the point first: the end of a long name is cut off."""
    point = figure.title.removeprefix(f"{figure.probe}: ")
    return f"{point} ({figure.probe})" if with_probe and not figure.headline else point


def _row(name: str, figure: Compared, found: Comparison | Changes) -> forest.Row:
    said, verdict = words.of_figure(figure), figure.verdict
    if figure.ratio is None or verdict is None:
        return forest.Row(name, None, 1.0, 1.0, _in_short(figure, found), f"{figure.title}: {said}")
    return forest.Row(
        name,
        figure.ratio,
        verdict.low,
        verdict.high,
        words.KINDS[figure.kind],
        f"{figure.title}: {_with_ends(figure.ratio, verdict.low, verdict.high)}, {said}",
    )


def _in_short(figure: Compared, found: Comparison | Changes) -> str:
    """Why there is no ratio, where a row has room for few words."""
    if figure.a is None or figure.b is None:
        return f"no data in {cut_apart((found.a.label, found.b.label), _SHORT)[figure.a is not None]}"
    return "not comparable" if figure.kind == "not-comparable" else "disturbed"


def _table(figures: Iterable[Compared], found: Comparison | Changes) -> Table:
    def stated(figure: Compared, side: str) -> str:
        values = figure.a if side == "a" else figure.b
        if values is None:
            return "no data"
        ends = (values.low, values.high) if values.low < values.high else None
        return format_stated(values.value, ends, lambda value: format_value(value, figure.unit))

    def ratio(figure: Compared) -> str | None:
        if figure.ratio is None or figure.verdict is None:
            return None
        return _with_ends(figure.ratio, figure.verdict.low, figure.verdict.high)

    def verdict(figure: Compared) -> str:
        # Its interval stands beside it.
        return words.KINDS["changed"] if figure.kind == "changed" else words.of_figure(figure)

    return table_of(
        figures,
        ("figure", "text", lambda each: each.title),
        ("ratio", "text", ratio),
        ("verdict", "text", verdict),
        (found.a.label, "text", lambda each: stated(each, "a")),
        (found.b.label, "text", lambda each: stated(each, "b")),
    )


def _with_ends(ratio: float, low: float, high: float) -> str:
    """`1.54 (1.48–1.61)`."""
    known = low > 1 / _FAR or high < _FAR
    ends = format_span(low, high, lambda end: format_factor(end, 3)) if known else f"<{1 / _FAR:g}–>{_FAR:g}"
    return f"{format_factor(ratio, 3)} ({ends})"
