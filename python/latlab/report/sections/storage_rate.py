"""A disk that is asked at a given rate."""

from __future__ import annotations

import math

from latlab.charts import storage_rate as chart
from latlab.report.disk import commands, device_times, disk_evidence, notices, sound
from latlab.report.document import Section
from latlab.report.figures import figure
from latlab.report.probes import Probes
from latlab.run.findings import found
from latlab.run.model import Record
from latlab.run.run import Run
from latlab.units import format_count, format_ns

_CAPTION = (
    "Requests come at random moments (Poisson), whether or not earlier ones are done. Response:"
    " since a request"
    " was due, with its waiting. Service: since it was handed over."
)
#: Intervals that lie so far apart are more than what two points differ by anyway.
_SLEPT = 1.1


def section(run: Run, probes: Probes) -> Section:
    """Response and service against rate."""
    doubts = notices(run, chart.PROBE)
    records = chart.records(run)
    return Section(
        id="storage_rate",
        title=chart.TITLE,
        sentences=_sentences(run),
        listings=device_times(run, chart.PROBE),
        figures=figure(run, chart.ID, _CAPTION),
        notices=doubts,
        evidence=(
            *_behind(run),
            *_limit(records),
            *disk_evidence(run, chart.PROBE),
            *commands(records[len(records) // 2 : len(records) // 2 + 1]),
        ),
        methods=probes.methods_of(chart.PROBE),
        absence=chart.absence(run) or "",
    )


def _sentences(run: Run) -> tuple[str, ...]:
    records = [record for record in sound(run, chart.records(run)) if chart.kept_up(record)]
    if not records:
        return ()
    first, last = records[0], records[-1]
    text = (
        f"At {format_count(first.point.rate_per_s)} a second a request is answered in"
        f" {format_ns(first.value)}"
    )
    if last is first:
        return (f"{text}.",)
    text += f", at {format_count(last.point.rate_per_s)} in {format_ns(last.value)}."
    quickest = min(records, key=lambda record: record.value or math.inf)
    if first.interval and quickest.interval and first.interval[0] > _SLEPT * quickest.interval[1]:
        return (
            text,
            "Asked seldom it answers later, as where a disk, its host or a CPU falls asleep in between.",
        )
    return (text,)


def _limit(records: list[Record]) -> tuple[str, ...]:
    """Why no faster rates were asked for."""
    one = next(
        (rate for record in records if (rate := found(record).number("one_at_a_time_per_s"))),
        None,
    )
    if one is None:
        return ()
    return (
        f"One at a time, in a short trial, the disk read {format_count(round(one))} blocks a second;"
        " rates beyond that are not asked for.",
    )


def _behind(run: Run) -> tuple[str, ...]:
    late = [record for record in chart.records(run) if not chart.kept_up(record)]
    rates = ", ".join(f"{format_count(record.point.rate_per_s)} a second" for record in late)
    return (f"Did not keep up: {rates}; waiting there grows for as long as it lasts.",) if late else ()
