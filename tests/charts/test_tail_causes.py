"""The 1-CDF stacked by cause, and the same operations over time."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.calling import called

from latlab.charts import named
from latlab.run import reader
from latlab.run.model import Record, TailCauses, TailSample
from latlab.run.run import Run
from latlab.topics import long_tail, tail_causes

FILE = Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl"
RUN = reader.read(FILE)


def poked(causes: dict[str | None, int], **changed: object) -> Run:
    """The run with these slow pokes instead of its own, 10 µs and longer, and no other slow operations."""
    record = next(r for r in RUN.records if r.probe == "memory.poke" and r.point.working_set_bytes)
    names = [cause for cause, count in causes.items() for _ in range(count)]
    tail = tuple(
        TailSample(at_ns=1e6 * at, value=10_000.0 * 1.05**at, cause=cause) for at, cause in enumerate(names)
    )
    slow = msgspec.structs.replace(
        record,
        samples=1_000_000,
        tail=tail,
        tail_threshold=10_000.0,
        tail_dropped=0,
        tail_causes=TailCauses(level="tracepoints", threshold_ns=10_000.0, causes=()),
    )
    record_of: Record = msgspec.structs.replace(slow, **changed)
    return Run(RUN.header, [record_of], RUN.footer)


def test_each_cause_is_counted_from_every_length_on_and_nothing_is_lost() -> None:
    run = poked({"timer-tick": 20, None: 10, "context-switch": 10})
    (group,) = tail_causes.groups(run)
    assert group.causes == ("timer tick", "context switch", "unexplained")
    assert group.counts(0.0) == {"timer tick": 20, "context switch": 10, "unexplained": 10}
    # The last ten are the slowest.
    assert group.counts(10_000.0 * 1.05**30) == {"timer tick": 0, "context switch": 10, "unexplained": 0}
    assert "50 % timer tick" in named("tail_causes").alt_text(run)


def test_rare_causes_share_a_name_and_the_unexplained_never_does() -> None:
    names = ["timer-tick", "ipi", "softirq", "nmi", "host-tick", "periodic", None]
    run = poked({name: 10 - at for at, name in enumerate(names)})
    (group,) = tail_causes.groups(run)
    assert group.causes[-2:] == (tail_causes.OTHERS, "unexplained")
    assert sum(group.counts(0.0).values()) == len(group.samples)
    assert named("tail_causes").chart(run) is not None


def test_a_few_slow_ones_or_none_that_were_looked_at_have_no_picture() -> None:
    assert tail_causes.groups(poked({"timer-tick": 19})) == ()
    run = poked({"timer-tick": 40}, tail_causes=None)
    assert named("tail_causes").chart(run) is None
    assert "fewer than 20" in (named("tail_causes").absence(run) or "")


def test_where_room_was_short_only_what_is_complete_is_counted() -> None:
    (group,) = tail_causes.groups(poked({"timer-tick": 40}, tail_dropped=7, tail_threshold=1_000.0))
    assert group.least_ns == pytest.approx(10_000.0)


def test_what_waits_on_a_disk_waits_for_the_disk() -> None:
    run = poked({"waiting": 30, "run-queue-delay": 10}, probe="storage.sync")
    (group,) = tail_causes.groups(run)
    assert group.causes == ("the disk", "waiting for a CPU")


def test_slow_operations_over_time_have_their_causes_in_the_legend_and_in_words() -> None:
    run = poked({"timer-tick": 30, None: 5})
    assert named("over_time").chart(run) is not None
    words = named("over_time").alt_text(run)
    assert "30 timer tick, 5 unexplained" in words
    assert {row[2] for row in named("over_time").table(run).rows} == {"timer tick", "unexplained"}


def test_where_only_causes_are_known_the_section_says_that_there_is_no_long_tail() -> None:
    run = poked({"timer-tick": 40}, histogram=None)
    assert named("tail_causes").absence(run) is None
    assert "no record of this run holds 1,000" in long_tail.TOPIC.absence(run)


def test_slow_operations_that_took_no_time_have_no_picture() -> None:
    run = poked({"timer-tick": 30})
    zeros = tuple(msgspec.structs.replace(sample, value=0.0) for sample in run.records[0].tail)
    nothing = Run(run.header, [msgspec.structs.replace(run.records[0], tail=zeros)], run.footer)
    assert named("over_time").chart(nothing) is None
    assert named("over_time").absence(nothing) == "no operation was slow enough for its time to be kept"


def test_where_no_cause_was_looked_for_none_is_said() -> None:
    run = poked({None: 30}, tail_causes=None)
    assert named("over_time").chart(run) is not None
    assert "causes" not in named("over_time").alt_text(run)


@pytest.mark.parametrize("form", ["csv", "svg"])
def test_a_chart_that_a_run_has_not_is_refused_and_writes_nothing(form: str, tmp_path: Path) -> None:
    run = tmp_path / "short.latlab.jsonl"
    lines = (
        (Path(__file__).parents[1] / "data/run-small.latlab.jsonl").read_text(encoding="utf-8").splitlines()
    )
    header, footer = map(json.loads, lines)
    footer["figures"] = [each for each in footer["figures"] if each["kind"] == "derived"]
    run.write_text(f"{json.dumps(header)}\n{json.dumps(footer)}\n", encoding="utf-8")
    reported = called(["chart", str(run), "long_tail", "-o", f"x.{form}"], tmp_path, {})
    assert (reported.returncode, reported.stderr.count("\n")) == (2, 1)
    assert "no chart 'long_tail' of this run: no record of this run holds 1,000" in reported.stderr
    assert not (tmp_path / f"x.{form}").exists()
