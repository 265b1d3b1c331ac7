"""Speaks the worker's protocol without measuring: `fake_worker.py SCENARIO_JSON PARENT`.

The scenario says what goes wrong, where: the points of the probes `fake.one` and `fake.two` are 1, 2, 3,
... KiB. Two hundred of these are started, so it imports little: no `pathlib` and no `typing`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = f"{TESTS}/data/run-small.latlab.jsonl"


def say(event: dict[str, object]) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


def main() -> None:
    scenario = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopping: list[bool] = []
    if scenario.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    request = json.loads(sys.stdin.readline())
    if "requests" in scenario:
        with open(scenario["requests"], "a", encoding="utf-8") as log:
            log.write(json.dumps(request) + "\n")
    if text := scenario.get("stderr"):
        sys.stderr.write(text)
        sys.stderr.flush()
    if scenario.get("die_first") or is_first(scenario.get("die_once")):
        sys.exit(3)
    with open(DATA, encoding="utf-8") as file:
        header = json.loads(file.readline())
    if text := scenario.get("fatal"):
        say({"event": "fatal", "text": text})
        sys.exit(1)
    points, probes = scenario.get("points", 3), ["fake.one", "fake.two"]
    plan = [
        {"id": p, "points": points, "seconds": 5.0, "memory_bytes": 0, "written_bytes": 500, "cpus": 1}
        for p in probes
    ]
    hello = {"event": "hello", "machine": header["machine"], "clock": header["clock"], "tool": header["tool"],
             "plan": plan, "rounds": scenario.get("rounds", 1), "cpus": [0, 1], "round": request["round"],
             "cpu": request["round"] % 2, "left_s": 10.0, "written_bytes": 1000, "again_bytes": 1000,
             **scenario.get("hello", {})}  # fmt: skip
    if scenario.get("hang") == "hello":
        time.sleep(600)
    say(hello)
    if "once" not in scenario or is_first(scenario["once"]):
        misbehave(scenario, "set-up")
    visit(scenario, request, probes, stopping)
    totals = {
        "records": {},
        "seconds": 0.1,
        "written_bytes": request["written_bytes"] + 7,
        "disturbed_blocks": 0,
        "worker_restarts": 0,
    }
    say({"event": "end", "stopped_by": "interrupted" if stopping else "completed", "totals": totals})
    if "test_file" in scenario:
        # As the real one: its file stays until whoever reads the events has opened it.
        os.close(1)
        sys.stdin.read()


def is_first(mark: str | None) -> bool:
    """Whether no worker before this one has left that file."""
    if mark is None or os.path.exists(mark):
        return False
    with open(mark, "w", encoding="utf-8"):
        return True


def visit(scenario: dict[str, Any], request: dict[str, Any], probes: list[str], stopping: list[bool]) -> None:
    if "test_file" in scenario:
        say_test_file(scenario, request["test_file"])
    for probe in scenario.get("further", []):
        say({"event": "further", "probe": probe, "points": [{"point": {"nodes": 1 + request["round"] // 2}}]})
    done = {(probe, json.dumps(point)) for probe, point in request["done"]}
    for probe in probes:
        if probe in request["done_probes"]:
            continue
        for number in range(1, scenario.get("points", 3) + 1):
            point = {"working_set_bytes": number * 1024}
            if (probe, json.dumps(point)) in done:
                continue
            if stopping:
                return
            written = request["written_bytes"] + 100 * (number - 1) + 300 * probes.index(probe)
            say(
                {"event": "begin", "probe": probe, "point": point, "written_bytes": written, "most_bytes": 50}
            )
            misbehave(scenario, f"{probe}/{number}")
            misbehave(scenario, f"round {request['round']} {probe}/{number}")
            time.sleep(scenario.get("pause", 0.0))
            say(record(probe, point, scenario, request["round"]))
            misbehave(scenario, f"after {probe}/{number}")
            progress = {"probe": probe, "point": f"{number} KiB", "p50": 1.5, "unit": "ns"}
            say({"event": "progress", **progress})


def misbehave(scenario: dict[str, Any], place: str) -> None:
    deaths = dict(map(tuple, scenario.get("deaths", [])))
    if place == scenario.get("garbage"):
        os.write(1, b'\xff\x00 not json\n{"event":"unheard"}\n[1,2]\n')
    if place == scenario.get("flood"):
        os.write(1, b"x\n" * 5000)
    if place == scenario.get("endless"):
        while True:
            os.write(1, b"x" * (1 << 20))
    if place == scenario.get("hang"):
        time.sleep(600)
    if place in deaths:
        how = deaths[place]
        if how.startswith("exit"):
            sys.exit(int(how.removeprefix("exit")))
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(10)


def say_test_file(scenario: dict[str, Any], given: int | None) -> None:
    """Lays out a file without a name, or writes down what is in the one that was handed over."""
    if given is not None:
        with open(scenario["test_file"], "a", encoding="utf-8") as log:
            log.write(os.pread(given, 100, 0).decode() + "\n")
        return
    descriptor = os.open(os.path.dirname(scenario["test_file"]), os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(descriptor, b"laid out once")
    say({"event": "testfile", "fd": descriptor})


def record(probe: str, point: dict[str, int], scenario: dict[str, Any], round_: int) -> dict[str, object]:
    figure = 1.5 + scenario.get("drift", 0.1) * round_
    return {
        "event": "record",
        "record": {
            "probe": probe, "method": 3, "point": point, "unit": "ns", "kind": "batch_mean", "samples": 3,
            "ops_per_sample": 100, "values": [1.0, 1.5, 2.0] * scenario.get("repeat", 1),
            "summary": {"p50": figure}, "stopped_by": "planned", "round": round_, "cpu": round_ % 2,
            "rank": scenario.get("rank", "headline"), "reach": "shared", "novel_field": {"kept": True},
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
