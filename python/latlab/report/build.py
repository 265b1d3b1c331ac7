"""From a run to a document."""

from __future__ import annotations

from latlab.charts import Chart
from latlab.predict import usual
from latlab.report.document import Document, Front, cleaned
from latlab.report.figures import figure
from latlab.report.probes import Probes, known
from latlab.report.sections import chapters
from latlab.run.run import Run
from latlab.run.textbook import USUAL
from latlab.topics import front
from latlab.topics.surprises import surprises
from latlab.view.prose import Notice


def build(run: Run, probes: Probes | None = None) -> Document:
    """The report of any run, ready for any renderer; `probes` instead of the measuring core's registry."""
    # Cleaned one by one: the sections stand in their chapters too.
    parts = cleaned(tuple(chapters(run, known() if probes is None else probes)))
    return Document(
        title="How long memory, disk, network and kernel operations take on this machine",
        facts=cleaned(front.facts(run)),
        notices=cleaned(_notices(run)),
        sections=tuple(section for chapter in parts for section in chapter.sections),
        colophon=cleaned(f"latlab {run.header.tool.version} · run {run.id}"),
        front=cleaned(_front(run)),
        chapters=parts,
    )


def _front(run: Run) -> Front:
    rungs = {rung.key: rung for rung in run.ladder()}
    shown = [rungs[key] for key in front.ROWS if key in rungs and rungs[key].measured]
    return Front(
        trust=front.trust(run, shown),
        beside=front.beside(shown, USUAL.year),
        cards=tuple(front.cards(rungs)),
        chart=figure(run, Chart(front.FIRST), front.FIRST.caption_of(run), front.answer(run)),
        jobs=tuple((f"{what[:1].upper()}{what[1:]}".rstrip(","), time) for what, time in usual(run)),
        surprises=tuple(front.parted(surprise.text) for surprise in surprises(run)),
    )


def _notices(run: Run) -> tuple[Notice, ...]:
    found = []
    if run.partial:
        found.append(
            Notice(
                "caution",
                f"This run is not complete: {run.stopped_by}",
                "The report shows what was measured, and lists below what is missing.",
            )
        )
    if run.write_error:
        found.append(Notice("warning", "The run file does not hold everything", run.write_error))
    return tuple(found)
