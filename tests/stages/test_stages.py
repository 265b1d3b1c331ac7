"""A program says what it is doing, in any language, and it is heard with its times and bytes."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from latlab import _core, stages
from latlab.cli.stages import LANGUAGES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="stages are listened to on Linux")

HEARD = """
import dataclasses, json
print(json.dumps([dataclasses.asdict(row) for row in latlab.stages.heard()]))
"""


def run(program: str, **more: str) -> dict[str, dict[str, Any]]:
    """Runs a Python program that listens to itself, and returns what it heard, by name."""
    text = "import latlab, latlab.stages\nlatlab.stages.start()\n" + textwrap.dedent(program) + HEARD
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | more,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {row["name"]: row for row in json.loads(done.stdout.splitlines()[-1])}


@pytest.fixture(scope="module")
def forms() -> dict[str, dict[str, Any]]:
    return run("""
        import asyncio, os, threading, time

        with latlab.stage("outer"):
            with latlab.stage("inner", bytes=10) as inner:
                time.sleep(0.02)
                inner.bytes = 4096

        @latlab.stage("called")
        def called(x):
            "What it does."
            return x + 1
        assert [called(1), called(x=2)] == [2, 3] and called.__doc__ == "What it does."

        assert list(latlab.stage("items").over(range(5))) == [0, 1, 2, 3, 4]

        @latlab.stage("generator")
        def generated():
            yield 1
            yield 2
        assert list(generated()) == [1, 2]

        @latlab.stage("later")
        async def later():
            await asyncio.sleep(0.01)
            return 7
        async def both():
            return await asyncio.gather(later(), later())
        assert asyncio.run(both()) == [7, 7]

        try:
            with latlab.stage("raises"):
                raise KeyError("mine")
        except KeyError:
            pass

        def work():
            for _ in range(100):
                with latlab.stage("thread"):
                    pass
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

        if (child := os.fork()) == 0:
            with latlab.stage("child"):
                pass
            os._exit(0 if latlab.stages.heard() == [] else 1)
        assert os.waitpid(child, 0)[1] == 0

        one = latlab.stage("again")
        with one:
            with one:
                pass
    """)


def test_a_block_has_its_time_and_the_bytes_that_were_said_last(forms: dict[str, dict[str, Any]]) -> None:
    inner = forms["inner"]
    assert inner["count"] == 1
    assert inner["bytes"] == 4096
    assert inner["seconds"] >= 0.02
    outer = forms["outer"]
    assert outer["seconds"] >= inner["seconds"]
    assert outer["self_seconds"] == pytest.approx(outer["seconds"] - inner["seconds"], abs=1e-9)


def test_a_function_an_iterator_a_generator_and_a_coroutine_are_stages(
    forms: dict[str, dict[str, Any]],
) -> None:
    # Of an iterator, the step that finds the end takes time too.
    counts = {name: forms[name]["count"] for name in ("called", "items", "generator", "later")}
    assert counts == {"called": 2, "items": 6, "generator": 3, "later": 2}
    assert forms["later"]["seconds"] >= 0.02


def test_an_error_passes_and_ends_the_stage(forms: dict[str, dict[str, Any]]) -> None:
    assert forms["raises"]["count"] == 1


def test_threads_and_children_by_fork_are_heard(forms: dict[str, dict[str, Any]]) -> None:
    assert forms["thread"]["count"] == 300
    assert forms["child"]["count"] == 1


def test_one_stage_may_be_entered_again_while_it_is_open(forms: dict[str, dict[str, Any]]) -> None:
    assert forms["again"]["count"] == 2


SILENT = """
from latlab import stages

def function():
    return 1

items = iter([1, 2])
assert stages.stage("x") is stages.stage("y")
assert stages.stage("x")(function) is function
assert stages.stage("x").over(items) is items
with stages.stage("x", bytes=3) as mark:
    mark.bytes = 4
assert stages.heard() == []
assert "start()" in stages.table()
print("nothing")
"""


def test_where_nobody_listens_nothing_is_left_of_it() -> None:
    # In a process of its own: once one listens to itself it does so to its end.
    done = subprocess.run(
        [sys.executable, "-c", SILENT], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "nothing\n"


def test_an_environment_that_names_no_ring_does_no_harm(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"LATSTG01" + b"\xff" * 100_000)
    for path in (str(tmp_path / "absent"), "/dev/null", str(other)):
        program = "import latlab\nwith latlab.stage('x'): pass\nprint('well')"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"LATLAB_STAGES": path},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout == "well\n"
    assert other.read_bytes()[8:] == b"\xff" * 100_000


def test_the_table_says_how_often_and_how_long() -> None:
    program = """
        with latlab.stage("read", bytes=2048):
            pass
        print(latlab.stages.table())
    """
    text = "import latlab, latlab.stages\nlatlab.stages.start()\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True
    )
    head, row = done.stdout.splitlines()
    assert head.split() == ["stage", "times", "total", "own", "each", "bytes"]
    assert row.split()[:2] == ["read", "1"]
    assert row.endswith("2 KiB")


def test_the_table_says_what_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    row = dict.fromkeys(("count", "cut", "seconds", "self_seconds", "bytes", "min_ns", "max_ns"), 1)
    reported = json.dumps({"stages": [{**row, "name": "fast"}], "lost": 123_456})
    monkeypatch.setattr(_core, "stages_heard", lambda: reported)
    assert stages.table().splitlines()[-1].startswith("123,456 marks were lost")


PROGRAMS = {
    "c": (
        "main.c",
        """
        #include "latlab_stage.h"
        static void scoped(void) { LATLAB_STAGE("scope"); usleep(20000); }
        int main(void) {
            latlab_stage read = latlab_begin("read");
            usleep(20000);
            latlab_end(&read, 4096);
            scoped();
            if (fork() == 0) { latlab_stage s = latlab_begin("child"); latlab_end(&s, 0); _exit(0); }
            return 0;
        }
        """,
        ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "main.c", "-o", "main"],
    ),
    "cpp": (
        "main.cpp",
        """
        #include "latlab_stage.h"
        int main() {
            { LATLAB_STAGE("scope"); usleep(20000); }
            latlab_stage read = latlab_begin("read");
            usleep(20000);
            latlab_end(&read, 4096);
            latlab_stage s = latlab_begin("child"); latlab_end(&s, 0);
        }
        """,
        ["g++", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "main.cpp", "-o", "main"],
    ),
    "rust": (
        "main.rs",
        """
        mod latlab_stage;
        use std::{thread::sleep, time::Duration};
        fn main() {
            { let _scope = latlab_stage::stage("scope"); sleep(Duration::from_millis(20)); }
            let mut read = latlab_stage::stage("read");
            sleep(Duration::from_millis(20));
            read.bytes(4096);
            drop(read);
            let _ = latlab_stage::stage("child");
        }
        """,
        ["rustc", "--edition", "2021", "-O", "main.rs", "-o", "main"],
    ),
    "go": (
        "main.go",
        """
        package main

        import (
            "example.com/program/stage"
            "time"
        )

        func main() {
            scope := stage.Begin("scope")
            time.Sleep(20 * time.Millisecond)
            scope.End(0)
            read := stage.Begin("read")
            time.Sleep(20 * time.Millisecond)
            read.End(4096)
            stage.Begin("child").End(0)
        }
        """,
        ["go", "build", "-o", "main", "."],
    ),
}


@pytest.mark.usefixtures("compilers")
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_in_another_language_is_heard(language: str, tmp_path: Path) -> None:
    name, text, build = PROGRAMS[language]
    if shutil.which(build[0]) is None:
        pytest.skip(f"no {build[0]} here")
    mark, source = _core.stages_file({"cpp": "c"}.get(language, language)) or ("", "")
    place = tmp_path / "stage" if language == "go" else tmp_path
    place.mkdir(exist_ok=True)
    (place / mark).write_text(source)
    (tmp_path / name).write_text(textwrap.dedent(text))
    if language == "go":
        (tmp_path / "go.mod").write_text("module example.com/program\n\ngo 1.18\n")
    settings = {
        "HOME": pwd.getpwuid(os.getuid()).pw_dir,
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
    }
    subprocess.run(build, cwd=tmp_path, env=os.environ | settings, timeout=120, check=True)
    heard = run(f"""
        import os, subprocess, time
        subprocess.run([{str(tmp_path / "main")!r}], env=os.environ | latlab.stages.environment(), check=True)
        deadline = time.monotonic() + 60
        while len(latlab.stages.heard()) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    """)
    assert {name: row["count"] for name, row in heard.items()} == {"read": 1, "scope": 1, "child": 1}
    assert heard["read"]["bytes"] == 4096
    # Slept in both; the stages' clock is the one that the listener's process has.
    assert heard["read"]["seconds"] >= 0.02
    assert heard["scope"]["seconds"] >= 0.02
    silent = {name: value for name, value in os.environ.items() if name != "LATLAB_STAGES"}
    subprocess.run([tmp_path / "main"], env=silent, timeout=60, check=True)


def test_a_shell_marks_by_lines() -> None:
    heard = run("""
        import os, subprocess
        line = 'F=$LATLAB_STAGE_LINES; echo begin sort >> $F; sleep 0.3; echo end sort bytes=7 >> $F'
        subprocess.run(["sh", "-c", line], env=os.environ | latlab.stages.environment(), check=True)
    """)
    assert heard["sort"]["bytes"] == 7
    # Who listens may be kept from its CPU when the first line comes.
    assert heard["sort"]["seconds"] >= 0.03


def test_every_language_has_its_file() -> None:
    files = [_core.stages_file(language) for language in LANGUAGES]
    assert all(file is not None for file in files)
    assert _core.stages_file("cobol") is None
