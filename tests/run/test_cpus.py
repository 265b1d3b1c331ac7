"""What is told of figures that another CPU has otherwise: on the screen, in a report, by the doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from latlab.cli.terminal.ladder_table import ladder_lines
from latlab.cli.terminal.screen import Screen
from latlab.doctor import examine
from latlab.report.build import build
from latlab.run import export, model, reader
from latlab.run.cpus import differing
from latlab.run.fold import keeping
from latlab.run.ladder import ladder
from latlab.run.run import Run
from latlab.topics.surprises import RULES, surprises

DATA = Path(__file__).resolve().parents[1] / "data"
ROUNDS = reader.read(DATA / "run-rounds.latlab.jsonl")
FOOTNOTE = "disk, random 4 KiB read: 70.1 µs on CPU 1, 98.2 µs on CPU 0"
TEXT = (
    "Times depend on the CPU: 130 µs on CPU 1, 182 µs on CPU 0 (disk, durable 4 KiB write; 1 more of storage"
    "). CPU 1 handles the disk's interrupts: pin the program to CPU 1, or move the interrupts"
    " where the driver allows it."
)
#: Probe, point, reach, what CPU 1 takes, and how many times as long CPU 0 does.
FIGURES: tuple[tuple[str, dict[str, Any], model.Reach, float, float], ...] = (
    ("storage.read.random", {"block_bytes": 4096, "queue_depth": 1, "path": "direct"}, "shared", 70e3, 1.4),
    ("storage.sync", {"operation": "overwrite", "sync": "fdatasync"}, "private", 130e3, 1.4001),
    ("storage.poke", {"path": "buffered-warm", "file_bytes": 1_000_000}, "shared", 1e3, 1.0),
    ("kernel.syscall", {"operation": "getppid"}, "first", 120.0, 1.0),
)


def a_run(
    cpus: tuple[int, ...] = (0, 1),
    handlers: list[int] | None = None,
    *,
    apart: bool = True,
    file: str | None = None,
) -> Run:
    """Six rounds of a disk that answers faster on CPU 1, whose interrupts these CPUs handle."""
    machine = msgspec.to_builtins(ROUNDS.header, enc_hook=model.from_machine)["machine"]
    if handlers is not None:
        machine["disks"][0]["interrupt_cpus"] = handlers
    header = msgspec.structs.replace(
        ROUNDS.header,
        machine=model.Machine(machine),
        cpus=cpus,
        plan=(),
        settings=msgspec.structs.replace(ROUNDS.header.settings, file=file),
    )
    lines = []
    for number in range(6):
        cpu = cpus[number % len(cpus)]
        for probe, point, reach, fast, factor in FIGURES:
            slower = factor if cpu == 0 and apart else 1.0
            p50 = fast * slower * (1 + 0.002 * (number // 2))
            lines.append(
                model.Record(
                    probe=probe, method=1, unit="ns", kind="per_op", stopped_by="planned", samples=100,
                    point=msgspec.convert(point, model.Point), rank="headline", reach=reach, round=number,
                    cpu=cpu, summary=model.Summary(p50=p50),
                )
            )  # fmt: skip
    return Run.of_lines(header, lines)


def reported(run: Run) -> list[str]:
    """Everything that is said of CPUs, in every place."""
    screen = Screen(width=200, unicode=True)
    table = "\n".join(line.text for line in ladder_lines(ladder(run), screen, textbook_year=2012))
    notes = [note for section in build(run).sections for each in section.listings for note in each.notes]
    said = [surprise.text for surprise in surprises(run, len(RULES)) if surprise.id == "cpus-differ"]
    advice = [finding.title for finding in examine(run.machine, last=run) if finding.id == "cpus-differ"]
    found = [line for line in (*table.splitlines(), *notes, *said, *advice) if " on CPU 0" in line]
    return found + [rung.key for rung in ladder(run) if rung.by_cpu]


def test_a_disk_that_one_cpu_serves_is_reported_with_what_to_do() -> None:
    run = a_run(handlers=[1])
    texts = reported(run)
    assert f" · {FOOTNOTE}" in texts
    assert f"{FOOTNOTE}." in texts
    assert TEXT in texts
    assert texts[-2:] == ["disk-read", "disk-sync"]
    (finding,) = [finding for finding in examine(run.machine, last=run) if finding.id == "cpus-differ"]
    assert finding.title == TEXT.partition(". ")[0].replace("Times", "times")
    assert finding.effect.startswith("CPU 1 handles the disk's interrupts")
    assert finding.remedy is not None
    assert finding.remedy.startswith("pin the program to CPU 1")


def test_the_figure_of_the_ladder_that_differs_most_is_named_and_the_others_are_counted() -> None:
    found = differing(a_run(handlers=[1]))
    assert found is not None
    assert found.named == "disk, durable 4 KiB write"
    assert found.ratio == pytest.approx(1.4, abs=1e-3)
    assert found.more == "; 1 more of storage"
    run = a_run(handlers=[1])
    other = msgspec.structs.replace(run.records[0], point=model.Point(block_bytes=512))
    assert other.apart
    found = differing(Run(run.header, [other]))
    assert found is not None
    assert (found.named, found.more) == (other.label, "")


@pytest.mark.parametrize("handlers", [None, [0], [0, 1], [7]])
def test_without_evidence_only_what_was_measured_is_said(handlers: list[int] | None) -> None:
    found = differing(a_run(handlers=handlers))
    assert found is not None
    assert found.figures == "130 µs on CPU 1, 182 µs on CPU 0"
    assert (found.why, found.remedy) == (
        "The reason is unknown",
        "repeat the run before pinning the program to CPU 1",
    )
    users = differing(a_run(handlers=[1], file="/a/file/on/another/disk"))
    assert users is not None
    assert users.why == "The reason is unknown"


def test_nothing_is_shown_where_cpus_are_alike_or_there_is_one_or_nobody_knows() -> None:
    assert reported(a_run(handlers=[1], apart=False)) == []
    assert reported(a_run(cpus=(0,), handlers=[1])) == []
    assert reported(reader.read(DATA / "run-v1.latlab.jsonl")) == []
    assert reported(Run(ROUNDS.header, ())) == []


def test_who_gets_an_anonymous_file_is_reported_the_same(tmp_path: Path) -> None:
    shared = export.anonymous(a_run(handlers=[1]))[0].save(tmp_path / "shared.latlab.jsonl")
    assert reported(reader.read(shared)) == reported(a_run(handlers=[1]))


def test_figures_that_were_kept_in_a_footer_say_it_too() -> None:
    run = a_run(handlers=[1])
    footer = keeping(model.Footer(ended="", stopped_by="completed"), run.records)
    assert reported(Run(run.header, footer.figures)) == reported(run)


def test_a_reason_that_this_version_does_not_know_is_none() -> None:
    run = a_run(handlers=[1])
    newer = [
        msgspec.structs.replace(record, spread=msgspec.structs.replace(record.spread, differ="phase_of_moon"))
        for record in run.records
        if record.spread is not None
    ]
    found = differing(Run(run.header, newer))
    assert found is not None
    assert found.why == "The reason is unknown"


def test_an_operation_that_is_half_of_what_was_measured_has_half_of_each_cpus_time() -> None:
    run = a_run(handlers=[1])
    disk = run.records[0]
    point = model.Point(operation="pipe", between="threads", placement="same-cpu")
    switch = msgspec.structs.replace(disk, probe="kernel.context_switch", point=point, kind="batch_mean")
    (rung,) = [rung for rung in ladder(Run(run.header, [switch])) if rung.by_cpu]
    assert [own.p50 for own in rung.by_cpu] == [own.p50 / 2 for own in disk.apart]
