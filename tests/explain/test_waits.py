"""What a program waits for by name: its locks, and who is at the other end of its connections."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from tests.compiling import alone
from tests.explain.in_process import explain

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux")]

SENT: Final = 100_000
ANSWERED: Final = 7_000

LOCKED: Final = """
#include <pthread.h>
#include <time.h>

pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *nothing) {
    pthread_mutex_lock(&table_lock);
    pthread_mutex_unlock(&table_lock);
    return nothing;
}

int main(void) {
    struct timespec second = {1, 0};
    pthread_t other;
    pthread_mutex_lock(&table_lock);
    pthread_create(&other, 0, wait_for_it, 0);
    nanosleep(&second, 0);
    pthread_mutex_unlock(&table_lock);
    return pthread_join(other, 0);
}
"""

ASKS: Final = """
import socket, sys, time
asks = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
asks.sendall(bytes(int(sys.argv[2])))
left = int(sys.argv[3])
while left:
    left -= len(asks.recv(left))
time.sleep(1.5)
"""

NODE_COLLECTED: Final = """
const { Worker, isMainThread } = require("worker_threads");

function collect() {
    let kept = [];
    for (let i = 0; i < 1000000; i++) {
        const each = { i, text: "x" + i, list: [i] };
        if (i % 30 === 0) kept.push(each);
        if (kept.length > 60000) kept = [];
    }
}

setTimeout(collect, 1000);
if (isMainThread) new Worker(__filename);
"""

COLLECTED: Final = """
import java.util.*;

public class Collected {
    public static void main(String[] arguments) {
        List<byte[]> kept = new ArrayList<>();
        for (int round = 0; round < 400_000; round++) {
            byte[] fresh = new byte[1024];
            if (round % 100 == 0) kept.add(fresh);
        }
        System.gc();
        System.out.println(kept.size());
    }
}
"""

GO_COLLECTED: Final = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

func main() {
	var kept [][]byte
	for round := 0; round < 20_000; round++ {
		kept = append(kept, make([]byte, 1024))
		if round%1000 == 0 {
			runtime.GC()
		}
	}
	var told runtime.MemStats
	runtime.ReadMemStats(&told)
	longest := slices.Max(told.PauseNs[:])
	text := fmt.Sprint(told.NumGC, " ", told.PauseTotalNs, " ", longest, " ", len(kept))
	if os.WriteFile(os.Args[1], []byte(text), 0o600) != nil {
		os.Exit(1)
	}
	time.Sleep(2 * time.Second)
}
"""

ASKED: Final = 700
SLEPT: Final = 0.2
CALLS: Final = f"""
import os, sys, threading, time

def give_way():
    for _ in range({ASKED}):
        os.sched_yield()

for _ in range({ASKED}):
    try:
        os.getpgid(2**31 - 1)
    except ProcessLookupError:
        pass
other = threading.Thread(target=give_way)
other.start()
give_way()
other.join()
written = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
time.sleep({SLEPT})
for _ in range({ASKED}):
    os.write(written, bytes(10))
try:
    os.read(os.dup2(written, 200), 1)
    os.truncate(200, -1)
except OSError:
    pass
# Names are asked for while the descriptors are open.
time.sleep({SLEPT})
"""


def explained(folder: Path, *program: str, level: str, overhead: str = "5%") -> dict[str, Any]:
    file = folder / "where.json"
    options = ("--no-limits", "--level", level, "--overhead", overhead)
    result = explain(*options, "--json", str(file), "--", *program)
    assert result.returncode == 0, result.stderr
    ledger: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return ledger


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")
@pytest.mark.parametrize("level", ["1", "3"])
def test_a_lock_has_the_name_of_its_variable_and_the_thread_that_has_it(tmp_path: Path, level: str) -> None:
    (tmp_path / "locked.c").write_text(LOCKED, encoding="utf-8")
    subprocess.run(["gcc", "-pthread", "-o", "locked", "locked.c"], cwd=tmp_path, check=True)
    ledger = explained(tmp_path, str(tmp_path / "locked"), level=level)
    (lock,) = ledger["locks"]
    assert (lock["name"], lock["object"], lock["threads"]) == ("table_lock", "locked", 1)
    assert 0 < lock["waited_s"] <= ledger["wall_s"]
    assert [(each["thread"], each["name"]) for each in lock["holders"]] == [
        (ledger["program"]["pid"], "locked")
    ]


@pytest.mark.parametrize("level", ["1", "3"])
def test_a_connection_has_both_its_ends_and_all_of_its_bytes(tmp_path: Path, level: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = server.getsockname()[1]

        def answer() -> None:
            taken, _ = server.accept()
            with taken:
                taken.settimeout(60)
                left = SENT
                while left:
                    left -= len(taken.recv(left))
                taken.sendall(bytes(ANSWERED))
                # The program ends before its connection does.
                taken.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        ledger = explained(
            tmp_path, sys.executable, "-c", ASKS, str(port), str(SENT), str(ANSWERED), level=level
        )
        thread.join()
    rows = [row for row in ledger["files"]["rows"] if row["name"].endswith(f" to 127.0.0.1:{port}")]
    assert [row["kind"] for row in rows] == ["socket"]
    assert (rows[0]["written"]["bytes"], rows[0]["read"]["bytes"]) == (SENT, ANSWERED)
    assert rows[0]["sent_again"] >= 0


def test_every_call_is_counted_with_its_errors_where_all_may_be_recorded(tmp_path: Path) -> None:
    written = tmp_path / "written"
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    program = (sys.executable, "-I", "-S", str(tmp_path / "calls.py"), str(written))
    assert "calls" not in explained(tmp_path, *program, level="1", overhead="5%")
    ledger = explained(tmp_path, *program, level="1", overhead="unlimited")
    if ledger["level"] != 1:
        pytest.skip("every call takes level 1")
    assert ledger["calls"]["lost"] == 0
    of = {call["name"]: call for call in ledger["calls"]["of"]}
    assert (of["getpgid"]["times"], of["getpgid"]["errors"]) == (ASKED, [{"name": "ESRCH", "times": ASKED}])
    assert of["nanosleep" if "nanosleep" in of else "clock_nanosleep"]["longest_s"] >= SLEPT
    # Those of two threads at once: of each its own end.
    assert of["sched_yield"]["times"] == 2 * ASKED
    assert all(0 <= call["longest_s"] <= call["seconds"] for call in of.values())
    # And on a file, by both of its descriptors: the writes, the copy, the read at its end, and the refusal.
    on = {row.get("name"): row for row in ledger["calls"]["on"]}[str(written)]
    assert (on["written_bytes"], on["read_bytes"], on["kind"]) == (10 * ASKED, 0, "file")
    assert (on["times"], on["errors"]) == (ASKED + 3, [{"name": "EINVAL", "times": 1}])
    assert 0 < on["longest_s"] <= on["seconds"]


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here")
@pytest.mark.parametrize("level", ["1", "3"])
def test_pauses_of_java_are_those_of_its_own_log(tmp_path: Path, level: str) -> None:
    source = tmp_path / "Collected.java"
    source.write_text(COLLECTED, encoding="utf-8")
    log = tmp_path / "gc.log"
    options = ("-XX:+UsePerfData", "-XX:+UseSerialGC", "-Xmx64m", f"-Xlog:gc:file={log}")
    ledger = explained(tmp_path, "java", *options, str(source), level=level)
    logged = [line for line in log.read_text(encoding="utf-8").splitlines() if "Pause" in line]
    result = {each["kind"]: each for each in ledger["pauses"]}
    collected = [each for kind, each in result.items() if "collection pauses" in kind]
    assert len(logged) > 1
    assert sum(each["times"] for each in collected) == len(logged)
    logged_s = sum(float(line.rsplit(" ", 1)[1].removesuffix("ms")) / 1e3 for line in logged)
    # Its clock is read within the span that the counters have, or around it.
    assert sum(each["seconds"] for each in collected) == pytest.approx(logged_s, rel=0.5, abs=0.05)
    assert all(0 < each["longest_s"] <= each["seconds"] for each in collected)


@pytest.fixture(scope="module")
def collected_by_go(tmp_path_factory: pytest.TempPathFactory, compilers: None) -> Path:
    """A program of Go that tells how often and how long it was stopped, and the same without types."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go here")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(GO_COLLECTED, encoding="utf-8")
    (folder / "go.mod").write_text("module collected\n\ngo 1.21\n", encoding="utf-8")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": ""}
    with alone():
        for name, options in (("whole", ()), ("moved", ("-buildmode=pie",)), ("untyped", ("-ldflags=-w",))):
            command = ["go", "build", "-o", name, *options, "."]
            subprocess.run(command, cwd=folder, check=True, env=environment)
    return folder


@pytest.mark.parametrize(("name", "level"), [("whole", "1"), ("whole", "3"), ("moved", "3")])
def test_pauses_of_go_are_those_that_the_program_reads_itself(
    tmp_path: Path, collected_by_go: Path, name: str, level: str
) -> None:
    answer = tmp_path / "own"
    ledger = explained(tmp_path, str(collected_by_go / name), str(answer), level=level)
    times, total_ns, longest_ns, _ = map(int, answer.read_text(encoding="utf-8").split())
    (result,) = ledger["pauses"]
    assert (result["runtime"], result["kind"]) == ("Go", "garbage collection pauses")
    assert result["is_least"], "its memory is gone with it"
    assert 20 <= times <= 256
    # It sleeps when it has counted, so that the last scan comes after that.
    assert result["times"] == times
    assert result["seconds"] == pytest.approx(total_ns / 1e9)
    assert result["longest_s"] == pytest.approx(longest_ns / 1e9)


def test_pauses_of_a_go_program_without_types_are_not_told(tmp_path: Path, collected_by_go: Path) -> None:
    program = str(collected_by_go / "untyped")
    assert "pauses" not in explained(tmp_path, program, str(tmp_path / "own"), level="3")


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
def test_pauses_of_node_are_those_that_it_lists_in_all_its_threads(tmp_path: Path) -> None:
    source = tmp_path / "collected.js"
    source.write_text(NODE_COLLECTED, encoding="utf-8")
    listed = tmp_path / "listed"
    # It starts a thread once its functions are watched, which the kernel must not refuse.
    command = f"exec node --trace-gc {source} > {listed}"
    assert "pauses" not in explained(tmp_path, "sh", "-c", command, level="1", overhead="5%")
    ledger = explained(tmp_path, "sh", "-c", command, level="1", overhead="unlimited")
    if ledger["level"] != 1 or not Path("/sys/bus/event_source/devices/uprobe").exists():
        pytest.skip("watching functions takes level 1 and a kernel with uprobes")
    assert ledger["program"]["exit_code"] == 0
    lines = re.findall(r"(Scavenge|Mark-Compact).* MB, ([\d.]+) / ", listed.read_text(encoding="utf-8"))
    pauses_s = [float(ms) / 1e3 for _, ms in lines]
    (result,) = ledger["pauses"]
    assert (result["runtime"], result["kind"]) == ("V8", "garbage collection pauses")
    assert result["is_least"], "the first ones came before the functions were watched"
    # Two threads collect, after a second in which nothing does.
    assert len(pauses_s) - 3 <= result["times"] <= len(pauses_s)
    assert len(pauses_s) >= 40
    # A thread that loses its CPU as it calls a function reads its own clock later.
    assert result["seconds"] >= 0.8 * sum(sorted(pauses_s)[: result["times"]])
    assert result["seconds"] <= 1.5 * sum(pauses_s) + 0.2
    assert result["longest_s"] <= 1.5 * max(pauses_s) + 0.1


def test_the_end_of_a_program_hangs_on_the_child_that_sleeps(tmp_path: Path) -> None:
    ledger = explained(tmp_path, "sh", "-c", "sleep 0.7 | cat; true", level="1", overhead="unlimited")
    if "path" not in ledger:
        pytest.skip(ledger["about_path"])
    longest, *_ = ledger["path"]["steps"]
    assert (longest["name"], longest["doing"]) == ("sleep", "sleep")
    assert longest["seconds"] >= 0.7 - 1e-3
    ended = {(each["name"], each["category"], each.get("by_name")) for each in ledger["path"]["ended"]}
    assert {("sleep", "sleep", None), ("cat", "pipe", "sleep")} <= ended
    assert sum(step["share"] for step in ledger["path"]["steps"]) == pytest.approx(1)
