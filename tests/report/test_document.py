"""What a report says of a run."""

from __future__ import annotations

import random
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec
import pytest
from tests.some import some

from latlab.report.build import build
from latlab.report.document import Document, Section
from latlab.report.probes import Probes
from latlab.report.sections import of_topic, unmeasured
from latlab.run.model import Json, Record, Summary
from latlab.run.run import Run
from latlab.text import clean
from latlab.topics import (
    alignment,
    ladder,
    long_tail,
    network_throughput,
    network_transfer,
    storage_blocks,
    storage_files,
    storage_random,
    storage_rate,
    storage_reread,
)
from latlab.topics.chapters import TOPICS

Rate = tuple[float, float, float]
"""Of all repeats, of the slowest and of the fastest, bytes a second."""


def section(document: Document, name: str) -> Section:
    return next(section for section in document.sections if section.id == name)


def strings(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, dict):
        return [text for value in part.values() for text in strings(value)]
    if isinstance(part, list | tuple):
        return [text for value in part for text in strings(value)]
    if is_dataclass(part) and not isinstance(part, type):
        return [text for field in fields(part) for text in strings(getattr(part, field.name))]
    return []


def test_every_file_that_is_a_section_is_part_of_the_report(root: Path, document: Document) -> None:
    package = root / "python/latlab"
    files = {path.stem for path in package.glob("report/sections/*.py")} - {"__init__", "topic"}
    files |= {topic.id for topic in TOPICS}
    assert files == {section.id for section in document.sections}


def test_any_part_of_a_run_is_a_report(run: Run, described: Probes) -> None:
    for seed, share in enumerate((0.02, 0.2, 0.7)):
        dice = random.Random(seed)
        part = Run(run.header, [record for record in run.records if dice.random() < share])
        try:
            assert len(build(part, described).sections) == len(TOPICS) + 4
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_every_section_asks_a_question_and_answers_in_two_sentences_at_most(document: Document) -> None:
    for section in some(document.sections, 40):
        assert section.title.endswith("?")
        assert len(section.sentences) <= 2


def test_the_ladder_has_its_tables_and_its_picture(document: Document) -> None:
    own = section(document, "ladder")
    assert [row[0] for row in own.listings[0].table.rows][:2] == ["L1 cache, 48 KiB", "L2 cache, 1 MiB"]
    assert own.figures[0].name == "ladder"


def test_first_stand_trust_four_figures_ten_rows_three_jobs_and_three_surprises(document: Document) -> None:
    front = document.front
    assert front is not None
    assert front.trust[0] == "Trust: good."
    assert [card.title for card in front.cards] == [
        "RAM latency",
        "RAM bandwidth, 1 thread",
        "Random disk read, 4 KiB",
        "Durable write, 4 KiB",
    ]
    for card in front.cards:
        assert card.figure != "–"
        assert card.ends
        assert card.meaning.endswith(".")
    (chart,) = front.chart
    assert 9 <= len(chart.table.rows) <= 10
    assert chart.title.startswith("From 1.06 ns (L1) to ")
    assert [what for what, _ in front.jobs] == [
        "Reading 30 GB from the disk",
        "Writing 100,000 files of 10 kB, not flushed",
        "A million system calls",
    ]
    assert len(front.surprises) == 3
    # A screen's sentence each.
    assert all(len(first.split()) <= 30 for first, _ in front.surprises)


def test_a_figure_of_the_first_screen_that_was_not_measured_says_why(run: Run, described: Probes) -> None:
    front = build(Run(run.header, (), run.footer), described).front
    assert front is not None
    assert [card.figure for card in front.cards] == ["–"] * 4
    assert all(card.meaning.startswith("Not measured: ") for card in front.cards)
    assert (front.chart, front.jobs) == ((), ())
    assert front.trust[0] == "Trust: unknown."


def test_chapters_hold_every_section_once_and_what_answers_has_an_answer(document: Document) -> None:
    assert tuple(own for chapter in document.chapters for own in chapter.sections) == document.sections
    assert len(document.chapters) <= 9
    assert [group for group, _ in document.groups] == ["Memory", "CPU and kernel", "Disk", "Network", "Trust"]
    for chapter in some(document.chapters, 8):
        assert chapter.lead in chapter.sections
        assert chapter.lead.sentences or chapter.lead.notices, chapter.id


def test_the_answer_holds_the_figures_of_the_run(document: Document) -> None:
    assert "1.06 ns in L1" in section(document, "hierarchy").sentences[0]
    assert "L3 ends between 10 MiB and 14 MiB (CPU: 32 MiB)" in section(document, "hierarchy").sentences[1]
    assert "464 GB/s from 24 KiB" in section(document, "bandwidth").sentences[0]


def test_what_a_byte_means_stands_beside_every_rate(document: Document) -> None:
    text = " ".join(section(document, "bandwidth").evidence)
    for operation in ("read", "write", "copy", "triad"):
        assert f"A byte of {operation}: " in text


def test_what_was_not_measured_has_its_reason_and_its_place(document: Document) -> None:
    rows = section(document, "unmeasured").listings[0].table.rows
    poke = next(row for row in rows if row[0] == "memory.poke")
    assert "10 GB" in str(poke[1])
    assert "give it 40 GB to lift this" in str(poke[2])
    assert poke[3] == 2
    assert ("network.latency", "", "not part of this run's plan", 0) in rows


def test_the_doctors_findings_stand_with_what_they_do(document: Document) -> None:
    notices = section(document, "doctor").notices
    assert [notice.severity for notice in notices] == ["caution", "note"]
    assert "timed in batches" in notices[0].text


def test_what_could_not_be_learnt_of_the_machine_is_unknown_and_says_why(document: Document) -> None:
    machine = section(document, "machine")
    assert ("frequency governor", "unknown") in machine.listings[0].table.rows
    unknown = {row[0]: row[1] for row in machine.listings[1].table.rows}
    assert "is not there" in str(unknown["cpu.governor"])


def test_the_name_of_the_host_stays_out_of_the_report(document: Document, run: Run) -> None:
    host = run.machine.text("os.host_name")
    assert host
    assert not any(host in text for text in strings(document))


def test_mounted_disks_are_named_as_not_measured(run: Run, described: Probes) -> None:
    system = {
        "mount_point": "/data",
        "kind": "ext4",
        "source": "/dev/vdb",
        "total_bytes": 1 << 40,
        "in_memory": False,
    }
    memory = {**system, "mount_point": "/dev/shm", "kind": "tmpfs", "source": "tmpfs", "in_memory": True}
    machine = type(run.machine)({**run.machine, "file_systems": [system, memory]})
    with_disk = Run(msgspec.structs.replace(run.header, machine=machine), run.records[:40], run.footer)
    listing = section(build(with_disk, described), "unmeasured").listings[-1]
    assert [row[0] for row in listing.table.rows] == ["/data"]


def test_how_it_was_measured_is_in_the_probes_own_words(document: Document) -> None:
    methods = section(document, "hierarchy").methods
    assert methods[0].paragraphs == (
        "Each address is the value of the load before it.",
        "Every line is visited once in a cycle.",
    )


def test_a_run_that_was_cut_short_says_so_first(run: Run, described: Probes) -> None:
    partial = Run(run.header, run.records[:40], None)
    assert "cut short" in build(partial, described).notices[0].title


def test_a_run_without_records_says_why_in_every_section_with_a_chart(empty_document: Document) -> None:
    document = empty_document
    for name in ("ladder", "hierarchy", "translation", "pokes", "bandwidth", "stride", "clocks"):
        assert section(document, name).absence
        assert not section(document, name).figures


def test_a_failed_proof_is_named_among_what_was_not_measured(run: Run, described: Probes) -> None:
    first = run.select("memory.load.dependent", kind="batch_mean")[0]
    check = msgspec.structs.replace(first.checks[0], ok=False, detail="two cycles of 512 lines")
    failed = Run(run.header, (msgspec.structs.replace(first, checks=(check,)),))
    rows = section(build(failed, described), "unmeasured").listings[0].table.rows
    assert any("two cycles of 512 lines" in str(row[2]) for row in rows)


def test_no_string_of_a_report_holds_what_a_terminal_would_obey(hostile_document: Document) -> None:
    texts = strings(hostile_document)
    assert any("pwned" in text for text in texts)
    assert all(text == clean(text) for text in texts)


NEW = (
    "prefetch",
    "parallelism",
    "alignment",
    "loaded",
    "core_to_core",
    "false_sharing",
    "cpu_mix",
    "faults",
    "mappings",
    "allocation",
    "nodes",
    "reuse",
    "python",
    "kernel",
    "storage_blocks",
    "storage_random",
    "storage_rate",
    "storage_pokes",
    "storage_sync",
    "storage_files",
    "storage_reread",
    "storage_first_touch",
    "storage_steady",
    "network_roundtrip",
    "network_http",
    "network_throughput",
    "network_loaded",
)


@pytest.mark.parametrize("name", NEW)
def test_a_section_without_its_probe_says_why_and_nothing_else(
    empty_document: Document, document: Document, name: str
) -> None:
    alone = section(empty_document, name)
    assert alone.absence
    assert not alone.figures
    assert not alone.sentences
    assert not alone.listings
    full = section(document, name)
    assert full.sentences
    assert full.figures or full.listings
    assert not full.absence


def test_the_parts_of_a_node_are_added_up_and_compared_with_the_whole(document: Document) -> None:
    text = " ".join(section(document, "nodes").evidence)
    assert "allocator 10.6 ns + page faults 14.9 ns + stores 6.20 ns = 31.7 ns" in text
    assert "the whole with malloc takes 32.4 ns, so they explain 98 % (95–101 %) of it" in text


def test_the_loopback_round_trip_is_three_figures_and_waking_up_is_named(document: Document) -> None:
    first, second = section(document, "network_roundtrip").sentences
    assert first.startswith('"The" loopback round trip is three figures (TCP, 64 B): 70')
    assert "on one CPU and 9.5" in first
    assert "is waking two CPUs that sleep; one wake-up by a futex takes 24" in second


def test_one_placement_alone_is_no_three_figures(run: Run, described: Probes) -> None:
    alone = Run(run.header, run.select("network.roundtrip", placement="same-cpu"))
    (sentence,) = section(build(alone, described), "network_roundtrip").sentences
    assert sentence.startswith("A round trip of 64 B by TCP takes 15")


def test_coordinated_omission_is_named_with_its_factor(document: Document) -> None:
    first, second = section(document, "network_http").sentences
    assert first.startswith(
        "At 1,000 requests a second latlab's own server, on this machine, answers with p99 40"
    )
    assert "times less: it sends nothing while the server stalls" in second


def test_without_a_stall_both_views_agree(run: Run, described: Probes) -> None:
    alone = Run(run.header, run.select("network.http", rate_per_s=100))
    _, second = section(build(alone, described), "network_http").sentences
    assert "both views agree" in second


def test_several_streams_are_compared_with_one_and_placement_is_named(document: Document) -> None:
    own = section(document, "network_throughput")
    text = " ".join(own.sentences)
    assert re.search(r"2\.\d+ GB/s \([^)]+\) by one TCP stream and 5\.\d+ GB/s \([^)]+\) by 4 streams", text)
    assert re.search(r" together, 2\.\d times", text)
    one_cpu = r"both ends on one CPU a stream carries 2\.\d+ GB/s \([^)]+\), on two CPUs 1\.\d+ GB/s"
    assert re.search(one_cpu, text)
    assert "bypasses the network layers" in own.evidence[0]
    assert "the receiver's window 75%" in own.evidence[1]
    rows = own.listings[0].table.rows
    assert [row[0] for row in rows][-1] == "Unix socket"


def test_a_full_path_is_compared_with_the_same_path_idle(document: Document) -> None:
    own = section(document, "network_loaded")
    emulated, loopback = own.sentences
    assert emulated.startswith("Over the emulated path a round trip takes 20")
    assert "while 4 streams carry 6.0 MB/s" in emulated or "while 4 streams carry 6.00 MB/s" in emulated
    assert "times as long: " in emulated
    assert loopback.startswith("Over the loopback a round trip takes 70")
    assert any("by latlab's delay line" in line for line in own.evidence)


def test_bandwidth_stands_beside_the_most_that_a_core_could_move(document: Document) -> None:
    rows = section(document, "bandwidth").listings[0].table.rows
    assert [row[1] for row in rows] == ["L1", "L2", "L3", "RAM"]
    assert rows[0][6] == pytest.approx(0.93, abs=0.01)
    assert rows[-1][5] is None
    assert "not known" in str(rows[-1][7])


def test_an_access_across_lines_is_named_as_that(document: Document) -> None:
    rows = section(document, "alignment").listings[0].table.rows
    named = {(row[0], row[1]): row[2] for row in rows}
    assert named["load of 8 B", 60] == "across two lines"
    assert named["store of 8 B", 4092] == "across two pages"
    assert named["load of 8 B", 0] == "aligned"


@pytest.mark.parametrize(
    ("p99", "p999", "said"),
    [
        ((190, 210), (380, 420), "A power law is possible: p99 is 2.0 times p90, p99.9 is 4.0 times p99"),
        ((190, 210), (700, 900), "No power law fits"),
        ((190, 210), (380, 420), "Averages settle up to p99.9: the last ratio is below 3.2."),
        ((380, 420), (1500, 1600), "Averages depend on the slowest few: the last ratio is above 3.2."),
        ((100, 300), (700, 900), "Too few operations are this slow to know whether averages settle."),
        ((100, 101), (100, 101), "Whether a power law fits is unknown"),
        ((100, 101), (100, 101), " of all time."),
    ],
)
def test_a_power_law_and_what_it_means_for_averages_are_reported_by_ranges(
    run: Run, p99: tuple[float, float], p999: tuple[float, float], said: str
) -> None:
    record = some(r for r in run.records if r.kind == "per_op" and r.summary is not None)[0]
    summary = msgspec.structs.replace(
        record.summary or Summary(),
        p90=100.0,
        p99=200.0,
        p999=800.0,
        intervals={"p90": (99.0, 101.0), "p99": p99, "p999": p999},
    )
    assert said in long_tail.law(msgspec.structs.replace(record, summary=summary, resolution_ns=0.1))


@pytest.mark.parametrize(
    ("offset", "called"),
    [
        (52, "within a line"),
        (56, "aligned"),
        (57, "across two lines"),
        (4088, "aligned"),
        (4089, "across two pages"),
    ],
)
def test_an_access_that_ends_with_its_line_is_not_across_two(
    run: Run, described: Probes, offset: int, called: str
) -> None:
    one = run.select("memory.alignment", kind="batch_mean")[0]
    point = msgspec.structs.replace(one.point, offset_bytes=offset, size_bytes=8)
    record = msgspec.structs.replace(one, point=point, findings=None)
    (listing,) = of_topic(alignment.TOPIC, Run(run.header, [record]), described).listings
    assert listing.table.rows[0][2] == called


def test_the_operations_stand_below_the_levels_of_the_ladder(document: Document) -> None:
    levels, operations = section(document, "ladder").listings
    assert levels.table.rows[-1][0] == "… + TLB miss, over 1 GiB"
    assert operations.table.rows[0][0] == "malloc + free 32 B"


def test_reading_again_is_so_many_times_as_long_as_having_kept(document: Document) -> None:
    rows = section(document, "storage_reread").listings[0].table.rows
    for _, again, _, kept, _, times in some(rows):
        assert isinstance(again, float)
        assert isinstance(kept, float)
        assert times == pytest.approx(again / kept)


def test_an_allocator_that_is_not_installed_is_named(document: Document) -> None:
    assert "Not installed here, so not measured: jemalloc." in section(document, "allocation").evidence


def test_the_rules_that_are_said_of_disks_are_decided_with_figures(document: Document) -> None:
    rows = section(document, "storage_blocks").listings[1].table.rows
    assert [row[1] for row in rows] == ["true", "false", "undecided"]
    assert all(row[2] for row in rows)


@pytest.mark.parametrize(
    ("read", "written", "verdict"),
    [
        ((2e9, 1.8e9, 2.2e9), (1e9, 0.9e9, 1.1e9), "true"),
        ((1e9, 0.9e9, 1.1e9), (2e9, 1.8e9, 2.2e9), "false"),
        ((1.2e9, 0.8e9, 1.6e9), (1e9, 0.9e9, 1.1e9), "undecided"),
    ],
)
def test_whether_reading_beats_writing_is_decided_from_both_sides_beyond_their_repeats(
    run: Run, described: Probes, read: Rate, written: Rate, verdict: str
) -> None:
    records = []
    for probe, (whole, *repeats) in (
        ("storage.read.sequential", read),
        ("storage.write.sequential", written),
    ):
        for record in run.select(probe, path="direct"):
            found: dict[str, Json] = {"bytes_per_s": whole, "bytes_per_s_between_blocks": list(repeats)}
            records.append(msgspec.structs.replace(record, findings=found))
    listings = of_topic(storage_blocks.TOPIC, Run(run.header, records), described).listings
    (row,) = [row for own in listings for row in own.table.rows if row[0] == "reading beats writing"]
    assert row[1] == verdict


def test_what_30_gb_would_take_has_the_spread_of_the_repeats(document: Document) -> None:
    _, job = section(document, "storage_blocks").sentences
    assert re.fullmatch(
        r"At these rates reading 30 GB would take 7 min \d+ s \([^)]+\) in blocks of 4 KiB"
        r" and \d+ s \([^)]+\) in blocks of 64 MiB,"
        r" through an empty page cache \d+ s \([^)]+\) in blocks of \d+ [KM]iB;"
        r" brackets give the fastest and the slowest repeat\.",
        job,
    )


def test_memory_that_answers_takes_no_30_gb_of_a_disk(run: Run, described: Probes) -> None:
    def said(machine: Json) -> dict[tuple[object, object], str]:
        changed = msgspec.structs.replace(run.header, machine=type(run.machine)({**run.machine, **machine}))
        listing, *_ = of_topic(storage_blocks.TOPIC, Run(changed, run.records), described).listings
        return {(row[0], row[1]): str(row[-1]) for row in listing.table.rows}

    small, large = said({}), said({"memory": {"total_bytes": 64 << 30}})
    assert small["reading", "warm cache"] == "more than memory holds"
    assert large["reading", "warm cache"].startswith("4 KiB: ")
    assert small["writing", "never flushed"] == "the disk is not waited for"
    assert "4 KiB: " in small["reading", "cold cache"]


def test_the_depth_that_is_reported_is_the_least_with_nearly_the_highest_rate(
    run: Run, described: Probes
) -> None:
    def at(depth: int, rate: float) -> Record:
        one = run.select("storage.read.random", block_bytes=4096, queue_depth=1, kind="per_op")[0]
        point = msgspec.structs.replace(one.point, queue_depth=depth)
        return msgspec.structs.replace(one, point=point, findings={"rate_per_s": rate})

    records = [at(1, 1e4), at(4, 9.6e4), at(16, 1e5)]
    sentences = of_topic(storage_random.TOPIC, Run(run.header, records), described).sentences
    assert "With 4 in flight the disk reads 96,000 a second instead of 10,000" in sentences[1]


def test_a_queue_that_needs_the_deepest_that_was_tried_is_not_called_saturated(
    run: Run, described: Probes
) -> None:
    derived = run.select("storage.read.random", kind="derived")[0]
    found: Json = {"saturation": [{"block_bytes": 4096, "depth": 64, "rate_per_s": 9e4, "reached": False}]}
    records = [*run["storage.read.random"][:3], msgspec.structs.replace(derived, findings=found)]
    listing, *_ = of_topic(storage_random.TOPIC, Run(run.header, records), described).listings
    assert listing.table.rows == (("read", 4096.0, 64.0, 9e4, "no: more depth may give more"),)


@pytest.mark.parametrize(("low", "sleeps"), [(1.0, False), (1.2, True)])
def test_a_disk_sleeps_only_where_intervals_say_so(
    run: Run, described: Probes, low: float, *, sleeps: bool
) -> None:
    def of(rate: int, times: float) -> Record:
        record = run.select("storage.rate", rate_per_s=rate)[0]
        assert record.summary is not None
        ends = (low * 1e5 if rate == 10 else 1e5, times * 1e5)
        summary = msgspec.structs.replace(record.summary, p50=times * 1e5, intervals={"p50": ends})
        return msgspec.structs.replace(record, summary=summary)

    records = [of(10, 1.3), of(100, 1.0)]
    sentences = of_topic(storage_rate.TOPIC, Run(run.header, records), described).sentences
    assert any("sleeps between" in text for text in sentences) is sleeps


def test_how_many_times_as_long_small_files_take_has_its_spread(run: Run, described: Probes) -> None:
    def with_repeats(record: Record) -> Record:
        if not isinstance(record.findings, dict) or not record.point.files:
            return record
        means = [1e5, 2e5] if record.point.files > 1 else [1e7, 2e7]
        return msgspec.structs.replace(record, findings={**record.findings, "block_means_ns": means})

    records = [with_repeats(record) for record in run["storage.files"]]
    first, *_ = of_topic(storage_files.TOPIC, Run(run.header, records), described).sentences
    assert re.search(r"takes [\d,.]+ times as long as one file \(5 to 20 between repeats\); most", first)


def test_what_was_disturbed_is_reported_below_the_ladder(run: Run, described: Probes) -> None:
    def noisy(record: Record) -> Record:
        own = record.probe == "kernel.syscall"
        return msgspec.structs.replace(record, flags=("disturbed", "few_blocks: 1 of 6")) if own else record

    lines = list(ladder.TOPIC.evidence_of(Run(run.header, list(map(noisy, run.records)))))
    called = "system call (getppid)"
    assert f"{called}: disturbed: something else used the caches or the CPU during the measurement." in lines
    assert f"{called}: few blocks: 1 of 6." in lines


def test_a_spread_over_sizes_is_not_called_an_interval(document: Document) -> None:
    levels, _ = section(document, "ladder").listings
    said = {str(row[0]).partition(",")[0]: str(row[2]) for row in levels.table.rows}
    assert said["L1 cache"].endswith(" ns over its sizes")
    assert said["RAM"].endswith(" ns")


def test_a_disks_section_says_what_was_proved_and_how_to_check_it(document: Document) -> None:
    text = " ".join(section(document, "storage_blocks").evidence)
    for words in (
        "Evicted 100.0 %",
        "Extents written:",
        "Engine: psync",
        "fio --name=latlab --filename=FILE",
    ):
        assert words in text


def test_the_flush_has_its_verdict_with_its_evidence(document: Document) -> None:
    (notice,) = section(document, "storage_sync").notices
    assert notice.title == "The flush: absorbed by a protected cache or the host"
    assert "adds 50 us" in notice.text


def test_pythons_own_share_of_a_file_is_named(document: Document) -> None:
    listing = section(document, "storage_files").listings[-1]
    assert listing.title == "Python's own share of a small file, a file each"
    assert all(row[3] == pytest.approx(row[2] - row[1]) for row in listing.table.rows)  # type: ignore[operator]


def test_figures_that_break_a_rule_are_no_headline(run: Run, described: Probes) -> None:
    broken = {"sanity": [{"rule": "first run like the second", "holds": False, "detail": "2 and 1 GB/s"}]}
    records = [
        msgspec.structs.replace(record, findings=broken)
        if record.kind == "derived" and record.probe == "storage.read.sequential"
        else record
        for record in run.records
    ]
    blocks = of_topic(storage_blocks.TOPIC, Run(run.header, records, run.footer), described)
    assert not blocks.sentences
    assert blocks.notices[0].severity == "warning"
    assert "first run like the second: 2 and 1 GB/s." in blocks.notices[0].text


@pytest.mark.parametrize(
    ("name", "probe", "point", "withheld", "kept"),
    [
        (
            "storage_files",
            "storage.files",
            {"files": 1000, "file_bytes": 10_000, "operation": "read-cold", "engine": "psync"},
            "Reading 10 MB from the disk",
            "Writing 10 MB",
        ),
        (
            "storage_files",
            "storage.files",
            {"files": 1, "file_bytes": 10_000_000, "operation": "write", "engine": "psync"},
            "Writing 10 MB",
            "Reading 10 MB from the disk",
        ),
        (
            "storage_reread",
            "storage.reread",
            {"file_bytes": 10_000_000, "operation": "kept"},
            "Scanning 10 MB",
            "Scanning 1 MB",
        ),
    ],
)
def test_a_rule_that_one_point_breaks_withholds_what_is_made_of_that_point_and_nothing_else(
    run: Run, described: Probes, name: str, probe: str, point: dict[str, Json], withheld: str, kept: str
) -> None:
    rule: Json = {"rule": "first run like the second", "holds": False, "detail": "2 and 1 s", "point": point}
    records = [
        msgspec.structs.replace(record, findings={**record.findings, "sanity": [rule]})
        if record.kind == "derived" and record.probe == probe and isinstance(record.findings, dict)
        else record
        for record in run.records
    ]
    topic = {"storage_files": storage_files.TOPIC, "storage_reread": storage_reread.TOPIC}[name]
    shown = of_topic(topic, Run(run.header, records, run.footer), described)
    text = " ".join(shown.sentences)
    assert withheld not in text
    assert kept in text
    assert [notice.title for notice in shown.notices] == ["One point cannot be the disk's alone"]
    assert shown.listings[0] == of_topic(topic, run, described).listings[0]


def test_the_device_has_its_part_of_a_mean_and_what_is_not_reported_says_why(document: Document) -> None:
    own = section(document, "storage_sync")
    rows = own.listings[-1].table.rows
    assert len(rows) == 4
    for _, mean, device, _, rest, requests in rows:
        assert float(device or 0) + float(rest or 0) == pytest.approx(mean)
        assert requests == pytest.approx(2.0)
    reported = "No device time for 4 points: others used the device: it moved 1.4 times the bytes."
    assert reported in own.evidence


def test_the_measured_disk_is_not_listed_as_unmeasured(document: Document) -> None:
    mounted = section(document, "unmeasured").listings[-1].table.rows
    assert [row[0] for row in mounted] == ["/data"]


def test_a_stream_is_called_sustained_only_where_it_is(document: Document) -> None:
    written, read = section(document, "storage_steady").sentences
    assert written.startswith(
        "Written: first 11.9 GB at 1.99 GB/s, then 516 MB/s; not proven sustained: the five parts"
    )
    assert "sustained for as long as was measured: the last 23 s" in read
    (step,) = section(document, "storage_steady").statements
    assert step.startswith("written: after 12.0 GB (6.0 s) from 2000 to 520 MB/s")


def test_what_a_first_reading_cannot_know_is_said(document: Document) -> None:
    own = section(document, "storage_first_touch")
    assert own.sentences[0].startswith(
        "Blocks of 4 KiB take 1.90 times (1.32 to 2.71) as long the first time"
    )
    assert (
        "whether something else has read these blocks since the machine was started is not known"
        in own.evidence[0]
    )
    assert "200 regions (3 GiB) are left" in own.evidence[1]


def test_points_that_one_record_stands_for_are_counted_among_what_was_not_measured(
    run: Run, described: Probes
) -> None:
    (missed,) = [r for r in run["memory.poke"] if r.error is not None][:1]
    together = msgspec.structs.replace(missed, findings={"points": [{}, {}, {}]})
    table = unmeasured.section(Run(run.header, [together]), described).listings[0].table
    assert table.rows[0][3] == 3


def test_a_caption_speaks_of_what_is_in_the_picture(run: Run, described: Probes) -> None:
    both = of_topic(network_throughput.TOPIC, run, described).figures[0].caption
    usual = Run(run.header, run.select("network.throughput", message_bytes=128 << 10))
    alone = of_topic(network_throughput.TOPIC, usual, described).figures[0].caption
    assert "Right: one connection." in both
    assert "Right" not in alone
    far, near = (
        of_topic(network_transfer.TOPIC, of, described).figures[0].caption
        for of in (run, without_models(run))
    )
    assert "The tick is the model" in far
    assert "tick" not in near


def without_models(run: Run) -> Run:
    """As where there was no path."""
    (concluded,) = [r for r in run["network.transfer"] if r.kind == "derived"]
    assert isinstance(concluded.findings, dict)
    singles = concluded.findings["singles"]
    assert isinstance(singles, list)
    rows = [{**row, "model": None} for row in singles if isinstance(row, dict)]
    record = msgspec.structs.replace(concluded, findings={**concluded.findings, "singles": rows})
    return Run(run.header, [record])


def test_of_all_gaps_together_nothing_is_usual(document: Document) -> None:
    (listing,) = section(document, "noise").listings
    everything = listing.table.rows[-1]
    assert everything[0] == "all gaps"
    assert everything[2] is None
