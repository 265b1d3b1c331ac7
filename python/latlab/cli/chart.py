"""`latlab chart RUN [NAME -o FILE]`."""

from __future__ import annotations

import sys

import click

from latlab.errors import UserError

_ENDINGS = (".svg", ".png", ".pdf")


@click.command("chart")
@click.argument("run", metavar="RUN")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "-o", "--out", metavar="FILE", help="FILE.svg, FILE.png or FILE.pdf; an existing one is replaced."
)
def command(run: str, name: str | None, out: str | None) -> None:
    """Write one chart of a run as a picture; without NAME, list the charts.

    RUN is a file, an id, the beginning of one, or `last`. Needs latlab[export].

    \b
    Examples:
      latlab chart last                            which charts there are
      latlab chart last hierarchy -o curve.svg
    """
    from latlab.cli.arguments import checked_output  # noqa: PLC0415 - not needed for --help
    from latlab.cli.runs import loaded  # noqa: PLC0415 - see above

    target = checked_output(out, _ENDINGS, may_exist=True)
    found = loaded(run)
    from latlab.charts import CHARTS  # noqa: PLC0415 - imports altair: 0.3 s

    names = [chart.ID for chart in CHARTS]
    if name is None:
        if target is not None:
            raise UserError(f"which chart is to be written? {', '.join(names)}")
        _list(found)
        return
    if name not in names:
        from latlab.cli.nearest import nearest  # noqa: PLC0415 - only after a mistake

        guess = nearest(name, names)
        hint = f"did you mean {guess}?" if guess else f"there are {', '.join(names)}"
        raise UserError(f"there is no chart {name!r}; {hint}")
    if target is None:
        raise UserError(f"name the file: latlab chart {run} {name} -o {name}.svg")
    from latlab.charts.picture import write  # noqa: PLC0415 - needs the export extra

    write(name, found, target)
    sys.stderr.write(f"wrote {target}\n")


def _list(run: object) -> None:
    from latlab.charts import CHARTS  # noqa: PLC0415 - imported by now
    from latlab.cli.terminal.screen import Line, say, screen_of  # noqa: PLC0415 - not needed for --help

    screen = screen_of(sys.stdout)
    width = max(len(chart.ID) for chart in CHARTS)
    lines: list[Line] = []
    for chart in CHARTS:
        absence = chart.absence(run)  # type: ignore[arg-type]
        text = chart.TITLE if absence is None else f"not in this run: {absence}"
        lines += screen.wrapped(text, first=f"{chart.ID.ljust(width)}  ", rest=" " * (width + 2))
    say(lines)
