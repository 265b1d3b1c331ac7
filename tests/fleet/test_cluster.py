"""Surveys of a Dask cluster: who is named, who failed and why, and what stays behind: nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import pytest
import zstandard
from tests.calling import called
from tests.fleet import loops
from tests.fleet.conftest import HOSTS, Fleet, children, worker_process
from tests.fleet.files import run_of

from latlab.compare.sides import Named
from latlab.fleet import agent, cluster, survey
from latlab.fleet.between import between

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="its hosts are addresses of Linux's loopback"),
    # Dask closes its sockets when they are collected.
    pytest.mark.filterwarnings("ignore"),
]


def verdicts(fleet: Fleet, **more: Any) -> dict[str, str]:  # noqa: ANN401 - what survey takes
    return {own["name"]: own["verdict"] for own in survey(fleet.client, **more).as_json()["hosts"]}


def test_of_six_that_are_alike_nobody_is_named_and_each_measures_once(fleet: Fleet, tmp_path: Path) -> None:
    said: list[str] = []
    assert verdicts(fleet, say=said.append) == {f"node{number}": "ok" for number in range(HOSTS)}
    assert [fleet.asked(f"node{number}") for number in range(HOSTS)] == [1] * HOSTS
    assert said[0] == "hosts: 6, workers: 6"
    assert said[-1].startswith("6 of 6: ")


def test_a_slow_host_is_measured_again_before_it_is_named(fleet: Fleet) -> None:
    fleet.lay_out({"node4": 3.0})
    surveyed = survey(fleet.client)
    assert [own.host.name for own in surveyed.named] == ["node4"]
    assert surveyed.named[0].because[0].ratio == pytest.approx(3.0, rel=0.1)
    assert [fleet.asked(f"node{number}") for number in range(HOSTS)] == [1, 1, 1, 1, 2, 1]


def test_a_host_that_is_slow_once_only_is_suspect(fleet: Fleet) -> None:
    fleet.lay_out({"node4": 3.0})

    def recover(text: str) -> None:
        if "again" in text:
            fleet.lay_out({})

    surveyed = survey(fleet.client, say=recover)
    assert surveyed.named == ()
    assert [own.host.name for own in surveyed.standings if own.kind == "suspect"] == ["node4"]


def test_hosts_that_share_a_name_stay_apart_when_surveys_are_compared(fleet: Fleet, tmp_path: Path) -> None:
    sides = []
    for seed, label in enumerate(("before", "after")):
        (tmp_path / label).mkdir()
        fleet.lay_out({"node4": 1.0 + 9.0 * seed}, 100 * seed)
        survey(fleet.client, folder=tmp_path / label)
        sides.append(Named(label, tuple(sorted((tmp_path / label).iterdir()))))
    found = between(*sides)
    assert {own.name: own.kind for own in found.hosts} == {
        f"node{number}": "changed" if number == 4 else "ok" for number in range(HOSTS)
    }
    assert found.only == ((), ())


@pytest.mark.parametrize(
    "fleet", [{"scheduler": ["broadcast"]}, {"worker": ["run"]}], indirect=True, ids=["scheduler", "worker"]
)
def test_where_functions_may_not_be_run_tasks_are(fleet: Fleet) -> None:
    fleet.lay_out({"node1": 3.0})
    surveyed = survey(fleet.client)
    assert surveyed.failed == ()
    assert [own.host.name for own in surveyed.named] == ["node1"]


def test_who_joins_while_others_measure_is_measured_too_and_another_version_is_refused(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[Any] = []
    measure = cluster.Cluster._measure

    async def joining(self: Any, places: Any, folder: Path) -> None:  # noqa: ANN401 - the cluster's own
        if not joined:
            for number, name in ((6, "late"), (7, "older")):
                options = fleet.spec(number)["options"] | {"name": name}
                joined.append(await distributed.Worker(fleet.cluster.scheduler_address, **options))
                packed = zstandard.ZstdCompressor().compress(run_of("x", number).encode())
                Path(joined[-1].local_directory, "answer").write_bytes(packed)
        await measure(self, places, folder)

    monkeypatch.setattr(cluster.Cluster, "_measure", joining)
    found = survey(fleet.client).as_json()["hosts"]
    for worker in joined:
        fleet.client.sync(worker.close)
    assert {own["name"]: own["verdict"] for own in found} == {
        **{f"node{number}": "ok" for number in range(HOSTS)},
        **{"late": "ok", "older": "failed"},
    }
    assert "latlab 0.0.1 is installed there" in found[-1]["reason"]


def test_a_host_that_cannot_measure_or_sends_nonsense_says_why_and_the_others_are_shown(
    fleet: Fleet, tmp_path: Path
) -> None:
    answers = {
        "node0": b"",
        "node1": b"nonsense",
        "node2": zstandard.ZstdCompressor().compress(b"{}\n"),
    }
    for name, data in answers.items():
        Path(fleet.workers[name].local_directory, "answer").write_bytes(data)
    Path(fleet.workers["node3"].local_directory, "answer").unlink()
    done = called(
        ["fleet", "survey", "--scheduler", fleet.cluster.scheduler_address, "--json"], tmp_path, os.environ
    )
    assert done.returncode == 1
    found = {own["name"]: own for own in json.loads(done.stdout)["hosts"]}
    assert [found[f"node{number}"]["verdict"] for number in range(HOSTS)] == ["failed"] * 4 + ["no-peers"] * 2
    reasons = [found[f"node{number}"]["reason"] for number in range(4)]
    assert reasons[0] == "exit code 0, and no run file"
    assert reasons[1].startswith("what it sent is no run file")
    assert reasons[2].startswith("what it sent is no run file: line 1: not a run of latlab")
    assert "FileNotFoundError" in reasons[3]


def test_a_cluster_with_other_work_is_labelled(fleet: Fleet) -> None:
    go_on = distributed.Event("go on", client=fleet.client)
    task = fleet.client.submit(go_on.wait, workers=[fleet.workers["node0"].address])
    while not any(fleet.client.processing().values()):
        time.sleep(0.01)
    surveyed = survey(fleet.client)
    go_on.set()
    task.result()
    assert len(surveyed.standings) == HOSTS
    assert surveyed.notes[0].startswith("The cluster was working: 1 tasks on 1 workers")


def test_an_adaptive_cluster_retires_nobody_who_has_yet_to_measure(
    fleet: Fleet,
) -> None:
    retired: list[list[str]] = []
    scheduler = fleet.cluster.scheduler

    def ask(text: str) -> None:
        if text.startswith("3 of 6"):
            retired.append(scheduler.workers_to_close())

    survey(fleet.client, say=ask)
    assert len(retired[0]) <= 3
    while any(fleet.client.processing().values()):
        time.sleep(0.01)
    assert len(scheduler.workers_to_close()) == HOSTS


def test_with_an_asynchronous_client_it_is_awaited(fleet: Fleet) -> None:
    async def asked() -> int:
        address = fleet.cluster.scheduler_address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            surveyed: Any = survey(client)
            return len((await surveyed).standings)

    assert loops.run(asked()) == HOSTS


def when_it_measures(process: subprocess.Popen[bytes], number: int, seen: list[int]) -> Callable[[], None]:
    """Sends a signal as soon as the worker measures."""

    def wait() -> None:
        while not seen and process.poll() is None:
            seen.extend(children(process.pid))
            time.sleep(0.01)
        process.send_signal(number)

    return wait


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGKILL, "its worker ended"), (signal.SIGSTOP, "no answer within")],
    ids=["killed", "hung"],
)
def test_a_worker_that_is_killed_or_hangs_in_mid_survey_costs_only_its_host(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    with worker_process(fleet, HOSTS) as process:
        seen: list[int] = []
        waiting = threading.Thread(target=when_it_measures(process, number, seen))
        waiting.start()
        # Its host has a measurement of two minutes before it, and less patience than that.
        found = survey(fleet.client, only="kernel.syscall", budget=2, answer_s=6, extra_s=6).as_json()
        process.kill()
        waiting.join()
        verdict = {own["name"]: own["verdict"] for own in found["hosts"]}
        assert verdict.pop("alone") == "failed"
        assert set(verdict.values()) == {"ok"}
        assert len(verdict) == HOSTS
        assert reason in found["hosts"][-1]["reason"]
    # What it had started ends by itself, and takes its folder along.
    assert seen
    while any(Path(f"/proc/{child}/stat").exists() for child in seen):
        time.sleep(0.01)


def test_a_measurement_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    program = f"import os, sys; open({str(started)!r}, 'w').write(str(os.getpid())); sys.stdin.read()"
    monkeypatch.setattr(agent, "command", lambda _: [sys.executable, "-I", "-S", "-c", program])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    answer = loops.run(agent.measure({}, 2.0, "name"))
    assert answer == {"failed": "the measurement did not end within 2 s"}
    assert not Path(f"/proc/{started.read_text()}").exists()
    assert not list(tmp_path.glob("latlab-survey-*"))


def test_an_agent_measures_in_a_process_with_a_clean_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    program = "import os, json; os.write(1, json.dumps(dict(os.environ)).encode())"
    with monkeypatch.context() as patched:
        patched.setattr(agent, "command", lambda _: [sys.executable, "-I", "-S", "-c", program])
        seen = json.loads(loops.run(agent.measure({}, 60.0, "name"))["packed"])
    assert not any(name.startswith("MALLOC_") for name in seen)
    answer = loops.run(
        agent.measure({"only": "kernel.syscall", "budget": 5, "profile": "quick"}, 60.0, "name")
    )
    text = zstandard.ZstdDecompressor().decompressobj().decompress(answer["packed"]).decode()
    assert json.loads(text.splitlines()[0])["settings"]["only"] == ["kernel.syscall"]
    assert not list(tmp_path.glob("latlab-survey-*"))


def test_settings_that_are_not_possible_on_the_host_are_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = loops.run(agent.measure({"dir": "/does-not-exist"}, 60.0, "name"))
    assert answer == {"failed": "dir: there is no directory '/does-not-exist'"}


def test_without_dask_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = called(["fleet", "survey", "--scheduler", "127.0.0.1:1"], tmp_path, os.environ)
    assert done.returncode == 2
    assert "pip install 'latlab[dask]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--scheduler", "127.0.0.1:1"], "no Dask scheduler at tcp://127.0.0.1:1: "),
        (["--scheduler", "nonsense://x"], "no Dask scheduler at nonsense://x: "),
        (["--scheduler", "127.0.0.1:1", "--tls-ca-file", "gone.pem"], "--tls-ca-file: there is no file"),
        (["--scheduler", "127.0.0.1:1", "--budget", "-3"], "--budget: "),
        (["--scheduler", "127.0.0.1:1", "--run"], "--run runs the commands of --hosts FILE"),
        (["--scheduler", "127.0.0.1:1", "--links", "--only", "memory.*"], "leave out --only"),
        (["--hosts", "hosts", "--links"], "leave out --hosts"),
    ],
)
def test_a_mistake_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    done = called(["fleet", "survey", *arguments], tmp_path, os.environ)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
