"""What a survey runs on a worker of Dask's: where the worker is, and a measurement in a process of its own.

    scheduler ──► async function in the worker's event loop ──► latlab.fleet.measuring ──► run file

The functions only wait. Dask's own process has another allocator setting (its nanny sets
MALLOC_TRIM_THRESHOLD_, by which 463 page faults became 5,140), a profiler and a heartbeat, so nothing is
measured in it. The process gets its request on standard input; it stops measuring when that ends, so nothing
outlives a worker that was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from latlab.installed import version
from latlab.run.core import core
from latlab.run.death import cause_of_death, last_words, oom_kills
from latlab.run.process import clean_environment

#: How long the process may take to end when it is told to, s: its worker's grace, and its file.
_GRACE_S: Final = 10.0
#: By these Python, Rust and the linker say that there was no memory.
_NO_MEMORY: Final = (
    *("MemoryError", "Cannot allocate memory", "can't start new thread"),
    *("memory allocation of", "failed to map segment"),
)
#: Those of Python's variables by which the process finds the packages that this one uses.
_PLACES: Final = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE")
#: By the name of a lease, what ends it.
_leases: dict[str, asyncio.Event] = {}
#: By the name of a lease, this host's end of the links, and what ends it in the end.
_ends: dict[str, tuple[asyncio.subprocess.Process, asyncio.TimerHandle]] = {}


async def where() -> dict[str, str]:
    """The version of latlab here, and what tells this host from others.

    `machine` is one start of one kernel: hosts that share it take turns. `host` adds the network namespace
    and the mount namespace, by which containers and pods on one machine differ.
    """
    boot, machine = _text("/proc/sys/kernel/random/boot_id"), _text("/etc/machine-id")
    own = [_link(f"/proc/self/ns/{kind}") for kind in ("net", "mnt")]
    name = socket.gethostname()
    return {
        "version": f"{version()} ({core().__version__}, figures {core().FOLD_VERSION})",
        "name": name,
        "machine": boot or name,
        "host": "/".join([boot or name, machine, *own]),
    }


async def lease(token: str, most_s: float) -> None:
    """A task that keeps a worker from being retired as idle, until its host has measured.

    Args:
        token: A name of its own.
        most_s: When it ends by itself, seconds.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(_lease(token).wait(), most_s)
    _leases.pop(token, None)


def _lease(token: str) -> asyncio.Event:
    return _leases.setdefault(token, asyncio.Event())


async def measure(
    asked: dict[str, object],
    most_s: float,
    token: str,
    dask_worker: Any = None,  # noqa: ANN401 - a Worker, on a machine where Dask is
) -> dict[str, Any]:
    """Measures this host in a process of its own; ends the lease.

    Args:
        asked: Settings, as `latlab.measure` takes them.
        most_s: Seconds after which the process is ended.
        token: The name of the lease, which no other has.
        dask_worker: Dask's worker, in whose folder the files are until the end.

    Returns:
        `{"packed": the run file, by Zstandard}`, or `{"failed": why not}`.
    """
    try:
        parent = getattr(dask_worker or _worker_of_task(), "local_directory", None) or tempfile.gettempdir()
        return await _measured(json.dumps(asked), Path(parent, f"latlab-survey-{token}"), most_s)
    finally:
        _lease(token).set()


def _worker_of_task() -> Any:  # noqa: ANN401 - as above
    """Dask's worker, for a function that it runs as a task; None outside one."""
    try:
        from distributed import get_worker  # noqa: PLC0415 - an extra

        return get_worker()
    except (ImportError, ValueError):
        return None


async def _measured(request: str, folder: Path, most_s: float) -> dict[str, Any]:
    """What the process answers, which makes the folder and removes it."""
    before = oom_kills()
    try:
        process = await _started("latlab.fleet.measuring", os.fspath(folder))
    except OSError as error:
        return {"failed": f"no process can be started: {error.strerror}"}
    try:
        assert process.stdin is not None  # noqa: S101 - pipes were asked for
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        process.stdin.write(f"{request}\n".encode())
        async with asyncio.timeout(most_s):
            packed, err, code = await asyncio.gather(
                process.stdout.read(), process.stderr.read(), process.wait()
            )
    except TimeoutError:
        return {"failed": f"the measurement did not end within {most_s:.0f} s"}
    finally:
        await _ended(process)
        # It could not, if it was killed.
        shutil.rmtree(folder, ignore_errors=True)
    if code == 0 and packed:
        return {"packed": packed}
    said = last_words(err)
    if code < 0:
        said = "; its message: ".join(filter(None, [cause_of_death(code, fatal="", before=before), said]))
    said = said or f"exit code {code}, and no run file"
    if any(words in said for words in _NO_MEMORY):
        said = f"there is not enough memory to measure: {said}"
    return {"failed": said}


async def link(token: str, asked: dict[str, Any], most_s: float) -> dict[str, Any]:
    """Asks this host's end of the links, which is a process of its own; see latlab.fleet.linking.

    Args:
        token: The name of the end, and of the lease that ends with it.
        asked: What it is asked. `bind` starts it, `served` ends it.
        most_s: Seconds after which it is ended, for `bind`.

    Returns:
        Its answer, or `{"failed": why not}`.
    """
    if "bind" in asked:
        started = await _started("latlab.fleet.linking")
        # Its input ends by then, if the survey does not end it.
        timer = asyncio.get_running_loop().call_later(most_s, _close, started)
        _ends[token] = started, timer
    end = _ends.get(token)
    try:
        if end is None or (process := end[0]).stdin is None or process.stdout is None:
            return {"failed": "its end of the links has ended"}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        line = await process.stdout.readline()
        answer: dict[str, Any] = json.loads(line or '{"failed": "its end of the links has ended"}')
        return answer
    finally:
        if "served" in asked and end is not None:
            _ends.pop(token, None)
            _lease(token).set()
            end[1].cancel()
            await _ended(end[0])


async def _started(module: str, *arguments: str) -> asyncio.subprocess.Process:
    """A process that runs a module of ours, with pipes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command(module), *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment()
    )
    # When memory runs out, the kernel ends it and not the worker that started it.
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
    return process


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Leaves no process: told by the end of its input, then killed."""
    if process.returncode is not None:
        return
    _close(process)
    try:
        async with asyncio.timeout(_GRACE_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _close(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()


def command(module: str) -> list[str]:
    """How a process that runs a module is started; what follows are its arguments."""
    return [sys.executable, "-m", module]


def _environment() -> dict[str, str]:
    """A clean environment in which this very latlab is found."""
    kept = {name: os.environ[name] for name in _PLACES if name in os.environ}
    folders = [os.fspath(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return clean_environment() | kept | {"PYTHONPATH": os.pathsep.join(folders)}


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - its text is an inode, no path
    except OSError:
        return ""
