"""Round trips: one panel a transport, the placements as lines."""

from __future__ import annotations

import msgspec

from latlab.charts import named
from latlab.run.run import Run
from latlab.topics import network_http, network_roundtrip


def test_each_transport_shows_its_placements_in_one_order(run: Run) -> None:
    own = network_roundtrip.small(run)
    assert list(own) == ["tcp", "udp", "unix"]
    for records in own.values():
        places = [record.point.placement for record in records]
        assert places == ["across-blocking", "same-cpu", "across-polling"]
        assert {record.point.message_bytes for record in records} == {64}


def test_the_picture_in_words_names_every_line(run: Run) -> None:
    text = named("network_roundtrip").alt_text(run)
    assert "TCP, two CPUs, both sleep: median 70" in text
    assert "Unix socket, two CPUs, both poll: median 3.7" in text


def test_one_cpu_is_one_line(run: Run) -> None:
    alone = Run(run.header, run.select("network.roundtrip", placement="same-cpu"))
    assert named("network_roundtrip").chart(alone) is not None
    assert all(len(records) == 1 for records in network_roundtrip.small(alone).values())


def test_a_placement_that_nobody_knows_is_not_drawn(run: Run) -> None:
    strange = [
        msgspec.structs.replace(record, point=msgspec.structs.replace(record.point, placement="\x1b[2J"))
        for record in run["network.roundtrip"]
    ]
    assert named("network_roundtrip").chart(Run(run.header, strange)) is None


def test_a_failed_proof_leaves_its_reason_and_no_line(run: Run) -> None:
    failed = []
    for record in run["network.roundtrip"]:
        checks = [
            msgspec.structs.replace(check, ok=False, detail="3 of 4 answers") for check in record.checks
        ]
        if checks:
            failed.append(msgspec.structs.replace(record, checks=tuple(checks)))
    bad = Run(run.header, failed)
    assert named("network_roundtrip").chart(bad) is None
    assert "3 of 4 answers" in (named("network_roundtrip").absence(bad) or "")


def test_the_open_view_holds_the_stall_and_the_closed_view_hides_it(run: Run) -> None:
    slow, fast = network_http.records(run)
    assert [record.point.rate_per_s for record in (slow, fast)] == [100, 1000]
    views = network_http.views(fast)
    opened, closed = views[network_http.OPEN].summary, views[network_http.CLOSED].summary
    assert opened is not None
    assert closed is not None
    assert opened.p99 is not None
    assert closed.p99 is not None
    # 500 of 10,000 were due in half a second of stall; 32 of them were under way.
    assert 0.38e9 < opened.p99 < 0.42e9
    assert closed.p99 < 1e6
    assert named("network_http").chart(run) is not None
    assert "1,000 a second, closed loop" in named("network_http").alt_text(run)


def test_more_rates_than_panels_are_the_ends_and_the_middle(run: Run) -> None:
    (one, _) = network_http.records(run)
    many = [
        msgspec.structs.replace(one, point=msgspec.structs.replace(one.point, rate_per_s=rate))
        for rate in (1, 10, 100, 1000, 10_000)
    ]
    assert [r.point.rate_per_s for r in network_http.drawn(Run(run.header, many))] == [1, 100, 10_000]


def test_without_a_service_view_the_open_one_stands_alone(run: Run) -> None:
    alone = [msgspec.structs.replace(record, channels=()) for record in run["network.http"]]
    assert named("network_http").chart(Run(run.header, alone)) is not None
    assert "closed loop" not in named("network_http").alt_text(Run(run.header, alone))
