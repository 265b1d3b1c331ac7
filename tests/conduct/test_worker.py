from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import latlab

WORKER = Path(latlab.__file__).with_name("worker.py")

CORE = """
import json, os, sys, time

def die_with_parent():
    return False

def run_worker(request, fd, child=None):
    wish = json.loads(request)
    print("this must not reach the pipe", flush=True)
    os.write(1, b"nor this")
    if "refuse" in wish:
        raise ValueError(wish["refuse"])
    loaded = [name for name in sys.modules if name.split(".")[0] in {"site", "latlab", "msgspec", "numpy"}]
    hello = {"event": "hello", "request": wish, "loaded": loaded, "child": child}
    os.write(fd, json.dumps(hello).encode() + b"\\n")

def run_child(program, fd):
    if program != "echo":
        return False
    print("this must not reach the answers", flush=True)
    os.write(1, b"nor this")
    for line in sys.stdin:
        os.write(fd, json.dumps({"answer": line.strip()}).encode() + b"\\n")
    return True
"""

#: Of Python, whose own loader leaves making a module to the interpreter.
LOADER = """
class Loader(importlib.machinery.SourceFileLoader):
    def create_module(self, spec):
        return type(sys)(spec.name)

"""


def talk(folder: Path, request: bytes, *arguments: str) -> tuple[list[dict[str, Any]], str, int]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "worker.py"), *arguments],
        input=request,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(), done.returncode


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker beside a core written in Python, which is loaded in the place of the extension."""
    text = (
        WORKER.read_text()
        .replace("EXTENSION_SUFFIXES", "SOURCE_SUFFIXES")
        .replace("importlib.machinery.ExtensionFileLoader", "Loader")
        .replace("\ndef main", f"{LOADER}\ndef main")
    )
    (tmp_path / "worker.py").write_text(text)
    (tmp_path / "_core.py").write_text(CORE)
    return tmp_path


def test_only_events_reach_the_pipe_and_nothing_of_the_users_environment_is_loaded(stand_in: Path) -> None:
    events, err, code = talk(stand_in, b'{"x": "\xc2\xb5"}\n', str(os.getpid()))
    child = [sys.executable, "-I", "-S", str(stand_in / "worker.py"), "--child"]
    assert events == [{"event": "hello", "request": {"x": "µ"}, "loaded": [], "child": child}]
    assert "this must not reach the pipe" in err
    assert "nor this" in err
    assert code == 0


def test_what_the_core_refuses_is_a_fatal_event(stand_in: Path) -> None:
    events, _, code = talk(stand_in, b'{"refuse": "no such setting"}\n')
    assert events == [{"event": "fatal", "text": "no such setting"}]
    assert code == 1


def test_a_missing_core_is_a_fatal_event_that_says_what_to_do(tmp_path: Path) -> None:
    shutil.copy(WORKER, tmp_path / "worker.py")
    events, _, code = talk(tmp_path, b"{}\n")
    assert "make build" in events[0]["text"]
    assert code == 1


def test_without_a_whole_request_or_with_another_parent_it_ends_at_once(stand_in: Path) -> None:
    assert talk(stand_in, b"")[0] == []
    assert talk(stand_in, b'{"half')[0] == []
    assert talk(stand_in, b"{}\n", "1")[0] == []


def test_a_child_answers_on_its_pipe_and_what_it_prints_goes_to_standard_error(
    stand_in: Path,
) -> None:
    answers, err, code = talk(stand_in, b"one\ntwo\n", "--child", "echo")
    assert answers == [{"answer": "one"}, {"answer": "two"}]
    assert "this must not reach the answers" in err
    assert "nor this" in err
    assert code == 0


@pytest.mark.parametrize("arguments", [["no.such"], [], ["echo", "and more"]])
def test_a_child_program_that_does_not_exist_fails_without_an_answer(
    stand_in: Path, arguments: list[str]
) -> None:
    assert talk(stand_in, b"one\n", "--child", *arguments) == ([], "", 1)


def test_a_child_without_a_core_fails_without_an_answer(tmp_path: Path) -> None:
    shutil.copy(WORKER, tmp_path / "worker.py")
    answers, _, code = talk(tmp_path, b"", "--child", "echo")
    assert answers == []
    assert code == 1


def test_the_real_core_refuses_a_child_program_that_it_does_not_have() -> None:
    pytest.importorskip("latlab._core")
    assert talk(WORKER.parent, b"", "--child", "no.such") == ([], "", 1)


def real_worker(tmp_path: Path) -> list[str]:
    pytest.importorskip("latlab._core")
    program = (
        "import subprocess, sys, os, time\n"
        "command = [sys.executable, '-I', '-S', sys.argv[1], str(os.getpid())]\n"
        "worker = subprocess.Popen(command, stdin=subprocess.PIPE)\n"
        "worker.stdin.write(b'{\"settings\": {}}\\n'); worker.stdin.flush()\n"
        "time.sleep(600)\n"
    )
    return [sys.executable, "-c", program, str(WORKER)]


def test_a_worker_stays_after_its_last_event_until_its_reader_has_taken_what_is_only_there(
    stand_in: Path,
) -> None:
    command = [sys.executable, "-I", "-S", str(stand_in / "worker.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(b"{}\n")
        worker.stdin.flush()
        assert worker.stdout.read().endswith(b"\n"), "all events, to their end"
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(timeout=0.5)
        worker.stdin.close()
        assert worker.wait(timeout=60) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_when_the_parent_is_killed_the_worker_ends(tmp_path: Path) -> None:
    parent = subprocess.Popen(real_worker(tmp_path), stdout=subprocess.PIPE)
    assert parent.stdout is not None
    try:
        first = parent.stdout.readline()
        assert b'"hello"' in first[:40]
    finally:
        parent.kill()
        parent.wait()
    # The worker holds the pipe: it ends when the worker does.
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([parent.stdout], [], [], 1.0)[0] and not os.read(parent.stdout.fileno(), 1 << 16):
            parent.stdout.close()
            return
    parent.stdout.close()
    pytest.fail("the worker outlived its parent")


@pytest.mark.slow
def test_a_whole_run_with_the_real_core(tmp_path: Path) -> None:
    pytest.importorskip("latlab._core")
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    run = latlab.measure("clock.*", profile="quick", budget="2s", seed=1, out=tmp_path / "run.latlab.jsonl")
    assert run.stopped_by in {"completed", "deadline"}
    assert run["clock.read"].measured()
    assert latlab.load(tmp_path / "run.latlab.jsonl") == run
    assert json.loads(run.to_json())["settings"]["seed"] == 1
    if affinity:
        assert os.sched_getaffinity(0) == affinity


def test_a_glob_that_matches_nothing_is_said_before_anything_is_started(tmp_path: Path) -> None:
    pytest.importorskip("latlab._core")
    with pytest.raises(latlab.UserError, match=r"'memry\.\*' matches no probe"):
        latlab.measure("memry.*", out=tmp_path / "run.latlab.jsonl")
    assert not list(tmp_path.iterdir())


def test_the_core_is_described_in_types() -> None:
    pytest.importorskip("latlab._core")
    assert any(probe.id == "memory.load.dependent" for probe in latlab.list_probes())
    described = latlab.describe()
    assert described.clock.ticks_per_ns > 0
    assert described.machine.text("os.name")
