"""Round trips: one panel a transport, the placements as lines."""

from __future__ import annotations

import msgspec

from latlab.charts import network_roundtrip
from latlab.run.run import Run


def test_each_transport_shows_its_placements_in_one_order(run: Run) -> None:
    own = network_roundtrip.small(run)
    assert list(own) == ["tcp", "udp", "unix"]
    for records in own.values():
        places = [record.point.placement for record in records]
        assert places == ["across-blocking", "same-cpu", "across-polling"]
        assert {record.point.message_bytes for record in records} == {64}


def test_the_picture_in_words_names_every_line(run: Run) -> None:
    text = network_roundtrip.alt_text(run)
    assert "TCP, two CPUs, both sleep: median 70" in text
    assert "Unix socket, two CPUs, both poll: median 3.7" in text


def test_one_cpu_is_one_line(run: Run) -> None:
    alone = Run(run.header, run.select("network.roundtrip", placement="same-cpu"))
    assert network_roundtrip.chart(alone) is not None
    assert all(len(records) == 1 for records in network_roundtrip.small(alone).values())


def test_a_placement_that_nobody_knows_is_not_drawn(run: Run) -> None:
    strange = [
        msgspec.structs.replace(record, point=msgspec.structs.replace(record.point, placement="\x1b[2J"))
        for record in run["network.roundtrip"]
    ]
    assert network_roundtrip.chart(Run(run.header, strange)) is None


def test_a_failed_proof_leaves_its_reason_and_no_line(run: Run) -> None:
    failed = []
    for record in run["network.roundtrip"]:
        checks = [
            msgspec.structs.replace(check, ok=False, detail="3 of 4 answers") for check in record.checks
        ]
        if checks:
            failed.append(msgspec.structs.replace(record, checks=tuple(checks)))
    bad = Run(run.header, failed)
    assert network_roundtrip.chart(bad) is None
    assert "3 of 4 answers" in (network_roundtrip.absence(bad) or "")
