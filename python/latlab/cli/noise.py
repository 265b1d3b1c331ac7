"""`latlab noise`."""

from __future__ import annotations

import sys

import click

from latlab.cli.terminal.screen import say, say_json, screen_of, talk
from latlab.errors import UserError, named
from latlab.units import parse_seconds

_LEVELS = ("time-stamps", "interrupt-flag", "rseq", "perf-records", "tracepoints")
#: What is heard must fit into memory.
_LONGEST_S = 3600
_THRESHOLDS_NS = (100, 1e9)


@click.command("noise")
@click.argument("seconds", required=False)
@click.option("--cpu", metavar="N", help="The CPU to measure (default: the quietest).")
@click.option(
    "--threshold",
    metavar="TIME",
    default="1us",
    show_default=True,
    help="Ignore gaps shorter than this.",
)
@click.option(
    "--level",
    type=click.Choice(_LEVELS),
    help="Use at most this evidence (default: all that this user is permitted).",
)
@click.option(
    "--self-test",
    is_flag=True,
    help="Make known disturbances, SECONDS for each of four kinds (default: 2), and report which are found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
@click.pass_context
def command(
    context: click.Context,
    seconds: str | None,
    cpu: str | None,
    threshold: str,
    level: str | None,
    *,
    self_test: bool,
    as_json: bool,
) -> None:
    """Measure for SECONDS (default: 10) what interrupts one CPU.

    A thread that only reads the clock notices every gap. Each gap gets its cause from the evidence
    that this user is permitted; a gap without a cause is shown as unexplained. Needs no root; root sees more.

    \b
    Examples:
      latlab noise
      latlab noise 30 --cpu 3 --threshold 5us
      latlab noise --self-test
      latlab noise --json | jq '.causes[] | {cause, per_s, share_time}'
    """
    duration = _seconds(seconds, default=2.0 if self_test else 10.0)
    number, threshold_ns = _cpu(cpu), _threshold_ns(threshold)
    allowed = None if level is None else level.replace("-", " ")
    from latlab.cli.terminal.noise_table import noise_lines, self_test_lines  # noqa: PLC0415 - for people
    from latlab.run import noise  # noqa: PLC0415 - not needed for --help

    if sys.stderr.isatty():
        what = "making known disturbances and detecting them" if self_test else "measuring"
        talk(f"{what} for {(4 if self_test else 1) * duration:g} s (Ctrl-C ends it)")
    screen = screen_of(sys.stdout)
    interrupted = False
    if self_test:
        found, plain = noise.self_test(duration, cpu=number, level=allowed)
        lines = self_test_lines(found, screen)
    else:
        heard, plain = noise.listen(duration, cpu=number, threshold_ns=threshold_ns, level=allowed)
        interrupted = heard.stopped_by == "interrupted"
        lines = noise_lines(heard, screen)
    if as_json:
        say_json(plain)
    else:
        say(lines)
    if interrupted:
        talk("latlab: interrupted; partial results")
        context.exit(130)


def _seconds(text: str | None, *, default: float) -> float:
    if text is None:
        return default
    seconds = named("SECONDS", parse_seconds, text)
    if seconds > _LONGEST_S:
        raise UserError(f"SECONDS: {text!r} is more than an hour, the longest that can be kept in memory")
    return seconds


def _threshold_ns(text: str) -> float:
    threshold_ns = named("--threshold", parse_seconds, text) * 1e9
    least, most = _THRESHOLDS_NS
    if not least <= threshold_ns <= most:
        raise UserError(
            f"--threshold: {text!r} is not between 100 ns, about the cost of a clock read, and 1 s"
        )
    return threshold_ns


def _cpu(text: str | None) -> int | None:
    if text is None:
        return None
    from latlab.run.settings import checked_cpus  # noqa: PLC0415 - not needed for --help

    cpus = named("--cpu", checked_cpus, text)
    if len(cpus) != 1:
        raise UserError(f"--cpu: {text!r} is more than one CPU; latlab noise measures one")
    return cpus[0]
