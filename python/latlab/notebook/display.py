"""Runs and records in a notebook: one small table each, without scripts, so that saved notebooks keep it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup, escape

from latlab.run.model import QUANTILES, Record
from latlab.run.run import Records, Run
from latlab.run.rung import Rung
from latlab.text import clean
from latlab.topics.surprises import surprises
from latlab.units import format_count, format_ns, format_rate, format_span, format_stated, format_value

_MOST_RECORDS = 20
_BAR_PIXELS = 160
# A notebook may be light or dark: only the bar has a colour of its own, in between.
_BAR = Markup('<div style="background:#3b82c4;height:.8em;width:{}px;border-radius:2px" title="{}"></div>')


def run_html(run: Run) -> str:
    """The levels that were measured, with bars on a log axis, and the strongest surprises."""
    measured = [rung for rung in run.ladder() if rung.latency_p50_ns is not None and rung.latency_p50_ns > 0]
    rungs = [rung for rung in measured if not rung.key.startswith("poke:")] or measured
    cpu = run.machine.text("cpu.model_name") or "unknown processor"
    ending = f", {run.stopped_by}" if run.partial else ""
    head = _line(f"latlab run {run.id} · {cpu} · {format_count(len(run.records))} records{ending}")
    if not rungs:
        return str(head + _line("No level was measured."))
    values = [rung.latency_p50_ns or 1.0 for rung in rungs]
    floor, top = min(values) / 3, max(values)
    rows = [_rung_row(rung, floor, top) for rung in rungs]
    columns = ("level", "one access", "", "slow end", "one thread reads", "= L1 hits")
    points = Markup("").join(
        Markup("<li>{}</li>").format(clean(surprise.text)) for surprise in surprises(run)
    )
    listed = Markup("<ol>{}</ol>").format(points) if points else Markup("")
    return str(head + _table(columns, rows) + listed)


def _rung_row(rung: Rung, floor: float, top: float) -> tuple[str | Markup, ...]:
    latency = rung.latency_p50_ns or floor
    pixels = round(_BAR_PIXELS * math.log(latency / floor) / math.log(top / floor))
    size = f", {rung.size_text}" if rung.size_text else ""
    text = format_stated(rung.latency_p50_ns, rung.interval, why_none=rung.why_no_interval)
    slow = (
        f"{format_ns(rung.tail.value_ns)}, {rung.tail.quantile} of {rung.tail.kind}"
        if rung.tail
        else rung.refused
    )
    hits = f"{rung.l1_hits:,.0f}" if rung.l1_hits is not None else ""
    rate = format_rate(rung.bandwidth) if rung.bandwidth is not None else ""
    return (f"{rung.level}{size}", text, _BAR.format(max(pixels, 2), text), slow, rate, hits)


def record_html(record: Record) -> str:
    """What was measured, its quantiles with intervals, and its proofs."""
    head = _line(f"{record.label} · {record.kind.replace('_', ' ')} · {format_count(record.samples)} samples")
    rows: list[tuple[str | Markup, ...]] = []
    summary = record.summary
    if summary is not None:
        for name in (*QUANTILES, "mean", "std", "min", "max"):
            value = getattr(summary, name)
            if value is not None:
                ends = summary.intervals.get(name)
                span = format_span(*ends, lambda end: format_value(end, record.unit)) if ends else ""
                span = span or (record.why_no_interval if name == "p50" else "")
                rows.append((name, format_value(value, record.unit), span))
        rows += [(name, "not available", reason) for name, reason in summary.refused.items()]
    rows += [(check.name, "held" if check.ok else "failed", check.detail) for check in record.checks]
    rows += [("flag", flag, "") for flag in record.flags]
    if record.error is not None:
        rows.append(("not measured", record.error.kind, record.error.text))
    return str(head + _table(("", "value", "95 % interval, or why"), rows))


def records_html(records: Records) -> str:
    """The first records, a line each."""
    rows = [_record_row(record) for record in records[:_MOST_RECORDS]]
    more = len(records) - len(rows)
    note = _line(f"and {format_count(more)} more: .to_pandas() returns all") if more > 0 else Markup("")
    return str(
        _line(f"{format_count(len(records))} records")
        + _table(("probe", "point", "median", "samples", ""), rows)
        + note
    )


def _record_row(record: Record) -> tuple[str | Markup, ...]:
    remark = record.error.text if record.error is not None else ", ".join(record.flags)
    value = format_value(record.value, record.unit) if record.value is not None else "–"
    return (record.probe, record.point.label(), value, format_count(record.samples), remark)


def _line(text: str) -> Markup:
    return Markup("<p>{}</p>").format(clean(text))


def _table(columns: Iterable[str], rows: Iterable[Iterable[str | Markup]]) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(column) for column in columns)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_cell(cell)) for cell in row)
        )
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _cell(cell: str | Markup) -> Markup:
    return cell if isinstance(cell, Markup) else escape(clean(cell))
