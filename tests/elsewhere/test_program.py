"""A program on another machine, by arithmetic on ledgers and runs that were made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.calling import called
from tests.conftest import Calibrated
from tests.explain.ledgers import ledger
from tests.predict.machines import HERE, machine

from latlab import _core
from latlab.elsewhere import ratios, what_if
from latlab.elsewhere.program import Elsewhere, Options, elsewhere, kept_ledger, lines, predicted, refusal
from latlab.errors import UserError
from latlab.explain.limits import Curve, Limits, Speed
from latlab.explain.model import Within
from latlab.explain.words import CATEGORIES
from latlab.predict.answer import Refused
from latlab.predict.model import Range
from latlab.run.model import Record
from latlab.run.run import Run

RUN = Path(__file__).parents[1] / "data/run-small.latlab.jsonl"
#: 4 GB in order from a disk, which its ledger waited for.
READS = {"read_chars": 4e9, "read_calls": 32_000.0, "device_read_bytes": 4e9}
WAITS = {"storage-wait": 0.8}


def part(found: Elsewhere, name: str) -> str:
    (own,) = (part for part in found.parts if part.name == name)
    return own.by


def answer(found: Elsewhere) -> Range:
    assert found.answer is not None, found.refused
    return found.answer


def most_likely(found: Elsewhere) -> float:
    seconds = answer(found).seconds
    assert seconds is not None
    return seconds


def test_each_category_has_one_place_in_the_table_and_each_probe_exists() -> None:
    scaled = {name for name, _ in ratios.TABLE}
    groups = [scaled, set(ratios.UNSCALED), set(ratios.COMPUTING)]
    assert set.union(*groups) == set(CATEGORIES)
    assert sum(map(len, groups)) == len(CATEGORIES)
    assert {probe["id"] for probe in json.loads(_core.list_probes())} >= ratios.PROBES
    # Each category has figures for what has no part of its own.
    assert scaled == {name for name, own in ratios.TABLE if not own}


@pytest.mark.parametrize("figures", [ratios.MIX, ratios.MEMORY, *ratios.TABLE.values()])
def test_a_machine_takes_as_long_as_itself(figures: tuple[ratios.Figures, ...]) -> None:
    found = ratios.ratios(HERE, HERE, figures, 64 << 10)
    assert not isinstance(found, ratios.Missing)
    assert found
    assert all(ratio.value == 1.0 and ratio.deviation > 0 for ratio in found)


def test_on_the_same_machine_it_takes_what_it_takes_here() -> None:
    found = elsewhere(ledger(WAITS | {"page-faults": 0.1}, counters=READS), HERE, HERE)
    assert most_likely(found) == pytest.approx(10.0)
    assert answer(found).low < 10.0 < answer(found).high
    # Nothing is promised of programs.
    assert answer(found).level is None


def test_a_slower_disk_makes_what_waited_for_it_slower() -> None:
    # Its 4 GB take less by the figures: all that it waited is scaled, or what the figures say.
    found = elsewhere(ledger(WAITS, counters=READS), HERE, machine(storage__read=3.0))
    assert 2.0 + 8.0 + 2 * 4.0 < most_likely(found) < 2.0 + 3 * 8.0
    assert answer(found).low < 24.0
    assert answer(found).high > 24.0
    assert {source.probe for source in found.sources} >= {"storage.read.sequential", "cpu.mix"}


def test_what_a_disk_did_beside_other_work_is_hidden_no_longer_than_here() -> None:
    # 4 GB take 4.2 s of this disk, of which one second was waited for.
    explained = ledger({"storage-wait": 0.1}, counters=READS)
    (rate,) = {
        1e9 / (ratios.cost_ns(record) or 0) * (record.point.block_bytes or 0)
        for record in HERE.select("storage.read.sequential", path="buffered-cold", block_bytes=1 << 20)
    }
    found = elsewhere(explained, HERE, machine(storage__read=3.0))
    assert most_likely(found) == pytest.approx(10.0 + 2 * 4e9 / rate, rel=0.35)
    assert most_likely(found) > 10.0 + 3 * 1.0
    # A faster one hides all of it.
    assert most_likely(elsewhere(explained, HERE, machine(storage__read=0.1))) == pytest.approx(9.0, rel=0.02)


def test_page_faults_and_calls_are_scaled_by_their_own_figures() -> None:
    explained = ledger({"page-faults": 0.4, "kernel-cpu": 0.4})
    found = elsewhere(explained, HERE, machine(vm__fault=2.0))
    assert most_likely(found) == pytest.approx(14.0, rel=0.02)
    assert most_likely(elsewhere(explained, HERE, machine(kernel__syscall=2.0))) == pytest.approx(
        14.0, rel=0.02
    )
    assert part(found, "page-faults") == "vm.fault"


def test_what_counts_tell_of_the_kernels_work_is_scaled_as_that() -> None:
    explained = ledger({"kernel-cpu": 0.8})
    within = (Within("file-io-cpu", 0.3, 0.5, 0.4),)
    rows = [
        msgspec.structs.replace(row, within=within) if row.name == "kernel-cpu" else row
        for row in explained.categories
    ]
    found = elsewhere(msgspec.structs.replace(explained, categories=tuple(rows)), HERE, machine(kernel=2.0))
    assert most_likely(found) == pytest.approx(2.0 + 4.0 + 2 * 4.0, rel=0.02)


def test_the_network_is_taken_as_it_is_here_and_that_is_said() -> None:
    found = elsewhere(ledger({"network": 0.8}), HERE, machine(network=5.0, storage=5.0))
    assert most_likely(found) == pytest.approx(10.0)
    assert part(found, "network").startswith("as here")


def test_what_others_took_is_taken_as_none_to_twice_as_much() -> None:
    found = elsewhere(ledger({"run-queue-wait": 0.3, "sleep": 0.6}, width=0.0), HERE, HERE)
    assert most_likely(found) == pytest.approx(10.0)
    assert 7.0 < answer(found).low < 8.0
    assert 12.0 < answer(found).high < 13.5
    assert part(found, "run-queue-wait").startswith("between none and twice")


def test_much_computing_has_a_bracket_only_where_kernels_of_the_mix_differ() -> None:
    faster = machine(cpu__mix=0.5)
    found = elsewhere(ledger({"sleep": 0.2}), HERE, mixed_with(faster, "float-chain"))
    assert answer(found).seconds is None
    assert answer(found).bounds
    assert answer(found).low == pytest.approx(2.0 + 4.0, rel=0.1)
    assert answer(found).high == pytest.approx(10.0, rel=0.15)
    little = elsewhere(ledger({"sleep": 0.8}), HERE, mixed_with(faster, "float-chain"))
    assert answer(little).seconds is not None
    # All kernels alike are no bracket to speak of, if memory is.
    alike = elsewhere(ledger({"sleep": 0.2}), HERE, machine(cpu__mix=0.8, memory=0.8))
    assert most_likely(alike) == pytest.approx(2.0 + 0.8 * 8.0, rel=0.02)


def mixed_with(faster: Run, kernel: str) -> Run:
    """The machine of the made-up run with one kernel as fast as there."""
    (own,) = faster.select("cpu.mix", operation=kernel)
    kept = tuple(record for record in HERE.records if (record.probe, record.point) != (own.probe, own.point))
    return Run(HERE.header, (*kept, own))


@pytest.mark.parametrize(
    ("where", "command"), [("here", "latlab measure --only vm.fault"), ("there", "there")]
)
def test_a_figure_that_one_run_lacks_is_named_with_the_command_that_measures_it(
    where: str, command: str
) -> None:
    runs = [machine(without="vm.fault"), HERE]
    here, there = runs if where == "here" else reversed(runs)
    refused = elsewhere(ledger({"page-faults": 0.5}), here, there).refused
    assert refused is not None
    assert "vm.fault" in refused.why
    assert "50 %" in refused.why
    assert command in refused.lifted_by
    # Of what takes hardly any time it is not needed.
    assert elsewhere(ledger({"page-faults": 0.01}), HERE, machine(without="vm.fault")).answer


def test_reads_that_were_hidden_here_are_not_left_out_there() -> None:
    hidden = ledger({"sleep": 0.5}, counters=READS)
    assert most_likely(elsewhere(hidden, HERE, machine(storage__read=4.0))) > 12.0
    refused = elsewhere(hidden, HERE, machine(without="storage.read.sequential")).refused
    assert refused is not None
    assert "reading from the disk is hidden" in refused.why


def test_without_a_mix_there_is_no_prediction() -> None:
    refused = elsewhere(ledger({"sleep": 0.5}), HERE, machine(without="cpu.mix")).refused
    assert refused is not None
    assert refused.lifted_by == "latlab measure --only cpu.mix there"


def test_a_ledger_that_does_not_add_up_or_a_program_that_failed_is_refused() -> None:
    whole = ledger({"sleep": 0.5})
    assert refusal(whole) is None
    broken = msgspec.structs.replace(
        whole, closure=msgspec.structs.replace(whole.closure, sum=0.9, holds=False)
    )
    unknown = ledger({"unexplained": 0.4})
    for explained, word in (
        (broken, "accounting"),
        (unknown, "40 %"),
        (ledger({}, exit_code=3), "exit code 3"),
    ):
        found = elsewhere(explained, HERE, HERE)
        assert found.refused is not None
        assert word in found.refused.why
        assert found.answer is None
        assert found.refused.lifted_by


def test_threads_that_find_fewer_cpus_take_turns() -> None:
    both = {"most": 2, "parallelism": 2.0, "cpu_s": 20.0}
    explained = ledger({"sleep": 0.2}, threads=both)
    found = elsewhere(explained, HERE, machine(cpus=1.0))
    assert most_likely(found) == pytest.approx(2.0 + 2 * 8.0, rel=0.02)
    assert any("1 CPU" in note for note in found.notes)
    assert most_likely(elsewhere(explained, HERE, machine(cpus=8.0))) == pytest.approx(10.0, rel=0.02)
    one = elsewhere(ledger({"sleep": 0.2}), HERE, machine(cpus=1.0))
    assert most_likely(one) == pytest.approx(10.0, rel=0.02)


def test_what_was_cached_here_has_a_branch_and_more_than_the_memory_there_is_read_from_the_disk() -> None:
    cached = ledger({"file-io-cpu": 0.5}, wall_s=1.0, counters=READS | {"device_read_bytes": 0.0})
    found = elsewhere(cached, HERE, HERE)
    _, other = found.branches
    cold = other.range
    assert "not in the page cache" in other.when
    assert cold.low > 2 * answer(found).high
    small = elsewhere(cached, HERE, machine(memory=1e9))
    assert [own.when for own in small.branches] == [""]
    assert most_likely(small) == pytest.approx(cold.seconds, rel=0.02)
    assert any("more than the other machine" in note for note in small.notes)
    # Read from a disk here: the branch is the other one.
    _, other = elsewhere(ledger(WAITS, counters=READS), HERE, HERE).branches
    assert "is in the page cache" in other.when
    assert other.range.seconds == pytest.approx(2.0)


def test_a_range_of_four_times_is_refused() -> None:
    wide = ledger({"sleep": 0.05, "page-faults": 0.5}, width=0.6)
    refused = elsewhere(wide, HERE, machine(vm__fault=30.0)).refused
    assert refused is not None
    assert "the range would be" in refused.why
    assert refused.lifted_by == "latlab predict --runs 10"
    # Where not the ledger but the figures are uncertain, it is they that are measured again.
    disk = machine(storage__read=40.0)
    mixed = Run(
        disk.header, tuple(r for r in (*disk.select("storage*", path="direct"), *other_than_direct()))
    )
    refused = elsewhere(ledger(WAITS, counters=READS), HERE, mixed).refused
    assert refused is not None
    assert refused.lifted_by.startswith("latlab measure --only storage.read.sequential --profile thorough")


def other_than_direct() -> list[Record]:
    """The made-up run without transfers past the page cache."""
    return [record for record in HERE.records if record.point.path != "direct"]


def test_json_has_what_is_promised() -> None:
    found = elsewhere(ledger(WAITS, counters=READS), HERE, HERE).as_json()
    assert set(found) == {"job", "answer", "branches", "from", "refused"}
    assert found["job"] == "x"
    own = found["answer"]
    assert isinstance(own, dict)
    assert set(own) == {"seconds", "low", "high", "level"}
    assert {"probe": "cpu.mix", "point": "integer-chain"} in found["from"]  # type: ignore[operator]
    refused = elsewhere(ledger({}, exit_code=1), HERE, HERE).as_json()
    assert refused["answer"] is None
    assert set(refused["refused"]) == {"why", "lifted_by"}  # type: ignore[call-overload]


def test_the_lines_say_the_range_each_category_and_the_branch() -> None:
    text = "\n".join(lines(elsewhere(ledger(WAITS, counters=READS), HERE, HERE)))
    assert "predicted: " in text
    assert "(90 %, uncalibrated), most likely 10" in text
    assert "waiting for the disk: 8" in text
    assert "if what it reads is in the page cache there" in text
    text = "\n".join(lines(elsewhere(ledger({}, exit_code=1), HERE, HERE)))
    assert "No prediction: the program failed with exit code 1." in text


# ---- what-ifs on this machine

LIMITS = Limits(
    {
        "read-memory": Curve(
            "read-memory", (Speed(4096, 1e3, 1e3, 1e3), Speed(1 << 20, 64e3, 64e3, 64e3)), "A"
        ),
        "read-disk": Curve("read-disk", (Speed(4096, 4e3, 4e3, 4e3), Speed(1 << 20, 1e6, 1e6, 1e6)), "A"),
    }
)
#: A gigabyte by calls of 4 KiB, half of the time in them.
SMALL = {"read_chars": 1e9, "read_calls": 1e9 / 4096, "device_read_bytes": 0.0}


def answered(found: Range | Refused) -> Range:
    assert isinstance(found, Range), found
    return found


def test_another_block_size_scales_the_time_of_reads() -> None:
    explained = ledger({"file-io-cpu": 0.5}, counters=SMALL)
    faster = answered(what_if.block(explained, LIMITS, 1 << 20))
    assert faster.seconds == pytest.approx(5.0 + 5.0 * (64 / 256), rel=0.01)
    assert answered(what_if.block(explained, LIMITS, 4096)).seconds == pytest.approx(10.0)
    nothing = what_if.block(ledger({"file-io-cpu": 0.5}), LIMITS, 4096)
    assert isinstance(nothing, Refused)
    assert isinstance(what_if.block(explained, Limits(), 4096), Refused)


def test_another_disk_takes_its_bytes_between_all_hidden_and_none() -> None:
    explained = ledger({"storage-wait": 0.8}, counters=READS | {"device_read_bytes": 8e9})
    found = answered(what_if.disk(explained, LIMITS, 4e9))
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(4.0)
    assert found.seconds is not None
    assert found.low <= found.seconds <= found.high
    slower = answered(what_if.disk(explained, LIMITS, 0.5e9))
    assert (slower.low, slower.high) == pytest.approx((16.0, 18.0))
    assert answered(what_if.disk(explained, Limits(), 4e9)).seconds is None
    assert isinstance(what_if.disk(ledger({"sleep": 0.5}), LIMITS, 4e9), Refused)


def test_if_cached_is_the_bound_of_explain() -> None:
    explained = ledger({"storage-wait": 0.6, "file-io-cpu": 0.2}, counters=READS | {"written_chars": 0.0})
    found = answered(what_if.cached(explained, LIMITS))
    # All waiting is gone, and 32,000 reads of 125 kB take 8 µs each.
    assert found.low < 2.0 + 0.25 < found.high
    assert isinstance(what_if.cached(ledger({"sleep": 0.5}), LIMITS), Refused)
    assert isinstance(what_if.cached(explained, Limits()), Refused)


# ---- from the command line


def test_exactly_one_thing_is_asked() -> None:
    with pytest.raises(UserError, match="name one of"):
        predicted(["true"], Options())
    with pytest.raises(UserError, match="name one of"):
        predicted(["true"], Options(on=HERE, if_cached=True))


def test_a_ledger_is_read_from_its_file_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    explained = ledger(WAITS, counters=READS)
    file = tmp_path / "explain.json"
    file.write_bytes(msgspec.json.encode(explained))
    assert kept_ledger([str(file)]) == explained
    assert kept_ledger(["./program"]) is None
    assert kept_ledger([str(file), "more"]) is None
    file.write_text('{"schema": "else"}', encoding="utf-8")
    with pytest.raises(UserError, match="not a ledger"):
        kept_ledger([str(file)])


def test_the_command_predicts_a_kept_ledger_and_ends_with_3_where_it_cannot(tmp_path: Path) -> None:
    file = tmp_path / "explain.json"
    file.write_bytes(msgspec.json.encode(ledger(WAITS, counters=READS)))
    environment = dict(os.environ)
    reported = called(
        ["predict", "--run", str(RUN), "--json", str(file), "--on", str(RUN)], tmp_path, environment
    )
    assert reported.returncode == 0, reported.stderr
    assert json.loads(reported.stdout)["answer"]["seconds"] == pytest.approx(10.0)
    reported = called(["predict", "--run", str(RUN), "--on", str(RUN), str(file)], tmp_path, environment)
    assert "most likely" in reported.stdout
    file.write_bytes(msgspec.json.encode(ledger({}, exit_code=1)))
    reported = called(["predict", "--run", str(RUN), "--on", str(RUN), str(file)], tmp_path, environment)
    assert reported.returncode == 3
    assert "No prediction" in reported.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--"], "name a program"),
        (["--", "./program"], "name one of"),
        (["--disk", "3 s", "./program"], "not a rate"),
        (["--block", "0", "--", "./program"], "above zero"),
        (["--on", "nowhere.jsonl", "./program"], "nowhere"),
        (["--if-cached", "missing.json"], "there is no file"),
    ],
)
def test_a_mistake_is_one_line_and_2(words: list[str], says: str, tmp_path: Path) -> None:
    reported = called(["predict", *words], tmp_path, dict(os.environ))
    assert reported.returncode == 2
    assert says in reported.stderr
    assert reported.stdout == ""
    assert len(reported.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="programs are explained on Linux")
def test_what_the_program_writes_is_apart_from_the_answer(calibrated: Calibrated, own_home: Path) -> None:
    calibrated(own_home / "data")
    words = [sys.executable, "-m", "latlab", "predict", "--json", "--run", str(RUN), "--on", str(RUN)]
    reported = subprocess.run(
        [*words, "--", "sh", "-c", "echo out of it"], capture_output=True, text=True, check=False
    )
    assert reported.returncode in {0, 3}, reported.stderr
    assert "out of it" in reported.stderr
    found = json.loads(reported.stdout)
    assert found["job"] == "sh -c echo out of it"
    assert (found["answer"] is None) == (found["refused"] is not None) == (reported.returncode == 3)
