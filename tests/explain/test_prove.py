"""Experiments: which are suggested, how they are compared, and what happens to the program and its files."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.explain.in_process import explain
from tests.explain.ledgers import ledger

from latlab.explain import inputs
from latlab.explain.bench import CONTROL, Agenda, Streams
from latlab.explain.beside import proof_lines, proof_next, proof_table, sentences
from latlab.explain.experiments import (
    Experiment,
    Machine,
    Subject,
    environment_of,
    planned,
    subject_of,
)
from latlab.explain.judge import Judgement
from latlab.explain.model import Explained
from latlab.explain.prove import (
    Measured,
    Proof,
    agenda,
    beats,
    bound_of,
    compared,
    is_near,
    prove,
    reason_not_to,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="explain reads /proc")

NATIVE = Subject("/x", "native", "/lib64/ld-linux-x86-64.so.2")
MACHINE = Machine(cpus=4, allocators={"jemalloc": "/lib/je.so"}, huge_pages=True, glibc=(2, 36))
ALLOCATES = ledger({"allocator": 0.3, "page-faults": 0.2})


def names(*arguments: object) -> list[str]:
    return [each.name for each in planned(*arguments).experiments]  # type: ignore[arg-type]


# ---- what is suggested


def test_only_what_takes_three_percent_is_tried() -> None:
    assert names(ledger({"allocator": 0.01, "page-faults": 0.01}), NATIVE, MACHINE, [], 0) == []
    assert names(ALLOCATES, NATIVE, MACHINE, [], 0) == [
        "malloc-keeps-memory",
        "malloc-huge-pages",
        "malloc-jemalloc",
    ]


def test_what_cannot_reach_the_program_is_left_out_with_a_reason() -> None:
    static = planned(ALLOCATES, Subject("/x", "go"), MACHINE, [], 0)
    assert [each.name for each in static.experiments] == ["go-collects-less"]
    assert any("does not use glibc's loader" in text for text in static.left_out)
    bare = planned(ALLOCATES, NATIVE, Machine(cpus=1), [], 0)
    assert [each.name for each in bare.experiments] == ["malloc-keeps-memory"]
    assert any("none of mimalloc" in text for text in bare.left_out)


def test_a_cold_input_is_made_cold_again_before_each_run_and_a_warm_one_is_warmed(tmp_path: Path) -> None:
    io = {"storage-wait": 0.3, "file-io-cpu": 0.1}
    cold = planned(ledger(io, counters={"device_read_bytes": 9e5}), NATIVE, MACHINE, [tmp_path], 10**6)
    assert cold.baseline.cache == "evicted"
    assert [each.name for each in cold.experiments] == ["input-in-memory"]
    assert cold.experiments[0].cache == "warm"
    warm = planned(ledger(io, counters={"device_read_bytes": 9e4}), NATIVE, MACHINE, [tmp_path], 10**6)
    assert warm.baseline.cache == "warm"
    assert [(each.name, each.is_worse) for each in warm.experiments] == [("input-evicted", True)]


def test_a_preload_of_the_users_own_stays() -> None:
    changed = Experiment(name="x", says="", environment={"LD_PRELOAD": "/je.so", "GLIBC_TUNABLES": "a=1"})
    made = environment_of(changed, {"LD_PRELOAD": "/own.so", "GLIBC_TUNABLES": "b=2", "HOME": "/"})
    assert made == {"LD_PRELOAD": "/je.so:/own.so", "GLIBC_TUNABLES": "b=2:a=1", "HOME": "/"}


def test_what_a_command_starts_is_known(tmp_path: Path) -> None:
    assert subject_of([sys.executable]).kind == "python"
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\n", encoding="ascii")
    script.chmod(0o755)
    assert subject_of([str(script)]).kind == "python"
    shell = subject_of(["sh"])
    assert shell.kind == "native"
    assert subject_of(["/nowhere/none"]).kind == "unknown"


# ---- how it is compared


def test_the_figure_is_the_median_of_pairs_and_few_rounds_have_no_interval() -> None:
    pairs = [(1.0, 0.5), (2.0, 1.0), (4.0, 2.2)]
    low, median, high, is_interval = compared(pairs)
    assert (low, median, high) == pytest.approx((0.45, 0.5, 0.5))
    assert not is_interval
    low, median, high, is_interval = compared(pairs * 3)
    assert (low, median, high) == pytest.approx((0.45, 0.5, 0.5))
    assert is_interval


def test_a_bound_is_beaten_only_when_the_whole_interval_lies_above_it() -> None:
    assert not beats(0.30, 0.31)
    assert beats(0.32, 0.31)
    assert not beats(0.99, None)
    bound = bound_of(
        ALLOCATES, Judgement(), Experiment(name="x", says="", categories=("allocator", "page-faults"))
    )
    assert bound == pytest.approx(0.5 + 0.01 * 2**0.5, abs=0.01)


def test_a_bound_allows_for_the_waits_for_a_cpu_that_another_run_need_not_have() -> None:
    waited = ledger({"allocator": 0.2, "run-queue-wait": 0.5})
    change = Experiment(name="x", says="", categories=("allocator",))
    assert bound_of(waited, Judgement(), change) == pytest.approx(0.42)


def test_a_disk_that_is_not_read_from_costs_nothing_beside_file_io_either() -> None:
    judged = Judgement(beside_reading=0.1)
    reads = ledger({"storage-wait": 0.2, "file-io-cpu": 0.1}, width=0.0)
    for name, allowed in (("input-in-memory", 0.4), ("output-to-null", 0.3)):
        change = Experiment(name=name, says="", categories=("storage-wait", "file-io-cpu"))
        assert bound_of(reads, judged, change) == pytest.approx(allowed)


def measured(name: str, low: float, saving: float, high: float, bound: float | None = None) -> Measured:
    return Measured(
        name=name,
        says="",
        how=f"do {name}",
        rounds=7,
        wall_s=1 - saving,
        base_s=1.0,
        saving=saving,
        low=low,
        high=high,
        is_interval=True,
        bound=bound,
        beats_bound=beats(low, bound),
    )


def proof(*experiments: Measured) -> Proof:
    return Proof(baseline="warm", runs=9, input_files=0, input_bytes=0, experiments=experiments)


def test_the_next_step_is_the_best_that_was_found_and_is_more_than_chance() -> None:
    found = proof(
        measured(CONTROL, -0.02, 0.0, 0.03),
        measured("a", 0.1, 0.2, 0.3, 0.5),
        measured("b", 0.35, 0.4, 0.45, 0.5),
    )
    said = proof_next(found)
    assert said is not None
    assert said.startswith("Next: do b. It saves 40 %")
    assert "the bound is 50 %" in said
    assert proof_next(proof(measured(CONTROL, -0.2, 0.0, 0.3), measured("a", 0.01, 0.1, 0.2))) is None


def test_a_bound_that_was_beaten_is_called_wrong() -> None:
    found = proof(measured("a", 0.4, 0.5, 0.6, 0.3))
    assert any("EXCEEDS ITS BOUND" in line for line in proof_table(found))
    assert proof_lines(found)[0].startswith("The bound of a is wrong")
    assert not any("BEATS" in line for line in proof_table(proof(measured("a", 0.2, 0.5, 0.6, 0.3))))
    assert "more than the bound of 30 %" in (proof_next(found) or "")


@pytest.mark.parametrize(
    ("seconds", "near"), [(2.2, False), (0.3, False), (0.62, True), (0.4, True), (0.55, True)]
)
def test_a_run_is_near_others_within_their_range_or_a_quarter_of_their_median(
    seconds: float, *, near: bool
) -> None:
    assert is_near(seconds, [0.5, 0.48, 0.56]) is near


def test_without_unchanged_runs_nothing_is_known_of_the_one_that_was_explained() -> None:
    assert is_near(2.2, [])


def test_an_unusual_run_is_said_to_be_one_and_bounds_nothing() -> None:
    """The ledger is of a run of an hour, the program is over at once."""
    change = Experiment(name="c", says="", categories=("allocator",))
    found = run_agenda("pass", change, wall_s=3600.0)
    assert not found.is_typical
    assert [each.bound for each in found.experiments] == [None, None]
    said = sentences(ledger({"allocator": 0.5}, wall_s=3600.0), Judgement(), found)
    assert said[1].startswith("This run was unusual: it took 3600 s, the unchanged program")
    found = msgspec.structs.replace(found, is_typical=True)
    assert not any("usual" in line for line in sentences(ledger({}), Judgement(), found))


# ---- files and what is left


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An input of a program."""
    path = tmp_path / "input"
    path.write_bytes(os.urandom(1 << 20))
    return path


def input_on(kinds: str, *folders: Path) -> Iterator[Path]:
    """An input in the first folder whose file system is of that kind."""
    for folder in filter(Path.is_dir, folders):
        reported = subprocess.run(
            ["stat", "--file-system", "--format=%T", folder], capture_output=True, text=True, check=True
        )
        if re.fullmatch(kinds, reported.stdout.strip()):
            with tempfile.NamedTemporaryFile(dir=folder) as made:
                made.write(os.urandom(1 << 20))
                made.flush()
                os.fsync(made.fileno())
                yield Path(made.name)
            return
    pytest.skip(f"none of {[str(folder) for folder in folders]} is on {kinds}")


@pytest.fixture
def file_on_disk(tmp_path: Path, root: Path) -> Iterator[Path]:
    """An input whose pages the kernel lets go of when it is asked to."""
    yield from input_on("ext[234].*|xfs|btrfs|f2fs|overlayfs", tmp_path, root, Path.home(), Path("/var/tmp"))


@pytest.fixture
def file_on_tmpfs(tmp_path: Path) -> Iterator[Path]:
    """An input that is nowhere but in memory."""
    yield from input_on("tmpfs", Path("/dev/shm"), tmp_path)


def test_files_are_those_that_arguments_name(file: Path) -> None:
    found = inputs.named(["prog", "-x", f"--in={file}", str(file), "/dev/null", "/nowhere"], stdin=None)
    assert found == [file]
    assert inputs.named(["prog", sys.executable, str(file.parent)], stdin=None) == []


def test_a_file_named_by_key_is_an_input_and_what_was_written_meanwhile_is_none(file: Path) -> None:
    written = file.parent / "output"
    written.write_bytes(bytes(1 << 20))
    with inputs.Watch(["dd", f"if={file}", f"of={written}"]) as watch:
        later = time.time_ns() + 10**9
        os.utime(written, ns=(later, later))
    assert watch.files == [file]


def test_tmpfs_is_offered_only_where_an_argument_names_the_input(file: Path) -> None:
    reads = ledger({"file-io-cpu": 0.5})
    for argument, offered in ((str(file), True), (f"if={file}", True), (f"--in={file}", True), ("-", False)):
        plan = agenda(reads, ["dd", argument], [file]).planned
        assert ("input-on-tmpfs" in [each.name for each in plan.experiments]) == offered
        assert offered or "Input on tmpfs: no argument names it." in plan.left_out


def test_an_evicted_file_has_no_page_in_memory_until_it_is_warmed(file_on_disk: Path) -> None:
    inputs.evict([file_on_disk])
    assert inputs.resident([file_on_disk]) == 0.0
    inputs.warm([file_on_disk])
    assert inputs.resident([file_on_disk]) == 1.0


def test_a_file_on_tmpfs_stays_in_memory(file_on_tmpfs: Path) -> None:
    inputs.evict([file_on_tmpfs])
    assert inputs.resident([file_on_tmpfs]) == 1.0


def test_of_a_file_that_is_not_there_nothing_is_known(tmp_path: Path) -> None:
    assert inputs.resident([tmp_path / "none"]) is None


def opened(watched: int) -> bool:
    """Whether inotify has told of anybody who opened the file."""
    with contextlib.suppress(BlockingIOError):
        return bool(os.read(watched, 4096))
    return False


def test_nobody_opens_an_input_before_the_program_has_ended(file: Path) -> None:
    libc = ctypes.CDLL(None)
    watched = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(watched, bytes(file), 0x20) >= 0, "IN_OPEN"
    with inputs.Watch(["prog", str(file)]) as watch:
        pass
    before, found = opened(watched), watch.files
    assert (before, found, opened(watched)) == (False, [file], True)
    os.close(watched)


def test_a_pipe_in_the_place_of_an_input_is_not_waited_for(file: Path) -> None:
    with inputs.Watch(["prog", str(file)]) as watch:
        file.unlink()
        os.mkfifo(file)
        os.utime(file, ns=(0, 0))
    # Whoever opens it to read waits for a writer, which does not come.
    assert watch.files == []
    inputs.warm([file])
    inputs.evict([file])
    assert inputs.resident([file]) is None


def test_files_that_a_child_opens_are_seen(file: Path) -> None:
    program = f"import sys; file = open({str(file)!r}, 'rb'); sys.stdin.read()"
    with (
        inputs.Watch(["python"]) as watch,
        subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdin=subprocess.PIPE) as child,
    ):
        deadline = time.monotonic() + 60
        while file not in list(watch._found.values()) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.communicate()
    assert file in watch.files


def run_agenda(
    program: str,
    *experiments: Experiment,
    copied: Path | None = None,
    output: str = "null",
    key: str = "",
    wall_s: float = 0.05,
) -> Proof:
    arguments = [sys.executable, "-I", "-S", "-c", program, *([f"{key}{copied}"] if copied else [])]
    plan = planned(ledger({}), NATIVE, MACHINE, [], 0)
    what = Agenda(
        planned=type(plan)(plan.baseline, experiments),
        files=(copied,) if copied else (),
        input_bytes=0,
        rounds=2,
        in_a_row=1,
        seconds=1,
    )
    explained = ledger({"allocator": 0.5}, wall_s=wall_s)
    return prove(explained, Judgement(), arguments, what, Streams(None, output), seed=1)


def test_each_variant_runs_in_each_round_with_its_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What this process has set for itself is none of the program's.
    monkeypatch.setenv("CHANGED", "meanwhile")
    said = tmp_path / "said"
    program = f"import os; open({str(said)!r}, 'a').write(os.environ.get('CHANGED', 'no') + '\\n')"
    found = run_agenda(program, Experiment(name="c", says="", environment={"CHANGED": "yes"}))
    assert sorted(said.read_text(encoding="ascii").split()) == ["no"] * 4 + ["yes"] * 2
    assert found.runs == 6
    assert found.without_waits
    assert [each.name for each in found.experiments] == [CONTROL, "c"]
    assert all(each.rounds == 2 and not each.is_interval for each in found.experiments)


def test_a_hangup_that_is_ignored_is_ignored_by_the_program_too(tmp_path: Path) -> None:
    said = tmp_path / "said"
    program = f"import signal; open({str(said)!r}, 'a').write(signal.getsignal(signal.SIGHUP).name + '\\n')"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    run_agenda(program)
    kept = signal.signal(signal.SIGHUP, before)
    assert said.read_text(encoding="ascii").split() == ["SIG_IGN"] * 4
    assert kept == signal.SIG_IGN


def test_a_change_that_makes_the_program_fail_has_no_figure() -> None:
    program = "import os, sys; sys.exit(3 if 'CHANGED' in os.environ else 0)"
    found = run_agenda(program, Experiment(name="c", says="", environment={"CHANGED": "1"}))
    failed = found.experiments[1]
    assert failed.saving is None
    assert failed.failed == "it ended with exit code 3"


@pytest.mark.parametrize("key", ["", "if="])
def test_a_copied_input_is_read_from_memory_and_is_gone_afterwards(
    tmp_path: Path, file: Path, key: str
) -> None:
    said = tmp_path / "said"
    program = f"import sys; open({str(said)!r}, 'a').write(sys.argv[1].removeprefix({key!r}) + '\\n')"
    run_agenda(program, Experiment(name="c", says="", copies=True), copied=file, key=key)
    read = [path for path in said.read_text(encoding="ascii").split() if path != str(file)]
    assert len(read) == 2
    assert all(path.startswith(f"/proc/{os.getpid()}/fd/") for path in read)
    assert not any(map(os.path.exists, read))


PROVES = """
import sys
from pathlib import Path
from tests.explain.test_prove import run_agenda
from latlab.explain.experiments import Experiment
told, file = sys.argv[1:]
program = f'''
import os, sys, time
if sys.argv[1] != {file!r}:
    content = open(sys.argv[1], "rb").read()
    open({told}, "wb").write(os.getpid().to_bytes(8, "little") + content)
    time.sleep(600)
'''
run_agenda(program, Experiment(name="c", says="", copies=True), copied=Path(file))
"""


def named_copies(content: bytes, *folders: Path) -> list[Path]:
    """Files below these folders that hold this."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if path.stat().st_size == len(content) and path.read_bytes() == content]


def test_nothing_is_left_of_a_copy_when_latlab_is_killed(tmp_path: Path, root: Path, file: Path) -> None:
    temporary, content = tmp_path / "temporary", file.read_bytes()
    temporary.mkdir()
    in_memory = [path for path in (Path("/dev/shm"),) if path.is_dir()]
    reading, reported = os.pipe()
    proving = subprocess.Popen(
        [sys.executable, "-c", PROVES, str(reported), str(file)],
        cwd=root,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": f"{root}:{root / 'python'}"},
        pass_fds=[reported],
    )
    os.close(reported)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
        said = pipe.read(8 + len(content))
    # The program has read its copy, which is there until it or latlab ends.
    before = named_copies(content, temporary, *in_memory)
    proving.kill()
    assert proving.wait(timeout=60) == -signal.SIGKILL
    os.kill(int.from_bytes(said[:8], "little"), signal.SIGKILL)
    assert said[8:] == content
    assert before == named_copies(content, temporary, *in_memory) == []
    assert list(temporary.iterdir()) == []


NULL = Experiment(name="n", says="", output="null")


def test_without_room_for_a_copy_its_experiment_says_so_and_the_others_have_figures(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("latlab.explain.bench.os.sendfile", full)
    found = run_agenda("", Experiment(name="c", says="", copies=True), NULL, copied=file)
    assert [each.saving is None for each in found.experiments] == [False, True, False]
    assert "No space left" in (found.experiments[1].failed or "")


def test_where_no_output_can_be_written_the_program_has_no_figure_and_the_rest_is_printed(
    tmp_path: Path,
) -> None:
    found = run_agenda("", NULL, output=str(tmp_path / "gone"))
    assert all("unchanged program" in (each.failed or "") for each in found.experiments)
    assert any("No such file" in line for line in proof_table(found))


def test_a_child_left_behind_with_the_output_costs_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    join = threading.Thread.join

    def joins(thread: threading.Thread, timeout: float | None = None) -> None:
        waited.append(timeout)
        join(thread, timeout)
        assert not thread.is_alive()

    monkeypatch.setattr("threading.Thread.join", joins)
    leaves = "import os, time\nif os.fork() == 0: time.sleep(0.5)"
    found = run_agenda(leaves, NULL, output="pipe")
    assert all(each.saving is not None for each in found.experiments)
    assert waited == [None]


def test_a_program_that_failed_is_not_run_again() -> None:
    assert reason_not_to(ledger({}, exit_code=3)) == "it ended with 3"
    assert reason_not_to(ledger({}, left_running=2)) == "some of its processes are still running"
    assert reason_not_to(ledger({})) is None


def test_a_long_program_is_run_fewer_times_and_a_short_one_several_times_in_a_row() -> None:
    long = agenda(ledger({"page-faults": 0.5}, wall_s=100), ["sh"], [])
    short = agenda(ledger({"page-faults": 0.5}, wall_s=0.01), ["sh"], [])
    assert (long.rounds, long.in_a_row) == (3, 1)
    assert (short.rounds, short.in_a_row) == (7, 10)
    assert short.runs == 7 * 10 * len(short.variants)


# ---- the command


@pytest.mark.slow
def test_the_command_says_how_often_tries_it_and_names_bound_and_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    # One that is over sooner is run several times in a row.
    touches = "import time; [len(bytearray(8 << 20)) for _ in range(60)]; time.sleep(0.05)"
    program = [sys.executable, "-I", "-S", "-c", f"print('once'); {touches}"]
    reported = explain(
        "--prove", "--yes", "--no-limits", "--runs", "1", "--level", "3", "--json", str(file), "--", *program
    )
    assert reported.returncode == 0, reported.stderr
    assert reported.stdout == "once\n"
    assert "more times, about" in reported.stderr
    assert "its other effects" in reported.stderr.replace("\n", " ")
    written = json.loads(file.read_text(encoding="utf-8"))
    names = [each["name"] for each in written["proof"]["experiments"]]
    # Which categories of so short a program are seen is chance; what they call for is not.
    seen = msgspec.json.decode(file.read_bytes(), type=Explained)
    assert names == [each.name for each in agenda(seen, program, []).variants[1:]]
    assert names[0] == CONTROL
    assert "python-malloc" in names
    assert written["proof"]["runs"] > 0
    assert {"name", "kind", "wall_s", "low_s", "high_s", "saving_low", "saving_high", "why"} <= set(
        written["bounds"][0]
    )
    assert "experiment" in reported.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--prove", "--", "true"], "--yes"),
        (["--yes", "--", "true"], "--yes"),
        (["--prove", "--yes", "--pid", "1"], "--prove"),
        (["--run", "none-such", "--", "true"], "none-such"),
        (["--run", "last", "--no-limits", "--", "true"], "--no-limits"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_run(arguments: list[str], says: str) -> None:
    reported = explain(*arguments)
    assert reported.returncode == 2
    assert len(reported.stderr.splitlines()) == 1
    assert says in reported.stderr


def test_an_input_that_can_be_read_only_once_is_no_input_of_experiments() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    reported = explain("--prove", "--yes", "--", "cat", stdin=reading)
    os.close(reading)
    assert reported.returncode == 2
    assert "read only once" in reported.stderr


def test_what_fails_is_explained_and_not_run_again() -> None:
    reported = explain("--prove", "--yes", "--no-limits", "--level", "3", "--", "sh", "-c", "exit 4")
    assert reported.returncode == 4
    assert "not run again because it ended with 4" in reported.stderr
