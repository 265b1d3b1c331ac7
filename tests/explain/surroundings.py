"""Starts a program in surroundings that no default has; `/proc` then shows what of them the program sees.

    surroundings.py CLOSED PROGRAM [ARGUMENTS]...

The environment is what standard input holds, entries that end with a zero byte. CLOSED is a descriptor to
close, or -1. The program is executed by the system's own call: Python's takes no entry without `=` and no two
of one name.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

OPEN = 7
"""A descriptor that the program inherits."""


def main() -> None:
    """Becomes the program."""
    closed, *words = sys.argv[1:]
    block = sys.stdin.buffer.read()
    os.dup2(os.open("/etc/passwd", os.O_RDONLY), OPEN)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.umask(0o027)
    os.nice(3)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (250, 500))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGWINCH})
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(29, 77_000, 0, 0, 0)  # PR_SET_TIMERSLACK
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 - without site
        file.write("300")
    if closed != "-1":
        os.close(int(closed))
    arguments = (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words))
    entries = block.split(b"\0")[:-1]
    environment = (ctypes.c_char_p * (len(entries) + 1))(*entries)
    libc.execve(arguments[0], arguments, environment)
    sys.exit(os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
