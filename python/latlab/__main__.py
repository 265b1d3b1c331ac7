"""The command `latlab`, also as `python -m latlab`.

It imports nothing before it is called: Ctrl-C ends with one line and code 130 from the first millisecond on.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    _open_closed_streams()
    _have_a_home()
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


def _have_a_home() -> None:
    """A user without one (`docker run --user 12345`) gets one that is not there, as `nobody` has.

    Libraries ask for the home folder when they are imported, and take no answer for an error.
    """
    if "HOME" not in os.environ and os.path.expanduser("~") == "~":  # noqa: PTH111 - pathlib's raises
        os.environ["HOME"] = "/nonexistent"


if __name__ == "__main__":
    main()
