"""`latlab fleet`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from latlab.errors import UserError

if TYPE_CHECKING:
    from latlab.fleet.pairs import Links
    from latlab.fleet.standings import Survey


@click.group("fleet")
def command() -> None:
    """Find the slow machines of many, by how much they are slow, and what distinguishes them.

    \b
    Examples:
      latlab fleet merge runs/                   one run file per host, in a folder
      latlab fleet merge 'node*.latlab.jsonl' --json
      latlab fleet survey --scheduler 10.0.0.1:8786
    """


@command.command("merge")
@click.argument("files", metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option("--html", "html_file", metavar="FILE", help="Also write an HTML page to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print all hosts as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="List every host.")
def merge(files: tuple[str, ...], *, html_file: str | None, as_json: bool, verbose: bool) -> int:
    """Find the slow hosts among those whose run files are given.

    Hosts with the same CPU, memory, disk and kernel form a class. Each host's headline figures are
    compared with those of its class, which needs at least five hosts. One in 1,000 fleets without a
    slow host gets a false alarm. Several runs of one host count as repeats.

    \b
    Examples:
      latlab fleet merge runs/
      latlab fleet merge 'node*.latlab.jsonl' -v
      latlab fleet merge runs/ --json | jq .named

    Exit code 1: a host is slow.
    """
    from latlab.compare.sides import files as named_by  # noqa: PLC0415 - not needed for --help
    from latlab.fleet import merge as survey_of  # noqa: PLC0415 - see above
    from latlab.paths import checked_output  # noqa: PLC0415 - see above
    from latlab.run.store import Store  # noqa: PLC0415 - see above
    from latlab.text import clean  # noqa: PLC0415 - see above

    store = Store()
    found = list(dict.fromkeys(path for word in files for path in named_by(word, store)))
    if not found:
        raise UserError(f"no run file in {clean(' '.join(files), most=100)!r}")
    page = None if html_file is None else checked_output(html_file)
    return _shown(survey_of(found), page, as_json=as_json, verbose=verbose)


@command.command("survey")
@click.option("--scheduler", metavar="ADDRESS", help="Address of the Dask scheduler.")
@click.option("--hosts", metavar="FILE", help="Instead of a scheduler: hosts for ssh, one a line.")
@click.option(
    "--run", "run_them", is_flag=True, help="Run the ssh commands of --hosts instead of printing them."
)
@click.option(
    "--links", "links", is_flag=True, help="Measure the links between hosts, not the hosts: seconds."
)
@click.option("--groups", metavar="FILE", help="With --links: rack or switch of each host, a line each.")
@click.option("--tls-ca-file", metavar="FILE", help="Certificates that may sign the scheduler's certificate.")
@click.option("--tls-cert", metavar="FILE", help="Client certificate.")
@click.option("--tls-key", metavar="FILE", help="Key of the client certificate.")
@click.option(
    "--profile",
    type=click.Choice(["quick", "standard", "thorough"]),
    default="quick",
    show_default=True,
    help="How much to measure on each host: about 30 s, 90 s or 10 min.",
)
@click.option("--only", metavar="GLOBS", help="Run only these probes.")
@click.option("--dir", "dir", metavar="DIR", help="Measure the file system of this directory on each host.")
@click.option("--budget", metavar="SECONDS", help="Wall time on each host, instead of the profile's.")
@click.option("--out", metavar="FOLDER", help="Keep the run files in this folder.")
@click.option("--html", "html_file", metavar="FILE", help="Also write an HTML page to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print all hosts as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@click.option("-v", "--verbose", is_flag=True, help="List every host.")
def survey(
    *,
    scheduler: str | None,
    hosts: str | None,
    run_them: bool,
    links: bool,
    groups: str | None,
    tls_ca_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    out: str | None,
    html_file: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **asked: Any,  # noqa: ANN401 - click hands over one dict
) -> int:
    """Measure every host of a Dask cluster, or of a list, and find the slow ones.

    One worker of each host starts a measurement; hosts that share a machine measure one after the
    other. The results are compared as by latlab fleet merge. Hosts that stand out are measured again
    before they are called slow. The hosts need the same version of latlab.

    With --links, hosts measure round trip and throughput to at most six others, over connections of
    their own with a shared secret. A slow host, a slow single link and a slow boundary are
    distinguished: what all pairs that leave a rack, or all pairs of two racks, share. Hosts of one
    subnet (/24, or /64 of IPv6) form a group; --groups FILE names racks or switches instead: a host's
    name or address and its group on each line. Only links that were measured can be named.

    \b
    Examples:
      latlab fleet survey --scheduler tcp://10.0.0.1:8786
      latlab fleet survey --scheduler tls://10.0.0.1:8786 --tls-ca-file ca.pem \\
        --tls-cert cert.pem --tls-key key.pem
      latlab fleet survey --scheduler 10.0.0.1:8786 --json | jq .named
      latlab fleet survey --scheduler 10.0.0.1:8786 --links
      latlab fleet survey --scheduler 10.0.0.1:8786 --links --groups racks.txt
      latlab fleet survey --hosts hosts.txt > survey.sh     without Dask: the commands
      latlab fleet survey --hosts hosts.txt --run           the same, run here

    Exit code 1: a host is slow, or could not be measured.
    """
    from latlab.cli.terminal.screen import talk  # noqa: PLC0415 - not needed for --help
    from latlab.fleet import links as links_of  # noqa: PLC0415 - see above
    from latlab.fleet import lists, ssh  # noqa: PLC0415 - see above
    from latlab.fleet.cluster import connected  # noqa: PLC0415 - see above
    from latlab.fleet.cluster import survey as survey_of  # noqa: PLC0415 - see above
    from latlab.paths import checked_folder, checked_output  # noqa: PLC0415 - see above
    from latlab.run.conduct import seconds_of  # noqa: PLC0415 - see above
    from latlab.run.settings import make_settings  # noqa: PLC0415 - see above
    from latlab.signals import raised  # noqa: PLC0415 - see above

    if (scheduler is None) == (hosts is None):
        raise UserError("name the hosts: by --scheduler ADDRESS or by --hosts FILE")
    if run_them and hosts is None:
        raise UserError("--run runs the commands of --hosts FILE")
    unused = [name for name in ("only", "dir", "budget") if asked[name] is not None] + ["out"] * bool(out)
    if links and (hosts is not None or unused):
        raise UserError(f"--links measures links of a cluster only: leave out --{[*unused, 'hosts'][0]}")
    if groups is not None and not links:
        raise UserError("--groups FILE tells the groups of --links: add --links")
    given = None if groups is None else lists.groups_in(Path(groups))
    # Before anybody is asked; a directory is to be on the hosts.
    settings = make_settings({name: f"--{name}" for name in asked}, **asked | {"dir": None})

    page = None if html_file is None else checked_output(html_file)

    def say(text: str) -> None:
        if not quiet:
            talk(text)

    with ExitStack() as made:
        if hosts is not None:
            names = lists.hosts_in(Path(hosts))
            if not run_them:
                sys.stdout.write("\n".join(ssh.lines(names, asked, out or "runs")) + "\n")
                return 0
        made.enter_context(raised())
        folder = Path(
            checked_folder(out)
            if out is not None
            else made.enter_context(TemporaryDirectory(prefix="latlab-survey-"))
        )
        if scheduler is None:
            surveyed = ssh.survey(names, asked, folder, seconds_of(settings) + ssh.EXTRA_S, say)
        else:
            client = made.enter_context(connected(scheduler, ca_file=tls_ca_file, cert=tls_cert, key=tls_key))
            if links:
                found = links_of(client, groups=given, say=say)
                return _shown(found, page, as_json=as_json, verbose=verbose)
            surveyed = survey_of(client, folder=folder, say=say, **asked)
    return _shown(surveyed, page, as_json=as_json, verbose=verbose)


def _shown(survey: Survey | Links, page: Path | None, *, as_json: bool, verbose: bool) -> int:
    """Prints a survey, and writes its page; returns the exit code."""
    from latlab.cli.terminal.fleet_lines import fleet_lines  # noqa: PLC0415 - not needed for --help
    from latlab.cli.terminal.link_lines import link_lines  # noqa: PLC0415 - see above
    from latlab.cli.terminal.screen import say, say_json, screen_of  # noqa: PLC0415 - see above
    from latlab.fleet.standings import Survey  # noqa: PLC0415 - see above

    if page is not None:
        from latlab.report.fleet_page import render  # noqa: PLC0415 - only for a page
        from latlab.run.saving import save  # noqa: PLC0415 - see above

        save(page, render(survey))
    if as_json:
        say_json(survey.as_json())
    elif isinstance(survey, Survey):
        say(fleet_lines(survey, screen_of(sys.stdout), verbose=verbose))
    else:
        say(link_lines(survey, screen_of(sys.stdout), verbose=verbose))
    return 1 if survey.named or survey.failed else 0
