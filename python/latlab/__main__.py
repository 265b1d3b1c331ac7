"""The command `latlab`, also as `python -m latlab`.

It imports nothing before it is called: Ctrl-C ends with one line and code 130 from the first millisecond on.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    try:
        from latlab.cli.main import run  # noqa: PLC0415 - 60 ms in which Ctrl-C may come

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("latlab: interrupted\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
