"""What changed between two surveys in words, for a screen and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from latlab.compare.words import would_show
from latlab.fleet.naming import ALARMS, LEAST_HOSTS
from latlab.text import counted, listed, some
from latlab.units import format_factor, format_percent, format_span, format_value

if TYPE_CHECKING:
    from latlab.fleet.changes import Apart, Changes, Compared, OfHost, Part, Shared
    from latlab.run.model import Unit

#: What is said of a host.
HOSTS: Final[dict[OfHost, str]] = {
    "changed": "changed",
    "ok": "like the others",
    "no-peers": "too few of its kind",
    "not-comparable": "not comparable",
}
#: Figures and hosts in the first line.
_MOST: Final = 3


def by(ratio: float, unit: Unit) -> str:
    """`1.30 times slower`, `unchanged`."""
    slower = ratio if unit == "ns" else 1 / ratio
    factor = format_factor(max(slower, 1 / slower), 3)
    if factor == "1.00":
        return "unchanged"
    return f"{factor} times {'slower' if slower > 1 else 'faster'}"


def verdict(found: Changes) -> str:
    """The first line: what changed for which hosts."""
    sentences = [*_shared(found), *_single(found.changed)] or [_nothing(found)]
    for alone, own in zip(found.only, (found.a, found.b), strict=True):
        if alone:
            are = "is" if len(alone) == 1 else "are"
            sentences.append(f"{len(alone):,} {are} only in {own.label}: {some(alone, _MOST)}")
    unlike = [own.name for own in found.hosts if own.kind == "not-comparable"]
    if unlike and found.compared:
        sentences.append(f"{len(unlike):,} cannot be compared: {some(unlike, _MOST)}")
    return f"{'. '.join(sentences)}."


def _shared(found: Changes) -> Iterator[str]:
    """`All 20 hosts: random read 1.30 times slower`."""
    told: dict[str, list[str]] = {}
    for own in found.figures:
        figure = own.figure
        if figure.kind == "changed" and figure.ratio is not None:
            told.setdefault(_who(own, found), []).append(f"{figure.name} {by(figure.ratio, figure.unit)}")
    for who, texts in told.items():
        more = [counted(len(texts) - _MOST, "more figure")] if len(texts) > _MOST else []
        yield f"{who}: {listed([*texts[:_MOST], *more])}"


def of_group(found: Changes, group: int) -> str:
    """`8 hosts (kernel 6.1 to 6.18)`."""
    label, hosts = found.groups[group]
    return f"{counted(hosts, 'host')}{f' ({label})' if label else ''}"


def _who(own: Shared, found: Changes) -> str:
    label, _ = found.groups[own.group]
    told = f" ({label})" if label else ""
    if own.agreeing < own.hosts:
        # A mean that some hosts contradict says nothing of each.
        return f"On average over {counted(own.hosts, 'host')}{told}"
    if own.hosts == 1:
        return next(each.name for each in found.hosts if each.group == own.group)
    return f"{'All ' if own.hosts == found.compared else ''}{counted(own.hosts, 'host')}{told}"


def _single(changed: Sequence[Compared]) -> Iterator[str]:
    """`node7 alone: RAM 2.00 times slower`."""
    told = [f"{own.because[0].name} {by(own.because[0].ratio, own.because[0].unit)}" for own in changed]
    if len(changed) == 1:
        yield f"{changed[0].name} alone: {told[0]}"
    elif changed:
        texts = [f"{own.name} ({text})" for own, text in zip(changed, told, strict=True)]
        yield f"{len(changed):,} hosts changed otherwise than the others: {some(texts, _MOST)}"


def _nothing(found: Changes) -> str:
    hosts = counted(found.compared, "host")
    if found.kind == "not-comparable":
        why = next((own.why for own in found.hosts if own.why), "no figure was measured on both sides")
        return f"Not comparable: {why}"
    if found.kind == "same":
        number = sum(own.figure.kind == "same" for own in found.figures)
        return f"The same within {format_percent(found.same)} on {hosts}: all {number} headline figures"
    seen = f"; {would_show(found.visible, 'the figures', 0)}" if found.visible else ""
    return f"Nothing demonstrably changed on {hosts}{seen}"


def circumstances(found: Changes) -> Iterator[str]:
    """What the verdict goes by, and what else differs."""
    yield basis(found)
    if found.environment:
        yield f"What else differs: {'; '.join(found.environment)}."
    yield from limits(found)


def basis(found: Changes) -> str:
    """What the verdict goes by."""
    return (
        f"{' against '.join(map(_part, (found.a, found.b)))}."
        " Each host is compared with itself; hosts are the unit of variance."
    )


def limits(found: Changes) -> Iterator[str]:
    """What is said of single hosts, and how often wrongly."""
    few = [own.name for own in found.hosts if own.kind == "no-peers"]
    if few:
        yield f"Too few of their kind to judge a single host ({LEAST_HOSTS} are needed): {some(few, _MOST)}."
    if len(few) < found.compared:
        yield f"False alarms on single hosts: one pair of surveys in {1 / ALARMS:,.0f}."


def _part(own: Part) -> str:
    return f"{own.label} ({counted(own.hosts, 'host')}, {counted(own.runs, 'run')})"


def of_host(own: Compared) -> Iterator[str]:
    """What is to say of a host, a line each."""
    if own.why:
        yield own.why
    if own.kind == "no-peers" and own.largest is not None:
        name, unit, ratio = own.largest
        yield f"largest change: {name} {by(ratio, unit)}"
    for each in own.because:
        yield reason(each)
    yield from own.differs


def reason(own: Apart) -> str:
    """`RAM: 105 ns to 210 ns, 2.00 times slower; others unchanged; relative to them …`."""
    before, after = (format_value(value, own.unit) for value in (own.a, own.b))
    ends = (own.low, own.high) if own.relative > 1 else (1 / own.high, 1 / own.low)
    span = format_span(*ends, lambda value: format_factor(value, 3))
    return (
        f"{own.name}: {before} to {after}, {by(own.ratio, own.unit)}; others {by(own.others, own.unit)};"
        f" relative to them {by(own.relative, 'ns')} ({span})"
    )
