"""Where these figures are from."""

from __future__ import annotations

from latlab.report.document import Section
from latlab.run.run import Run
from latlab.units import format_count, format_seconds
from latlab.view.prose import sentence
from latlab.view.table import Column, Listing, Table


def section(run: Run) -> Section:
    """The run file, its settings and its rounds."""
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
        ("rounds", run.made_of),
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
    return Section(
        id="provenance",
        title="Where are these figures from?",
        listings=(Listing("The run", Table((Column("what"), Column("value")), tuple(rows))),),
        evidence=(*map(sentence, run.notes),),
    )
