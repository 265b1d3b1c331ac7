"""`latlab predict`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final, cast

import click

from latlab.errors import UserError

if TYPE_CHECKING:
    from latlab.predict.job import Flush


class _JobOrProgram(click.Command):
    """A job in words; of a program another command is in charge."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - as click has it
    ) -> click.Context:
        """The context of the one that the words are for."""
        if not _OF_PROGRAM.isdisjoint(args):
            from latlab.cli.predict_program import command as of_program  # noqa: PLC0415 - only for programs

            return of_program.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Runs the one that the context was made by."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


#: What only a program has.
_OF_PROGRAM: Final = frozenset({"--", "--on", "--if-cached", "--disk"})


@click.command("predict", cls=_JobOrProgram)
@click.argument("words", metavar="JOB...", nargs=-1, required=True)
@click.option(
    "--run", "name", metavar="RUN", default="last", show_default=True, help="By the figures of this run."
)
@click.option("--dir", "directory", metavar="DIR", help="Where it is done. [default: where the run measured]")
@click.option("--block", metavar="SIZE", help="Bytes a call. [default: 128KiB]")
@click.option("--cold", is_flag=True, help="What is read is not in the page cache.")
@click.option("--cached", is_flag=True, help="What is read is in the page cache.")
@click.option("--direct", is_flag=True, help="Past the page cache (O_DIRECT).")
@click.option(
    "--fsync", type=click.Choice(["end", "each", "none"]), help="When it is made durable. [default: none]"
)
@click.option("--read", "reading", is_flag=True, help="Read the files instead of writing them.")
@click.option("--random", is_flag=True, help="Read memory at random instead of in order.")
@click.option("--rtt", metavar="TIME", help="Round trip to the server: 20ms.")
@click.option("--rate", metavar="MBIT", type=float, help="What the path carries, 10^6 bits a second.")
@click.option("--at-once", metavar="N", type=click.IntRange(1, 10_000), default=1, help="Transfers at once.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(
    words: tuple[str, ...],
    *,
    name: str,
    directory: str | None,
    block: str | None,
    cold: bool,
    cached: bool,
    direct: bool,
    fsync: str | None,
    reading: bool,
    random: bool,
    rtt: str | None,
    rate: float | None,
    at_once: int,
    as_json: bool,
) -> int:
    """Say how long a job takes on this machine, as a range, or why that cannot be known.

    The range holds nine of ten times. It comes from the figures of a run and what they differ by from repeat
    to repeat. Nothing is measured and nothing is written.

    \b
    Examples:
      latlab predict read 30GB
      latlab predict read ./data                        what of it is cached counts
      latlab predict write 5GB --fsync end
      latlab predict files 100000 10KB --read --cold
      latlab predict transfers 500 1MB --rtt 80ms --rate 200 --at-once 6
      latlab predict list                               all jobs
      latlab predict --on other.latlab.jsonl -- ./program
      latlab predict --if-cached -- ./program           a program elsewhere, or otherwise

    Options of programs: latlab predict --help --
    """
    from latlab.cli.terminal.predict_lines import list_lines, predict_lines  # noqa: PLC0415 - not for --help
    from latlab.cli.terminal.screen import say, screen_of  # noqa: PLC0415 - see above

    if words == ("list",):
        say(list_lines(screen_of(sys.stdout)))
        return 0
    from latlab.predict import Options, asked  # noqa: PLC0415 - see above
    from latlab.run.run import load  # noqa: PLC0415 - see above
    from latlab.units import parse_seconds, parse_size  # noqa: PLC0415 - see above

    if cold and cached:
        raise UserError("--cold and --cached: name one of them, or none for both answers")
    if rate is not None and not 0 < rate < 1e9:  # noqa: PLR2004 - no path carries more
        raise UserError("--rate takes 10^6 bits a second, above zero")
    options = Options(
        block=parse_size(block) if block else None,
        cache="cold" if cold else "cached" if cached else None,
        direct=direct,
        fsync=cast("Flush | None", fsync),
        reading=reading,
        random=random,
        rtt_s=parse_seconds(rtt) if rtt else None,
        rate=rate * 1e6 / 8 if rate else None,
        at_once=at_once,
    )
    if options.block == 0:
        raise UserError("--block takes a size above zero")
    run = load(name)
    found = asked(words, options, run, directory)
    if as_json:
        sys.stdout.write(json.dumps(found.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    else:
        say(predict_lines(found, run, screen_of(sys.stdout)))
    return 3 if found.refused is not None else 0
