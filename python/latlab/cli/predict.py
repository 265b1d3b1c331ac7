"""`latlab predict`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from latlab.errors import UserError

if TYPE_CHECKING:
    from latlab.predict import Job, Options, Prediction
    from latlab.predict.place import Place
    from latlab.predict.plan import Step
    from latlab.run.run import Run

_REFUSED = 3
_REST = "rest"

_OF_JOB = (
    click.option("--block", metavar="SIZE", help="Bytes per call. [default: 128KiB]"),
    click.option("--cold", is_flag=True, help="The data is not in the page cache."),
    click.option("--cached", is_flag=True, help="The data is in the page cache."),
    click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT)."),
    click.option(
        "--fsync",
        type=click.Choice(["end", "each", "none"]),
        help="When writes are made durable. [default: none]",
    ),
    click.option("--read", "reading", is_flag=True, help="Read files or blocks instead of writing them."),
    click.option(
        "--depth",
        metavar="N",
        type=click.IntRange(1, 4096),
        default=1,
        help="Queue depth: concurrent random blocks.",
    ),
    click.option("--random", is_flag=True, help="Read memory at random instead of sequentially."),
    click.option("--rtt", metavar="TIME", help="Round-trip time to the server: 20ms."),
    click.option("--rate", metavar="MBIT", type=float, help="Bandwidth of the path in Mbit/s."),
    click.option(
        "--at-once",
        metavar="N",
        type=click.IntRange(1, 10_000),
        default=1,
        help="Concurrent transfers.",
    ),
    click.option(
        "--connections",
        type=click.Choice(["new", "kept"]),
        help="A new connection for each transfer, or kept ones.",
    ),
    click.option("--https", is_flag=True, help="Use TLS on new connections."),
)


def _job_options(function: Any) -> Any:  # noqa: ANN401 - as click's own
    for option in reversed(_OF_JOB):
        function = option(function)
    return function


class _JobOrProgram(click.Command):
    """A job in words; of a program alone another command is in charge."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - as click has it
    ) -> click.Context:
        """The context of the one that the words are for."""
        from latlab.predict.job import KINDS  # noqa: PLC0415 - not for --help

        before = args[: args.index("--")] if "--" in args else ()
        of_job = "--verify" in before or not KINDS.keys().isdisjoint(before)
        if not of_job and not _OF_PROGRAM.isdisjoint(args):
            from latlab.cli.predict_program import command as of_program  # noqa: PLC0415 - only for programs

            return of_program.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps apart what stands after `--`: the program that verifies an answer."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_REST] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Runs the one that the context was made by."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


#: What only a program has.
_OF_PROGRAM: Final = frozenset({"--", "--on", "--if-cached", "--disk"})


@click.command("predict", cls=_JobOrProgram)
@click.argument("words", metavar="JOB...", nargs=-1)
@click.option(
    "--run", "name", metavar="RUN", help="Use the figures of this run. [default: the newest that has them]"
)
@click.option("--dir", "directory", metavar="DIR", help="Directory of the job. [default: that of the run]")
@_job_options
@click.option("--plan", metavar="FILE", help="Predict the jobs of a TOML file, sequential or concurrent.")
@click.option("--measure", is_flag=True, help="Measure what the job needs first, and keep that run.")
@click.option(
    "--calibrate", is_flag=True, help="Run 22 jobs here for three minutes, and fit ranges to their times."
)
@click.option("--verify", is_flag=True, help="Run the program after --, and store its time with the answer.")
@click.option("--record", is_flag=True, help="Show how many verified predictions were within their range.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def command(context: click.Context, /, words: tuple[str, ...], *, as_json: bool, **options: Any) -> int:  # noqa: ANN401
    """Predict how long a job takes on this machine, as a range, or say why that is unknown.

    After --calibrate, the range contains nine of ten kinds of jobs. Before, it covers
    the variation between repeats. Nothing is measured or written without --measure, --calibrate or --verify.

    \b
    Examples:
      latlab predict read 30GB
      latlab predict read ./data                        checks what is cached
      latlab predict write 5GB --fsync end
      latlab predict files 100000 10KB --read --cold
      latlab predict transfers 500 1MB --rtt 80ms --rate 200 --at-once 6
      latlab predict --plan nightly.toml
      latlab predict read 2GB --cold --verify -- cat data.bin
      latlab predict list                               all jobs
      latlab predict --on other.latlab.jsonl -- ./program
      latlab predict --if-cached -- ./program           programs; also on another machine

    Options of programs: latlab predict --help --
    """
    from latlab.cli.terminal.predict_lines import list_lines, predict_lines  # noqa: PLC0415 - not for --help
    from latlab.cli.terminal.screen import say, say_json, screen_of  # noqa: PLC0415 - see above

    screen, program = screen_of(sys.stdout), context.meta[_REST]
    what = _what(words, program, options)
    if what == "list":
        say(list_lines(screen))
    elif what == "calibrate":
        _calibrate(options["directory"], options["name"])
    elif what == "record":
        from latlab.predict.verify import record_lines  # noqa: PLC0415 - see above

        say([line for text in record_lines() for line in screen.wrapped(text, rest="  ")])
    else:
        found, run = _planned(options) if what == "plan" else _asked(words, options)
        if what == "verify":
            _verify(found, program, options["directory"] or run.machine.text("dir.path"), quiet=as_json)
        if as_json:
            say_json(found.as_json())
        else:
            say(predict_lines(found, run, screen))
        return _REFUSED if found.refused is not None else 0
    return 0


def _what(words: Sequence[str], program: Sequence[str], options: dict[str, Any]) -> str:
    """What is asked for: of several things that exclude each other one.

    Raises:
        UserError: none, or several.
    """
    named = [name for name in ("calibrate", "record", "verify", "plan") if options[name]]
    if len(named) > 1:
        raise UserError(f"--{named[0]} and --{named[1]}: name one of them")
    what = named[0] if named else "job"
    if words and what in {"calibrate", "record", "plan"}:
        raise UserError(f"--{what} takes no job")
    if (what == "verify") != bool(program):
        raise UserError("--verify and a program after -- go together: read 2GB --cold --verify -- cat FILE")
    if what in {"job", "verify"} and not words:
        raise UserError("name a job, as read 30GB; `latlab predict list` shows them")
    return "list" if tuple(words) == ("list",) else what


def _options(given: dict[str, Any]) -> Options:
    """How a job is done.

    Raises:
        UserError: that is contradictory.
    """
    from latlab.predict import Options  # noqa: PLC0415 - not for --help
    from latlab.units import parse_seconds, parse_size  # noqa: PLC0415 - see above

    if given["cold"] and given["cached"]:
        raise UserError("--cold and --cached: name one of them, or none for both answers")
    rate, block = given["rate"], given["block"]
    if rate is not None and not 0 < rate < 1e9:  # noqa: PLR2004 - no path carries more
        raise UserError("--rate takes Mbit/s above zero")
    options = Options(
        block=parse_size(block) if block else None,
        cache="cold" if given["cold"] else "cached" if given["cached"] else None,
        rtt_s=parse_seconds(given["rtt"]) if given["rtt"] else None,
        rate=rate * 1e6 / 8 if rate else None,
        **{name: given[name] for name in _SAME},
    )
    if options.block == 0:
        raise UserError("--block takes a size above zero")
    return options


_SAME = ("direct", "fsync", "reading", "depth", "random", "at_once", "connections", "https")


def _asked(words: Sequence[str], given: dict[str, Any]) -> tuple[Prediction, Run]:
    from latlab.predict import asked, parsed  # noqa: PLC0415 - not for --help

    job, place = parsed(words, _options(given))
    run = _run([job], given)
    return asked(job, run, given["directory"], place), run


def _planned(given: dict[str, Any]) -> tuple[Prediction, Run]:
    from latlab.predict import planned  # noqa: PLC0415 - not for --help

    steps = _steps(given["plan"])
    run = _run([job for step in steps for job in step.jobs], given)
    return planned(steps, run, given["directory"]), run


def _run(jobs: Sequence[Job], given: dict[str, Any]) -> Run:
    """The run that answers: a new one where that is asked for."""
    from latlab.predict import newest, probes_of  # noqa: PLC0415 - not for --help

    probes = sorted({probe for job in jobs for probe in probes_of(job)})
    if not given["measure"]:
        return newest(probes, given["name"])
    if given["name"]:
        raise UserError("--measure and --run: name one of them")
    from latlab.predict.work import measuring_s  # noqa: PLC0415 - only where something is measured
    from latlab.run.measure import measure  # noqa: PLC0415 - see above

    seconds = measuring_s(probes)
    sys.stderr.write(f"measuring {', '.join(probes)}: about {seconds} s\n")
    return measure(probes, dir=given["directory"], budget=seconds)


def _steps(name: str) -> list[Step]:
    """The steps of a plan.

    Raises:
        UserError: the file is none.
    """
    import tomllib  # noqa: PLC0415 - only for plans
    from pathlib import Path  # noqa: PLC0415 - see above

    from latlab.predict import Step  # noqa: PLC0415 - see above
    from latlab.text import clean  # noqa: PLC0415 - see above

    shown = clean(name, most=200)
    try:
        steps = tomllib.loads(Path(name).read_text(encoding="utf-8")).get("step")
    except OSError as error:
        raise UserError(f"{shown}: {clean(error.strerror)}") from None
    except ValueError as error:
        raise UserError(f"{shown} is not a TOML file: {clean(error, most=200)}") from None
    found = []
    for step in steps if isinstance(steps, list) else ():
        jobs = step.get("jobs") if isinstance(step, dict) else None
        if not isinstance(jobs, list) or not jobs or not all(isinstance(job, str) for job in jobs):
            raise UserError(f'{shown}: each [[step]] has jobs = ["read 3GB --cold", …]')
        found.append(Step(tuple(_job_of(shlex.split(job))[0] for job in jobs), step.get("at_once") is True))
    if not found:
        raise UserError(f'{shown} has no [[step]] with jobs = ["read 3GB --cold", …]')
    return found


@click.command(add_help_option=False)
@click.argument("words", nargs=-1)
@_job_options
def _job(words: tuple[str, ...], **given: Any) -> tuple[Job, Place | None]:  # noqa: ANN401 - those of jobs
    from latlab.predict import parsed  # noqa: PLC0415 - not for --help

    return parsed(words, _options(given))


def _job_of(words: list[str]) -> tuple[Job, Place | None]:
    """The job in a plan's line.

    Raises:
        UserError: it is none.
    """
    try:
        found: tuple[Job, Place | None] = _job.main(words, "predict", standalone_mode=False)
    except click.UsageError as error:
        raise UserError(f"{shlex.join(words)}: {error.format_message()}") from None
    return found


def _calibrate(directory: str | None, name: str | None) -> None:
    from latlab.predict import kept  # noqa: PLC0415 - not for --help
    from latlab.predict.calibrate import SECONDS, WRITES, calibrate  # noqa: PLC0415 - see above

    def say(line: str) -> None:
        sys.stderr.write(line + "\n")

    say(f"at most {SECONDS // 60} minutes; writes {WRITES >> 30} GiB in a folder that is removed afterwards")
    found = kept.calibration(calibrate(directory, name, say))
    if found is None:
        raise UserError(f"fewer than {kept.LEAST_KINDS} kinds of jobs could be run: ranges stay uncalibrated")
    sys.stdout.write(
        f"{found.kinds} kinds of jobs: ranges are {found.factor:.2f} times as wide as the model's,"
        f" and contain {found.level:.0%} of kinds\n"
    )


def _verify(found: Prediction, program: Sequence[str], directory: str | None, *, quiet: bool) -> None:
    from latlab.predict.verify import verify  # noqa: PLC0415 - not for --help

    outcome = verify(found, program, directory)
    if not quiet:
        word = "within" if outcome.held else "outside of"
        sys.stdout.write(f"took {outcome.actual:.3g} s: {word} the range\n")
