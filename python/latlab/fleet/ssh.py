"""A survey of hosts that are reached by ssh: the lines that measure them, printed or run.

ssh decides by its own settings whom it trusts: no check of host keys is turned off.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Final

from latlab.fleet.host import damage, hosts, tell_apart
from latlab.fleet.standings import Failure, Survey, judged
from latlab.run.death import last_words
from latlab.text import clean

#: Connections at a time: sshd takes ten that are not signed in yet, of one client, before it drops some.
_AT_ONCE: Final = 64
#: What a measurement may take besides its own time: signing in, starting, the way back.
EXTRA_S: Final = 90.0


def remote_command(asked: Mapping[str, object]) -> str:
    """What the shell of a host is to run: a measurement whose file comes on standard output.

    Args:
        asked: Settings by the names of the options of `latlab measure`; None is as if not given.
    """
    options = [
        word for name, value in asked.items() if value is not None for word in (f"--{name}", str(value))
    ]
    measure = shlex.join(
        ["latlab", "measure", *options, "--no-report", "--quiet", "--out", "run.latlab.jsonl"]
    )
    return (
        f'folder=$(mktemp -d) && cd "$folder" && {measure} > /dev/null && cat run.latlab.jsonl;'
        ' code=$?; rm -r "$folder"; exit $code'
    )


def lines(found: list[str], asked: Mapping[str, object], folder: str) -> list[str]:
    """The lines of a shell that make a run file of each host in a folder."""
    command = shlex.quote(remote_command(asked))
    files = [shlex.quote(f"{folder}/{host}.latlab.jsonl") for host in found]
    return [
        f"mkdir -p {shlex.quote(folder)}",
        *(f"ssh {host} {command} > {file} < /dev/null &" for host, file in zip(found, files, strict=True)),
        "wait",
        f"latlab fleet merge {shlex.quote(folder)}",
    ]


def survey(
    found: list[str],
    asked: Mapping[str, object],
    folder: Path,
    most_s: float,
    say: Callable[[str], object],
) -> Survey:
    """Measures hosts by ssh, and compares each with the others of its class.

    Args:
        found: The hosts.
        asked: As :func:`remote_command` takes them.
        folder: Where the run files go.
        most_s: How long a host may take, seconds.
        say: Told of each host.
    """
    command = remote_command(asked)
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        files = {host: folder / f"{host}.latlab.jsonl" for host in found}
        waiting = {pool.submit(_measured, host, command, files[host], most_s): host for host in found}
        for number, done in enumerate(as_completed(waiting), 1):
            host = waiting[done]
            if reason := done.result():
                failed[host] = reason
            say(f"{number} of {len(found)}: {host}: {reason or 'measured'}")
    called = {file: host for host, file in files.items() if host not in failed}
    tell_apart(called)
    failures = tuple(Failure(host, reason) for host, reason in sorted(failed.items()))
    return replace(judged(*hosts(called, called)), failed=failures)


def _measured(host: str, command: str, file: Path, most_s: float) -> str:
    """Why a host could not be measured; empty where its run file is there."""
    try:
        with file.open("xb") as out:
            done = subprocess.run(  # noqa: S603 - the user's ssh, and hosts that were checked
                ["ssh", "-o", "BatchMode=yes", host, command],  # noqa: S607 - see above
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=most_s,
                check=False,
            )
        if done.returncode == 0:
            reason = damage(file)
        else:
            reason = last_words(done.stderr).removeprefix("latlab: ") or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        reason = f"no answer within {most_s:.0f} s"
    except FileExistsError:
        return f"{clean(file, most=200)} exists already"
    except FileNotFoundError:
        reason = "there is no ssh on this machine"
    except OSError as error:
        reason = clean(error, most=200)
    if reason:
        file.unlink(missing_ok=True)
    return reason
