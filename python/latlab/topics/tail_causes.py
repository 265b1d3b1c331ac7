"""1-CDF of slow operations, stacked by what kept them: how many, and which share of those that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from latlab.run.disturbances import UNEXPLAINED, cause_name
from latlab.run.model import Record, TailSample
from latlab.run.run import Run
from latlab.topics import slow_operations
from latlab.units import format_count, format_ns, format_percent
from latlab.view.distribution import PROBE as POKES
from latlab.view.figure import Absent
from latlab.view.plot import Drawing, Row
from latlab.view.points import drawable
from latlab.view.table import Table, table_of
from latlab.view.topic import Chart

if TYPE_CHECKING:
    import altair as alt

    from latlab.view.drawing import AnyChart

OTHERS: Final = "other causes"
#: Causes with a colour of their own, and others; what nothing explains has the sixth.
_NAMED = 4
#: Fewer slow operations have no shape.
_FEWEST = 20
#: Where fewer are left, one of them is a jump of a quarter.
_FEWEST_LEFT = 4
_STEPS = 48
#: A name takes so many of them, and so much of a panel's height.
_NAME_STEPS, _THICK = 20, 0.08
_MILLION = 1e6
_WIDTH, _HEIGHT = 300, 160


@dataclass(frozen=True, slots=True)
class Group:
    """Slow operations of one kind.

    Attributes:
        name: What they are.
        operations: Among how many.
        least_ns: All that took longer are known.
        samples: ns and cause of each, ascending.
    """

    name: str
    operations: int
    least_ns: float
    samples: tuple[tuple[float, str], ...]

    @property
    def causes(self) -> tuple[str, ...]:
        """The most frequent first, at most a few; then others, then what nothing explains."""
        counts = Counter(cause for _, cause in self.samples)
        unexplained = counts.pop(UNEXPLAINED, 0)
        names = [name for name, _ in counts.most_common()]
        rest = (OTHERS,) if len(names) > _NAMED + 1 else ()
        kept = names[:_NAMED] if rest else names
        return (*kept, *rest, *((UNEXPLAINED,) if unexplained else ()))

    def counts(self, least_ns: float) -> dict[str, int]:
        """How many of each cause took at least so long."""
        causes = self.causes
        found = dict.fromkeys(causes, 0)
        for value, cause in self.samples:
            if value >= least_ns:
                found[cause if cause in found else OTHERS] += 1
        return found


def groups(run: Run) -> tuple[Group, ...]:
    """The pokes of all arrays; then the disk's and the network's record with most slow operations."""
    pokes = [r for r in run.records if _pokes(r)]
    found = [_group("pokes of all arrays", pokes)] if pokes else []
    for tier in ("storage.", "network."):
        records = [record for record in run.records if record.probe.startswith(tier) and _has_causes(record)]
        # One at a time: several under way together are slow together.
        alone = [record for record in records if (record.point.queue_depth or 1) == 1]
        if alone:
            most = max(alone, key=lambda record: len(record.tail))
            found.append(_group(slow_operations.name_of(most), [most]))
    return tuple(group for group in found if group is not None)


def _pokes(record: Record) -> bool:
    return record.probe == POKES and bool(record.point.working_set_bytes) and _has_causes(record)


def _has_causes(record: Record) -> bool:
    return record.tail_causes is not None and record.value is not None and bool(record.tail)


def _cause(record: Record, sample: TailSample) -> str:
    if sample.cause == "waiting" and record.probe.startswith("storage."):
        return "the disk"
    return cause_name(sample.cause or UNEXPLAINED)


def _group(name: str, records: list[Record]) -> Group | None:
    # Where there was no room for all of them, only the slowest were kept.
    least = max(
        min(sample.value for sample in record.tail) if record.tail_dropped else (record.tail_threshold or 0.0)
        for record in records
    )
    samples = sorted(
        (sample.value, _cause(record, sample))
        for record in records
        for sample in record.tail
        if drawable(sample.value) and sample.value >= least
    )
    operations = sum(record.samples for record in records)
    if len(samples) < _FEWEST or not drawable(least) or operations < len(samples):
        return None
    return Group(name, operations, least, tuple(samples))


def _picture(found: Sequence[Group]) -> Drawing:
    parts = []
    for group in found:
        counts = group.counts(0.0)
        total = sum(counts.values())
        shares = ", ".join(f"{format_percent(count / total)} {cause}" for cause, count in counts.items())
        parts.append(
            f"{format_count(total)} of {format_count(group.operations)} {group.name} took"
            f" {format_ns(group.least_ns)} or longer: {shares}"
        )
    return Drawing(f"Slow operations by what delayed them. {'; '.join(parts)}.", lambda: _drawn(found))


def _drawn(found: Sequence[Group]) -> AnyChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    rows = [_row(group) for group in found]
    return cast("AnyChart", alt.vconcat(*rows, spacing=18).resolve_scale(color="independent"))


def _row(group: Group) -> AnyChart:
    """A kind: how many of a million take at least so long, and what share of them each cause has."""
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import axes  # noqa: PLC0415 - as above

    causes = group.causes
    last = group.samples[-_FEWEST_LEFT][0]
    edges = slow_operations.steps_between(group.least_ns, max(last, 1.05 * group.least_ns), _STEPS)
    many: list[Row] = []
    which: list[Row] = []
    for x in edges:
        counts = group.counts(x)
        total = sum(counts.values())
        if not total:
            break
        below = 0
        for cause in causes:
            top = below + counts[cause]
            text = (
                f"{format_count(counts[cause])} of {format_count(total)} that took {format_ns(x)} or longer:"
                f" {cause}"
            )
            per = _MILLION / group.operations
            many.append({"x": x, "low": below * per, "high": top * per, "series": cause, "text": text})
            which.append({"x": x, "low": below / total, "high": top / total, "series": cause, "text": text})
            below = top
    axis = axes.duration_x("x", "takes at least", edges[0], edges[-1])
    top = 1.05 * max(row["high"] for row in many)
    of_a_million, share = (
        alt.Y(
            "low:Q",
            title=title,
            scale=alt.Scale(domain=[0, end], nice=False),
            axis=alt.Axis(format=form, tickCount=5),
        )
        for title, end, form in (("of a million operations", top, "~s"), (None, 1, "%"))
    )
    return alt.hconcat(
        _panel(many, causes, axis, of_a_million, f"{group.name}: how many", legend=True),
        _panel(which, causes, axis, share, "share of them", legend=False),
        spacing=22,
    )


def _panel(
    rows: list[Row], causes: tuple[str, ...], x: alt.X, y: alt.Y, title: str, *, legend: bool
) -> AnyChart:
    import altair as alt  # noqa: PLC0415 - only who draws needs it

    from latlab.view import drawing  # noqa: PLC0415 - as above

    shown = alt.Legend(title=None, columns=3, symbolType="square", values=list(causes)) if legend else None
    # What nothing explains has the palette's last colour, a grey, however many causes there are.
    named = [cause for cause in causes if cause != UNEXPLAINED]
    domain = [*named, *(f"({place})" for place in range(_NAMED + 1 - len(named))), UNEXPLAINED]
    colour = alt.Color("series:N", legend=shown, scale=alt.Scale(domain=domain))
    base = alt.Chart()
    area = base.mark_area(interpolate="step-after", opacity=0.9)
    layers = [area.encode(x=x, y=y, y2=alt.Y2("high:Q"), color=colour, tooltip=alt.Tooltip("text:N"))]
    if not legend:
        names = alt.Chart(drawing.inline(_names(rows, causes)))
        layers.append(
            names.mark_text(style="on-level", align="left", dx=4).encode(x=x, y=y, text=alt.Text("text:N"))
        )
    return drawing.layered(layers, data=drawing.inline(rows), width=_WIDTH, height=_HEIGHT, title=title)


def _names(rows: list[Row], causes: tuple[str, ...]) -> list[Row]:
    """Each band's name where it stays thick enough for it, so that colour alone tells nothing."""
    found = []
    for cause in causes:
        own = [row for row in rows if row["series"] == cause]
        places = [
            (min(row["high"] for row in room) - max(row["low"] for row in room), room)
            for at in range(len(own) - _NAME_STEPS)
            if (room := own[at : at + _NAME_STEPS])
        ]
        thickness, room = max(places, key=lambda place: place[0], default=(0.0, []))
        if thickness >= _THICK:
            middle = (min(row["high"] for row in room) + max(row["low"] for row in room)) / 2
            found.append({"x": room[0]["x"], "low": middle, "text": cause})
    return found


def _table(found: Sequence[Group]) -> Table:
    """How many took at least so long, by cause."""
    rows = []
    for group in found:
        last = max(group.samples[-1][0], 1.05 * group.least_ns)
        for edge in slow_operations.steps_between(group.least_ns, last, 8)[:-1]:
            rows += [(group.name, edge, cause, count) for cause, count in group.counts(edge).items() if count]
    return table_of(
        rows,
        ("operations", "text", lambda row: row[0]),
        ("takes at least", "ns", lambda row: row[1]),
        ("cause", "text", lambda row: row[2]),
        ("number", "count", lambda row: row[3]),
    )


CHART: Final = Chart(
    id="tail_causes",
    title="What delayed the slow operations?",
    caption="Left: how many of a million operations take at least this long, stacked by what delayed "
    "them. Right: the same as shares. Each operation counts for its largest cause; operations without "
    "evidence are unexplained.",
    probe="",
    measured=lambda run: (
        groups(run) or Absent(f"fewer than {_FEWEST} slow operations of one kind have causes in this run")
    ),
    picture=_picture,
    table=_table,
)
