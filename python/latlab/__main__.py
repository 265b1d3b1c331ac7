"""The command `latlab`, also as `python -m latlab`.

It imports nothing before it is called: Ctrl-C ends with one line and code 130 from the first millisecond on.
"""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    _open_closed_streams()
    _have_a_home()
    if sys.argv[1:2] == ["lesson"]:
        _start_again_as_usual()
    try:
        from latlab.cli.main import run  # noqa: PLC0415 - 60 ms in which Ctrl-C may come

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("latlab: interrupted\n")
        code = 130
    sys.exit(code)


def _open_closed_streams() -> None:
    """A closed standard stream (`>&-`) leads nowhere, instead of into the file that is opened next.

    Programs that are started find it closed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for good


def _start_again_as_usual() -> None:
    """Starts a lesson again without what would change what it shows, where such is set."""
    from latlab import environment  # noqa: PLC0415 - only a lesson needs it

    kept = environment.without()
    if kept is not None and sys.executable:
        # Where that cannot be, the lesson says what is set.
        with contextlib.suppress(OSError):
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], kept)  # noqa: S606 - this program


def _have_a_home() -> None:
    """A user without one (`docker run --user 12345`) gets one that is not there, as `nobody` has.

    Libraries ask for the home folder when they are imported, and take no answer for an error.
    """
    if "HOME" not in os.environ and os.path.expanduser("~") == "~":  # noqa: PTH111 - pathlib's raises
        os.environ["HOME"] = "/nonexistent"


if __name__ == "__main__":
    main()
