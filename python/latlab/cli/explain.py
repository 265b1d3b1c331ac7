"""`latlab explain`."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from latlab.cli.terminal.screen import Line, say, screen_of, talk
from latlab.errors import UserError, named
from latlab.paths import checked_output
from latlab.text import clean
from latlab.units import parse_seconds, parse_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latlab.explain.bench import Streams
    from latlab.explain.judge import Judgement
    from latlab.explain.model import Explained
    from latlab.explain.prove import Proof
    from latlab.run.run import Run

_LONGEST_S = 86_400
_MOST_RUNS = 10_000
#: A shell adds this to the number of the signal that ended a program.
_BY_SIGNAL = 128


class _Tracing(NamedTuple):
    """How much is looked at."""

    level: int
    overhead: float | None


@click.command(
    "explain",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
@click.option("--pid", metavar="PID", help="Watch a running process instead of starting one.")
@click.option("--for", "duration", metavar="TIME", help="With --pid: how long to watch (default: 30s).")
@click.option(
    "--level",
    type=click.Choice(["1", "2", "3"]),
    help="Maximum tracing level: 1 kernel and user samples, 2 user samples, 3 /proc only (default: "
    "the most that this user is permitted).",
)
@click.option(
    "--overhead",
    metavar="SHARE",
    help="Limit recording to this share of the program's CPU time: 2%, 10%, or `unlimited` to record "
    "all of it and, as root, each system call. More gives narrower intervals (default: 5%).",
)
@click.option(
    "--runs",
    metavar="N",
    help="Run the program N times and combine the runs (default: once). Only the first run's output "
    "is shown; a file on standard input is read again each time.",
)
@click.option(
    "--run",
    "run_name",
    metavar="RUN",
    help="Judge by the machine limits in this run: a file, an id or `last` (default: this machine's "
    "newest run that has them; missing limits are measured once, in at most 3 s).",
)
@click.option("--no-limits", is_flag=True, help="Neither measure this machine's limits nor judge by them.")
@click.option(
    "--prove",
    is_flag=True,
    help="Then rerun the program with one change at a time (input in memory, allocator settings, "
    "...) to see what each saves. Shows the number of runs first, and asks.",
)
@click.option("--yes", is_flag=True, help="With --prove: do not ask.")
@click.option(
    "--best-of",
    "best",
    metavar="N",
    help="Run it N times and explain the fastest run. Only the first run's output is shown; a file "
    "on standard input is read again each time.",
)
@click.option(
    "--by",
    "by_what",
    type=click.Choice(["symbol", "line"]),
    help="Also list the CPU time by function or by source line: of the program, its libraries, "
    "Python code, and the kernel where it is visible.",
)
@click.option("--json", "json_file", metavar="FILE", help="Also write everything to FILE as JSON.")
@click.option("--html", "html_file", metavar="FILE", help="Also write an HTML page with charts to FILE.")
@click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    help="Write a timeline of threads and stages to FILE, for chrome://tracing and Perfetto.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Leave host, user, paths and addresses out of what is shown and written.",
)
@click.option(
    "--firefox",
    "firefox_file",
    metavar="FILE",
    help="Write threads, stages and stacks to FILE, for profiler.firefox.com.",
)
@click.pass_context
def command(
    context: click.Context,
    program: tuple[str, ...],
    *,
    pid: str | None,
    duration: str | None,
    level: str | None,
    overhead: str | None,
    runs: str | None,
    run_name: str | None,
    no_limits: bool,
    prove: bool,
    yes: bool,
    best: str | None,
    by_what: Literal["symbol", "line"] | None,
    json_file: str | None,
    html_file: str | None,
    trace_file: str | None,
    firefox_file: str | None,
    anonymous: bool,
) -> None:
    """Run PROGRAM and show where its wall time goes.

    Each instant belongs to one category: what the running threads do, waiting for a CPU, or what
    all threads wait for. The categories sum to 100 %. Needs no root and no rebuild; root sees more. The
    program keeps its output and exit code; results go to standard error. Stages that the program marks itself
    (`latlab stages`; in Python `with latlab.stage("read"):`) are listed with where their time goes.
    Passwords and tokens in its command line are shown as ***.

    \b
    Examples:
      latlab explain -- ./program --its-option
      latlab explain --json where.json -- python3 script.py
      latlab explain --by symbol -- ./program
      latlab explain --html where.html --trace where.trace.json -- make
      latlab explain --runs 100 -- ./short-program
      latlab explain --best-of 3 -- ./count-words < book.txt
      latlab explain --pid 4711 --for 10s
      latlab explain --prove -- ./program     tries what would help
    """
    files = _Files.checked(json_file, html_file, trace_file, firefox_file)
    tracing = _Tracing(int(level or 1), _overhead(overhead))
    if best is not None and (runs is not None or pid is not None or prove):
        raise UserError("--best-of: cannot be combined with --runs, --pid or --prove")
    if yes and not prove:
        raise UserError("--yes: answers the question that --prove asks; add --prove")
    by = _limits_of(run_name, no_limits=no_limits)
    proof = None
    if pid is not None:
        if prove:
            raise UserError(
                "--prove: a running process cannot be started again; name a program instead of --pid"
            )
        explained, plain = _process(program, pid, duration, runs, tracing)
        judgement = _judged(explained, (), by, wanted=not no_limits)
    else:
        if duration is not None:
            raise UserError("--for: needs --pid; a program is watched until it ends")
        if not program:
            raise UserError("explain: name a program to run, as in: latlab explain -- ./program")
        count = _runs(runs)
        streams = _provable(program, yes=yes) if prove else None
        from latlab.explain.inputs import Watch  # noqa: PLC0415 - not needed for --help
        from latlab.explain.run import explain  # noqa: PLC0415 - loads the extension

        watch = Watch(program)
        with watch if prove else contextlib.nullcontext():
            if best is None:
                explained, plain = explain(program, **tracing._asdict(), runs=count or 1)
            else:
                from latlab.explain.best import best_of  # noqa: PLC0415 - loads the extension

                explained, plain = best_of(_runs(best, "--best-of") or 1, program, **tracing._asdict())
        judgement = _judged(explained, watch.files, by, wanted=not no_limits)
        if streams is not None:
            proof = _proved(explained, judgement, program, watch.files, streams, yes=yes)
    if anonymous:
        from latlab.explain import sharing  # noqa: PLC0415 - only where it is asked for

        explained, plain, judgement, proof = sharing.anonymous(explained, plain, judgement, proof)
    _show(explained, judgement, proof, by_what)
    files.write(explained, plain, judgement, proof)
    context.exit(_exit_code(explained))


def _limits_of(name: str | None, *, no_limits: bool) -> Run | None:
    if name is None:
        return None
    if no_limits:
        raise UserError("--run: cannot be combined with --no-limits")
    from latlab.run.run import load  # noqa: PLC0415 - not needed for --help

    return load(name)


def _judged(explained: Explained, inputs: Sequence[Path], by: Run | None, *, wanted: bool) -> Judgement:
    from latlab.explain import judge, limits  # noqa: PLC0415 - not needed for --help

    names = judge.wanted(explained) if wanted else []
    found = limits.find(
        names,
        inputs=inputs,
        run=by,
        calibrate=judge.worth_measuring_for(explained),
        report=lambda text: talk(f"latlab: {text}"),
    )
    return judge.judge(explained, found)


def _provable(program: Sequence[str], *, yes: bool) -> Streams:
    """Refuses before anything is run."""
    from latlab.explain.prove import check  # noqa: PLC0415 - only for --prove

    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            "--prove: reruns the program, with its side effects each time: add --yes, or use a "
            "terminal to be asked"
        )
    return check(program)


def _proved(
    explained: Explained,
    judgement: Judgement,
    program: Sequence[str],
    files: Sequence[Path],
    streams: Streams,
    *,
    yes: bool,
) -> Proof | None:
    from latlab.explain.beside import about_to  # noqa: PLC0415 - only for --prove
    from latlab.explain.prove import agenda, prove, reason_not_to  # noqa: PLC0415 - see above

    reason = reason_not_to(explained)
    if reason is not None:
        talk(f"latlab: --prove: not run again because {reason}")
        return None
    what = agenda(explained, program, files)
    if not what.planned.experiments:
        talk("latlab: --prove: the results suggest no experiment")
        for text in what.planned.left_out:
            talk(f"latlab: {text}")
        return None
    for line in screen_of(sys.stderr).wrapped(f"latlab: {about_to(what)}"):
        talk(line.text)
    if not yes:
        sys.stderr.write("Go on? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            return None
    return prove(explained, judgement, program, what, streams)


def _whole(explained: Explained, plain: bytes, judgement: Judgement, proof: Proof | None) -> bytes:
    """The ledger's JSON with what was made of it."""
    import msgspec  # noqa: PLC0415 - not needed for --help

    from latlab.explain.answer import answer  # noqa: PLC0415 - see above
    from latlab.explain.beside import sentences  # noqa: PLC0415 - see above

    whole = msgspec.json.decode(plain)
    whole["verdict"] = answer(explained).plain() | {"says": sentences(explained, judgement, proof)}
    whole |= msgspec.to_builtins({"bounds": judgement.bounds, "judged": judgement.judged})
    whole["notes"] = [*whole.get("notes", ()), *judgement.notes]
    if proof is not None:
        whole["proof"] = msgspec.to_builtins(proof)
    return msgspec.json.encode(whole)


class _Files(NamedTuple):
    """What is written, and where to."""

    json: Path | None
    html: Path | None
    trace: Path | None
    firefox: Path | None

    @classmethod
    def checked(cls, *names: str | None) -> _Files:
        """The files, before anything is run.

        Raises:
            UserError: One cannot be written, or two are the same.
        """
        targets = [None if name is None else checked_output(name) for name in names]
        named = [target.absolute() for target in targets if target is not None]
        if len(set(named)) < len(named):
            raise UserError("explain: --json, --html, --trace and --firefox: name a different file for each")
        return cls(*targets)

    def write(self, explained: Explained, plain: bytes, judgement: Judgement, proof: Proof | None) -> None:
        """All that was asked for. What cannot be written now costs a line, not the program's exit code."""
        made: list[tuple[Path | None, Callable[[], bytes]]] = [
            (self.json, lambda: _whole(explained, plain, judgement, proof) + b"\n"),
            (self.html, lambda: _page(explained, judgement, proof)),
            (self.trace, lambda: _trace(explained)),
            (self.firefox, lambda: _firefox(explained)),
        ]
        for target, make in made:
            if target is None:
                continue
            try:
                target.write_bytes(make())
            except OSError as error:
                talk(f"latlab: {clean(target, most=200)} cannot be written: {clean(error.strerror or error)}")


def _page(explained: Explained, judgement: Judgement, proof: Proof | None) -> bytes:
    from latlab.explain.page import render  # noqa: PLC0415 - takes some time to import

    return render(explained, judgement, proof)


def _trace(explained: Explained) -> bytes:
    from latlab.explain.trace import chrome  # noqa: PLC0415 - only where it is asked for

    return chrome(explained)


def _firefox(explained: Explained) -> bytes:
    from latlab.explain.firefox import firefox  # noqa: PLC0415 - only where it is asked for

    return firefox(explained)


def _process(
    program: tuple[str, ...], pid: str, duration: str | None, runs: str | None, tracing: _Tracing
) -> tuple[Explained, bytes]:
    from latlab.explain.run import explain_process  # noqa: PLC0415 - loads the extension

    if program:
        raise UserError("--pid: either a process or a program to start, not both")
    if runs is not None:
        raise UserError("--runs: a running process cannot be started again; name a program instead of --pid")
    if not pid.isdecimal() or int(pid) == 0:
        raise UserError(f"--pid: {pid!r} is not a process id")
    seconds = named("--for", parse_seconds, duration or "30s")
    if seconds > _LONGEST_S:
        raise UserError(f"--for: {duration!r} is more than a day")
    return explain_process(int(pid), seconds, **tracing._asdict())


def _overhead(text: str | None) -> float | None:
    if text is None:
        return None
    if text == "unlimited":
        return math.inf
    try:
        return parse_share(text)
    except UserError as error:
        raise UserError(f"--overhead: {error}, or `unlimited`") from None


def _runs(text: str | None, option: str = "--runs") -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_RUNS:
        raise UserError(f"{option}: {text!r} is not a number from 1 to {_MOST_RUNS:,}")
    return int(text)


def _show(
    explained: Explained, judgement: Judgement, proof: Proof | None, by_what: Literal["symbol", "line"] | None
) -> None:
    from latlab.explain import beside, places, table  # noqa: PLC0415 - not needed for --help

    screen = screen_of(sys.stderr)
    lines = [Line()]
    for at, sentence in enumerate(beside.sentences(explained, judgement, proof)):
        lines += screen.wrapped(sentence, style="" if at else "bold")
    lines.append(Line())
    lines += [Line(screen.fit(line)) for line in table.table(explained)]
    for listed in (
        table.stages(explained),
        table.processes(explained),
        table.critical_path(explained),
        table.ended_waits(explained),
        table.locks(explained),
        table.pauses(explained),
        table.calls(explained),
        table.calls_on(explained),
        beside.bounds_table(judgement),
    ):
        if listed:
            lines += [Line(), *(Line(screen.fit(line)) for line in listed)]
    if proof is not None:
        lines += [Line(), *(Line(screen.fit(line)) for line in beside.proof_table(proof))]
        for sentence in beside.proof_lines(proof):
            lines += screen.wrapped(sentence, rest="  ")
    for listed, about in places.places(explained, by_what):
        lines += [Line(), *(Line(screen.fit(line)) for line in listed)]
        lines += screen.wrapped(about, rest="  ")
    lines.append(Line())
    for fact in table.facts(explained):
        lines += screen.wrapped(fact, rest="  ")
    say(lines, sys.stderr)


def _exit_code(explained: Explained) -> int:
    if explained.program.signal is not None:
        return _BY_SIGNAL + explained.program.signal
    return explained.program.exit_code or 0
