"""Where these figures are from."""

from __future__ import annotations

from latlab.charts.table import Column, Table
from latlab.report.document import Listing, Section, sentence
from latlab.report.probes import Probes
from latlab.run.run import Run
from latlab.units import format_count, format_seconds


def section(run: Run, probes: Probes) -> Section:  # noqa: ARG001 - every section is called alike
    """The run file, its settings, and how intervals were found."""
    header, settings = run.header, run.settings
    rows: list[tuple[str, str]] = [
        ("run", run.id),
        ("started", header.started),
        ("ended", f"{run.footer.ended}, {run.stopped_by}" if run.footer else run.stopped_by),
        (
            "latlab",
            f"{header.tool.version}{f', commit {header.tool.commit[:12]}' if header.tool.commit else ''}",
        ),
        ("built by", header.tool.build),
        ("schema", header.schema),
        (
            "profile",
            settings.profile + (f", {format_seconds(settings.budget_s)}" if settings.budget_s else ""),
        ),
        ("only", ", ".join(settings.only) or "everything"),
        ("left out", ", ".join(settings.skip) or "nothing"),
        ("seed", str(settings.seed)),
    ]
    if run.footer is not None:
        totals = run.footer.totals
        kinds = ", ".join(f"{count} {kind}" for kind, count in totals.records.items())
        rows += [
            ("took", format_seconds(totals.seconds)),
            ("records", kinds or format_count(len(run.records))),
            ("disturbed blocks", format_count(totals.disturbed_blocks)),
            ("restarts of the measuring process", format_count(totals.worker_restarts)),
        ]
    intervals = sorted(
        {
            method
            for record in run.records
            if record.summary is not None
            for method in record.summary.interval_methods.values()
        }
    )
    found = ", ".join(method.replace("_", " ") for method in intervals)
    return Section(
        id="provenance",
        title="Where are these figures from?",
        listings=(Listing("The run", Table((Column("what"), Column("value")), tuple(rows))),),
        evidence=(
            *((f"95 % intervals by: {found}.",) if found else ()),
            *_second_look(run),
            *map(sentence, run.notes),
        ),
    )


def _second_look(run: Run) -> tuple[str, ...]:
    """What the second look at the end of the run was of, and which intervals it widened."""
    again = run.footer.looked_again if run.footer is not None else ()
    if not again:
        return ()
    own = sum(look.p50 is not None for look in again)
    wide = sum(bool(record.summary and record.summary.between_looks) for record in run.records)
    return (
        f"A second look at the end of the run measured {own} of these medians again. The 95 % intervals of"
        f" {wide} hold what changed until then: where one was not measured again, what the others of its"
        " probe say, or all others of the run. Intervals of other quantiles, and of ratios and fits, are of"
        " one look.",
    )
