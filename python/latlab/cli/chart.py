"""`latlab chart [NAME] RUN... [-o FILE]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from latlab.cli.terminal.screen import Line, say, screen_of, talk
from latlab.errors import UserError
from latlab.nearest import nearest
from latlab.paths import checked_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from latlab.charts.many import Machine
    from latlab.run.run import Run
    from latlab.view.table import Table

_ENDINGS = (".svg", ".png", ".pdf", ".csv")


@click.command("chart")
@click.argument("words", metavar="RUN... [NAME]", nargs=-1, required=True)
@click.option(
    "-o", "--out", metavar="FILE", help="FILE.svg, .png, .pdf or .csv; an existing one is replaced."
)
@click.option("--slide", is_flag=True, help="Draw at 16:9, with machine, date and profile below the title.")
@click.option(
    "--anonymous", is_flag=True, help="Leave out host, user, paths and addresses; machines get numbers."
)
def command(words: tuple[str, ...], out: str | None, *, slide: bool, anonymous: bool) -> None:
    """Write one chart of a run, or of several runs overlaid, as a picture.

    RUN is a file, an id, the start of an id, or `last`. NAME is the chart; it may come first or last.
    Without NAME, list the charts. With several runs and no -o, print what differs. A CSV file holds the
    figures. Pictures need latlab[export].

    \b
    Examples:
      latlab chart last                            list the charts
      latlab chart last hierarchy -o curve.svg
      latlab chart ladder *.latlab.jsonl           how 2 to 30 machines differ
      latlab chart ladder *.latlab.jsonl -o class.pdf
    """
    from latlab.run.run import load  # noqa: PLC0415 - not needed for --help

    target = None if out is None else checked_output(out, _ENDINGS)
    if slide and (target is None or target.suffix.lower() == ".csv"):
        raise UserError("a slide is a picture: name its file, -o slide.png, .svg or .pdf")
    from latlab.charts import CHARTS  # noqa: PLC0415 - imports altair: 0.3 s

    names = [chart.id for chart in CHARTS]
    name, runs = _parted(words, names)
    if len(runs) > 1:
        if name is None:
            from latlab.charts import overlay  # noqa: PLC0415 - only after a mistake

            raise UserError(
                f"which chart of these {len(runs)} runs? Name it first: latlab chart ladder "
                f"{runs[0]} ...; charts: {', '.join(overlay.NAMES)}"
            )
        several = [load(run) for run in runs]
        if anonymous:
            from latlab.run import export  # noqa: PLC0415 - only where it is asked for

            several = export.anonymous(*several)
        _several(name, several, target, slide=slide)
        return
    found = load(runs[0])
    if anonymous:
        found = found.anonymous()
    if name is None:
        if target is not None:
            raise UserError(f"which chart is to be written? {', '.join(names)}")
        _list(found)
        return
    if target is None:
        raise UserError(f"name the file: latlab chart {runs[0]} {name} -o {name}.svg")
    if target.suffix.lower() == ".csv":
        from latlab.charts import shown  # noqa: PLC0415 - imports altair

        _save_table(shown(name, found).table(found), target)
    else:
        from latlab.charts.picture import write  # noqa: PLC0415 - needs the export extra

        write(name, found, target, slide=slide)
    sys.stderr.write(f"wrote {target}\n")


def _parted(words: Sequence[str], names: Sequence[str]) -> tuple[str | None, list[str]]:
    """The chart, which stands first or last, and the runs.

    Raises:
        UserError: There is no run, or no chart of that name.
    """
    for place in (0, -1):
        if words[place] in names:
            runs = list(words[1:] if place == 0 else words[:-1])
            if not runs:
                raise UserError(f"which run? latlab chart {words[place]} last -o {words[place]}.svg")
            return words[place], runs
    if len(words) == 1 or all(map(_is_run, words)):
        return None, list(words)
    # One of the two ends was meant to be a chart.
    meant = words[0] if _is_run(words[-1]) else words[-1]
    guess = nearest(meant, names)
    hint = f"did you mean {guess}?" if guess else f"charts: {', '.join(names)}"
    raise UserError(f"there is no chart {meant!r}; {hint}")


def _is_run(word: str) -> bool:
    from latlab.run.store import Store  # noqa: PLC0415 - only after a mistake

    try:
        return Store().resolve(word).exists()
    except UserError:
        return False


def _several(name: str, runs: list[Run], target: Path | None, *, slide: bool) -> None:
    from latlab import compare  # noqa: PLC0415 - not needed for --help
    from latlab.charts import many, overlay  # noqa: PLC0415 - imports altair

    machines, notes = overlay.checked(name, many.machines_of(runs))
    for note in notes:
        talk(note)
    kept = compare.stored(*(compare.Side("", (each.run,)) for each in machines))
    if target is None:
        _show(name, machines, kept)
        return
    if target.suffix.lower() == ".csv":
        _save_table(overlay.table(name, overlay.parts(name, machines, kept)), target)
    else:
        from latlab.charts.picture import convert  # noqa: PLC0415 - needs the export extra
        from latlab.run.saving import save  # noqa: PLC0415 - not needed for --help

        picture = overlay.standalone(name, machines, kept).to_dict(validate=False)
        line = f"{len(machines)} machines: {', '.join(each.name for each in machines)}" if slide else ""
        save(target, convert(picture, target.suffix.removeprefix(".").lower(), line))
    sys.stderr.write(f"wrote {target}\n")


def _save_table(table: Table, target: Path) -> None:
    from latlab.report.cells import as_csv  # noqa: PLC0415 - not needed for --help
    from latlab.run.saving import save  # noqa: PLC0415 - not needed for --help

    save(target, as_csv(table).encode())


def _show(name: str, machines: Sequence[Machine], kept: Sequence[Run]) -> None:
    """What differs, a line each; of a ladder each machine's figure too."""
    from latlab.charts import overlay  # noqa: PLC0415 - imported by now
    from latlab.cli.terminal.header import machine_parts  # noqa: PLC0415 - not needed for --help
    from latlab.report.cells import shown  # noqa: PLC0415 - not needed for --help

    screen = screen_of(sys.stdout)
    lines: list[Line] = []
    for machine in machines:
        lines += screen.wrapped(
            f"{machine.name}: {' · '.join(machine_parts(machine.run.machine))}", rest="  "
        )
    for part in overlay.parts(name, machines, kept):
        lines += [Line(), *screen.wrapped(f"{part.name}: {part.words}", rest="  ")]
        if list(part.figures) != [""]:
            continue
        width = max(len(figure.machine) for figure in part.figures[""])
        for figure in part.figures[""]:
            sample = figure.sample
            span = f"   {' to '.join(shown(end, 'ns') for end in sample.ends)}" if sample.ends else ""
            doubt = "   disturbed" if sample.disturbed else ""
            lines += screen.wrapped(
                f"  {figure.machine.ljust(width)}  {shown(sample.value, 'ns')}{span}{doubt}", rest="    "
            )
    say(lines)


def _list(run: Run) -> None:
    from latlab.charts import CHARTS  # noqa: PLC0415 - imported by now

    screen = screen_of(sys.stdout)
    width = max(len(chart.id) for chart in CHARTS)
    lines: list[Line] = []
    for chart in CHARTS:
        absence = chart.absence(run)
        text = chart.title if absence is None else f"not in this run: {absence}"
        lines += screen.wrapped(text, first=f"{chart.id.ljust(width)}  ", rest=" " * (width + 2))
    say(lines)
