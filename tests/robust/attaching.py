"""Answers as kernel.yama.ptrace_scope 2 gives them, on any kernel, to one program and what it starts.

That setting leaves other processes readable (their names, files, counters and the kernel function they wait
in) and refuses whatever needs the right to attach: the calls ptrace and process_vm_readv, /proc/PID/mem when
it is opened, and /proc/PID/syscall and stack when they are read. Calls are answered by a filter of system
calls; of files that are opened this process is told, and hands over one of its own in place of a refused one,
which the kernel itself then refuses to be read.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Final

_CALLS: Final = {
    # seccomp, openat, ptrace, process_vm_readv
    "x86_64": (317, 257, 101, 310),
    "aarch64": (277, 56, 117, 270),
}
_NOTIFY, _REFUSE, _ALLOW = 0x7FC00000, 0x00050000 | errno.EPERM, 0x7FFF0000
_RECEIVE, _ANSWER, _HAND_OVER = 0xC0502100, 0xC0182101, 0x40182103
_GO_ON = 1
_ATTACHES: Final = re.compile(rb"/proc/[0-9]+/(?:task/[0-9]+/)?(mem|syscall|stack)\0")


@contextlib.contextmanager
def refused() -> Iterator[Callable[[], None]]:
    """Gives what a child has to call before it executes; `OSError` there: such filters are not to be had."""
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=_serve, args=(ours,), daemon=True)
    server.start()

    def before() -> None:
        listener = _filtered()
        socket.send_fds(theirs, [b"."], [listener])

    try:
        yield before
    finally:
        theirs.close()
        server.join(timeout=10)
        ours.close()


def _filtered() -> int:
    seccomp, openat, ptrace, readv = _CALLS[platform.machine()]
    steps = [
        struct.pack("=HBBI", *step)
        for step in (
            (0x20, 0, 0, 0),
            (0x15, 3, 0, openat),
            (0x15, 3, 0, ptrace),
            (0x15, 2, 0, readv),
            (0x06, 0, 0, _ALLOW),
            (0x06, 0, 0, _NOTIFY),
            (0x06, 0, 0, _REFUSE),
        )
    ]
    program = ctypes.create_string_buffer(b"".join(steps))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS; SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER.
    listener = -1 if libc.prctl(38, 1, 0, 0, 0) else libc.syscall(seccomp, 1, 8, head)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls that tells can be set here")
    return int(listener)


def _serve(told_by: socket.socket) -> None:
    _, listeners, _, _ = socket.recv_fds(told_by, 1, 1)
    for listener in listeners:
        # Hung up: nobody is left whom the filter is of.
        asked = select.poll()
        asked.register(listener, select.POLLIN)
        while not asked.poll()[0][1] & select.POLLHUP:
            with contextlib.suppress(FileNotFoundError):  # who asked is gone
                _one(listener)
        os.close(listener)


def _one(listener: int) -> None:
    request = bytearray(80)
    fcntl.ioctl(listener, _RECEIVE, request)
    number, thread, name = struct.unpack_from("=QI", request)[0], *struct.unpack_from("=8xI28xQ", request)
    found = _ATTACHES.match(_text(thread, name))
    if found is None:
        fcntl.ioctl(listener, _ANSWER, struct.pack("=QqiI", number, 0, 0, _GO_ON))
    elif found[1] == b"mem":
        fcntl.ioctl(listener, _ANSWER, struct.pack("=QqiI", number, 0, -errno.EACCES, 0))
    else:
        own = os.open("/proc/self/syscall", os.O_RDONLY)
        # SECCOMP_ADDFD_FLAG_SEND: the call returns it.
        fcntl.ioctl(listener, _HAND_OVER, struct.pack("=QIIII", number, 2, own, 0, os.O_CLOEXEC))
        os.close(own)


def _text(thread: int, address: int) -> bytes:
    try:
        memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
        try:
            return os.pread(memory, 256, address)
        finally:
            os.close(memory)
    except OSError:
        return b""
