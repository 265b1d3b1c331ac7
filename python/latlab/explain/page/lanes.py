"""Each thread, and each stage, over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from latlab.explain.answer import UNEXPLAINED, percent
from latlab.explain.model import WAITS, Explained, Lane
from latlab.explain.page.series import Series, time_axis
from latlab.text import clean
from latlab.units import format_count, format_ns
from latlab.view.axes import names_y
from latlab.view.drawing import inline, layered
from latlab.view.table import Column, Table, table_of

TITLE: Final = "What did each thread do?"
STAGES_TITLE: Final = "When did each stage run?"
_WIDTH, _ROW = 640, 24
_MOST_LANES: Final = 16
_MOST_STAGES: Final = 16
_CELLS: Final = 240
"""Parts of a lane that a screen can show."""
_ALL: Final = 0.99
_IDLE: Final = frozenset({*WAITS, UNEXPLAINED})
Cell = tuple[float, float, str, float]


def lanes(explained: Explained) -> list[Lane]:
    """The busiest threads, in the order in which they began."""
    timeline = explained.timeline
    chosen = sorted(timeline.threads, key=lambda lane: -_busy(explained, lane))[:_MOST_LANES]
    return [lane for lane in timeline.threads if lane in chosen]


def _busy(explained: Explained, lane: Lane) -> float:
    names = explained.timeline.thread_names
    return sum(span[1] * span[3] for span in lane.spans if names[span[2]] not in _IDLE)


def _processes(explained: Explained) -> dict[int, str]:
    return {each.pid: each.name for each in explained.processes}


def _label(processes: Mapping[int, str], process: int, thread: int) -> str:
    """A thread as people know it."""
    name = clean(processes.get(process, ""), most=20) or "process"
    if not process:
        return "the program"
    return f"{name} {process}" if thread in (process, 0) else f"{name} {process}, thread {thread}"


def cells(explained: Explained, lane: Lane, parts: int = _CELLS) -> list[Cell]:
    """A lane as so many stretches at most: from, to, what most of it was, and which share of it."""
    names = explained.timeline.thread_names
    width = explained.timeline.end_s / parts
    filled: list[dict[str, float]] = [defaultdict(float) for _ in range(parts)]
    covered = [0.0] * parts
    exact: list[Cell] = []
    for begin, seconds, name, share in lane.spans:
        exact.append((begin, begin + seconds, names[name], share))
        at = begin
        while at < begin + seconds and width > 0:
            number = min(int(at / width), parts - 1)
            to = min((number + 1) * width, begin + seconds) if number < parts - 1 else begin + seconds
            to = max(to, at + width * 1e-6)
            filled[number][names[name]] += (to - at) * share
            covered[number] += to - at
            at = to
    if len(exact) <= parts:
        return exact
    out: list[Cell] = []
    for number, sums in enumerate(filled):
        if not sums:
            continue
        most = max(sums, key=sums.__getitem__)
        end = number * width + min(covered[number], width)
        cell = (number * width, end, most, sums[most] / covered[number])
        out.append(_joined(out, cell))
    return out


def _joined(before: list[Cell], cell: Cell) -> Cell:
    """The cell, together with the one before it where both are all of the same."""
    if not before:
        return cell
    last = before[-1]
    # All but rounding.
    together = (
        last[2] == cell[2] and min(last[3], cell[3]) > _ALL and cell[0] - last[1] < 0.01 * (cell[1] - cell[0])
    )
    if not together:
        return cell
    before.pop()
    return (last[0], cell[1], cell[2], min(last[3], cell[3]))


def chart(explained: Explained, series: Series) -> alt.LayerChart | None:
    """A lane a thread."""
    rows = []
    shown, processes = lanes(explained), _processes(explained)
    names = [_label(processes, lane.process, lane.thread) for lane in shown]
    for lane, name in zip(shown, names, strict=True):
        for begin, end, category, share in cells(explained, lane):
            rows.append(
                {
                    "lane": name,
                    "series": series.of(category),
                    "x": 1e9 * begin,
                    "x2": 1e9 * end,
                    "share": share,
                    "text": f"{category}"
                    f"{'' if share > _ALL else f' {percent(share)}'} of {format_ns(1e9 * (end - begin))}"
                    f" from {format_ns(1e9 * begin)}",
                }
            )
    return _drawn(rows, names, explained.timeline.end_s, series.color({str(row["series"]) for row in rows}))


def _drawn(
    rows: list[dict[str, Any]], names: Sequence[str], end_s: float, color: alt.Color | None
) -> alt.LayerChart | None:
    if not rows or end_s <= 0:
        return None
    once = list(dict.fromkeys(names))
    y = names_y("lane", once, {"labelLimit": 220}, paddingInner=0.25, paddingOuter=0.1)
    faint = alt.FillOpacity("share:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.25, 1]))
    mark = alt.Chart().mark_bar() if color is not None else alt.Chart().mark_bar(style="level")
    encoded = mark.encode(
        x=time_axis(end_s),
        x2=alt.X2("x2:Q"),
        y=y,
        fillOpacity=faint,
        tooltip=alt.Tooltip("text:N"),
        **({"color": color} if color is not None else {}),
    )
    height = _ROW * len(set(names))
    return layered([encoded], data=inline(rows), width=_WIDTH, height=max(height, 2 * _ROW))


def caption(explained: Explained) -> str:
    """How to read it."""
    timeline = explained.timeline
    left = len(timeline.threads) - len(lanes(explained)) + timeline.threads_left_out
    parts = ["The colour shows what most of a stretch was; the fainter, the smaller that part."]
    if timeline.grain_s:
        parts.append(f"Stretches shorter than {format_ns(1e9 * timeline.grain_s)} are part of others.")
    if left:
        parts.append(f"{left:,} threads are not shown: these are the busiest.")
    if "on-cpu-or-ready" in timeline.thread_names:
        parts.append("on-cpu-or-ready: a scan cannot distinguish the two.")
    return " ".join(parts)


def alt_text(explained: Explained) -> str:
    """What the picture shows, for a screen reader."""
    return f"A lane for each of {len(lanes(explained))} threads over time, coloured by what it did."


def table(explained: Explained) -> Table:
    """A row a thread: seconds by what most of its stretches were."""
    timeline = explained.timeline
    columns = (Column("thread"), *(Column(name, "seconds") for name in timeline.thread_names))
    rows: list[tuple[str | float, ...]] = []
    processes = _processes(explained)
    for lane in timeline.threads:
        sums = [0.0] * len(timeline.thread_names)
        for _, seconds, name, share in lane.spans:
            sums[name] += seconds * share
        rows.append((_label(processes, lane.process, lane.thread), *sums))
    return Table(columns, tuple(rows))


def stage_names(explained: Explained) -> list[str]:
    """The stages that took longest, longest first."""
    times: dict[str, float] = defaultdict(float)
    for row in explained.timeline.stages:
        times[row.name] += sum(span[3] for span in row.spans)
    return sorted(times, key=lambda name: -times[name])[:_MOST_STAGES]


def stages_chart(explained: Explained) -> alt.LayerChart | None:
    """A lane a stage."""
    shown = stage_names(explained)
    labels = {name: clean(name, most=28) for name in shown}
    rows = []
    processes = _processes(explained)
    budget = max(_CELLS * 4 // max(len(explained.timeline.stages), 1), 60)
    for row in explained.timeline.stages:
        if row.name not in labels:
            continue
        for begin, seconds, times, busy in coarser(row.spans, budget):
            often = "once" if times == 1 else f"{format_count(times)} times, {format_ns(1e9 * busy)} of it"
            rows.append(
                {
                    "lane": labels[row.name],
                    "x": 1e9 * begin,
                    "x2": 1e9 * (begin + seconds),
                    "share": busy / seconds if seconds > 0 else 1.0,
                    "text": f"{labels[row.name]}, {_label(processes, row.process, row.thread)}:"
                    f" {format_ns(1e9 * seconds)} from {format_ns(1e9 * begin)}, {often}",
                }
            )
    return _drawn(rows, list(labels.values()), explained.timeline.end_s, None)


def coarser(
    spans: Sequence[tuple[float, float, int, float]], most: int
) -> list[tuple[float, float, int, float]]:
    """So many spans at most: the nearest neighbours become one."""
    kept = list(spans)
    grain = 0.0
    while len(kept) > most:
        grain = 2 * grain if grain else (kept[-1][0] + kept[-1][1]) / (4 * most)
        out = [kept[0]]
        for begin, seconds, times, busy in kept[1:]:
            first = out[-1]
            if begin + seconds - first[0] <= grain:
                out[-1] = (first[0], begin + seconds - first[0], first[2] + times, first[3] + busy)
            else:
                out.append((begin, seconds, times, busy))
        kept = out
    return kept


def stages_table(explained: Explained) -> Table:
    """A row a stage and thread."""
    processes = _processes(explained)
    return table_of(
        [row for row in explained.timeline.stages if row.spans],
        ("stage", "text", lambda row: clean(row.name, most=60)),
        ("thread", "text", lambda row: _label(processes, row.process, row.thread)),
        ("times", "count", lambda row: sum(span[2] for span in row.spans)),
        ("in it", "seconds", lambda row: sum(span[3] for span in row.spans)),
        ("first", "seconds", lambda row: row.spans[0][0]),
        ("last ended", "seconds", lambda row: row.spans[-1][0] + row.spans[-1][1]),
    )
