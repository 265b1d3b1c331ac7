"""The measuring process: `python -I -S worker.py PARENT`; its children: `... worker.py --child PROGRAM`.

`... worker.py PARENT --noise` is the process that listens for `latlab noise`.

A bare interpreter that imports only the core: no site-packages, no settings of the user, nothing that a
notebook or a shell has loaded. It reads one line from standard input (the request) and writes events, one
JSON object a line, to what was standard output when it started; anything else that prints goes to standard
error. It ends when standard input does.
"""

from __future__ import annotations

import importlib.machinery
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def main() -> int:
    """Runs one request; returns the exit code."""
    # Ctrl-C reaches this process too: what it means is for the parent to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    events = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1:2] == ["--child"]:
        return _child(events)
    request = sys.stdin.buffer.readline()
    if not request.endswith(b"\n"):
        return 1
    try:
        core = _core()
        core.die_with_parent()
        if len(sys.argv) > 1 and os.getppid() != int(sys.argv[1]):
            # The parent ended before the kernel was asked to watch it.
            return 1
        _be_first_to_go()
        if sys.argv[2:] == ["--noise"]:
            _write(events, _listen(core, request))
        else:
            core.run_worker(request.decode(), events, _child_command())
            # Its test file has no name: it stays until whoever reads the events has opened it.
            os.close(events)
            sys.stdin.buffer.read()
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    except (ImportError, ValueError, OSError) as error:
        import json  # noqa: PLC0415 - takes half as long as all else that a round starts with

        line = json.dumps({"event": "fatal", "text": str(error)})
        os.write(events, f"{line}\n".encode())
        return 1
    return 0


def _listen(core: ModuleType, line: bytes) -> str:
    """What `latlab noise` or `doctor` asks for, one line of JSON; on SIGTERM, what was heard until then."""
    import json  # noqa: PLC0415 - as above

    request: dict[str, object] = json.loads(line)
    asked = {"listen": core.noise, "self-test": core.noise_self_test, "survey": core.noise_survey}
    listen = asked[str(request.pop("what"))]
    return str(listen(in_worker=True, **request))


def _write(descriptor: int, line: str) -> None:
    """All of a line: a pipe takes less at once than a long one has."""
    data = f"{line}\n".encode()
    while data:
        data = data[os.write(descriptor, data) :]


def _child(answers: int) -> int:
    """Serves one of the core's child programs until standard input ends."""
    try:
        core = _core()
        core.die_with_parent()
        _be_first_to_go()
        return 0 if len(sys.argv) == 3 and core.run_child(sys.argv[2], answers) else 1  # noqa: PLR2004 - this file, --child, its program
    except (BrokenPipeError, ImportError, OSError):
        return 1


def _child_command() -> list[str] | None:
    """How the core starts a child of this process; it appends the program's name."""
    if not sys.executable:
        return None
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "--child"]  # noqa: PTH100 - pathlib costs 5 ms


def _core() -> ModuleType:
    """The extension module next to this file, without the package around it."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs 5 ms
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = os.path.join(folder, f"_core{suffix}")  # noqa: PTH118
        if os.path.exists(path):  # noqa: PTH110
            loader = importlib.machinery.ExtensionFileLoader("_core", path)
            module = loader.create_module(importlib.machinery.ModuleSpec("_core", loader, origin=path))
            loader.exec_module(module)
            return module
    raise ImportError(f"the measuring core is missing in {folder}: reinstall latlab, or run `make build`")


def _be_first_to_go() -> None:
    """When memory runs out, the kernel ends this process and not the notebook that started it."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - pathlib costs 5 ms
            file.write("1000")
    except OSError:
        pass


if __name__ == "__main__":
    # Without the interpreter's tidying up: the pipe's reader waits for the end.
    code = main()
    sys.stderr.flush()
    os._exit(code)
