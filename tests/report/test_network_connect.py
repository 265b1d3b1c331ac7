"""What the section about connections says of the interval where blocks have few connections each."""

from __future__ import annotations

import msgspec

from latlab.report.probes import Probes
from latlab.report.sections import of_topic
from latlab.run.run import Run
from latlab.topics import network_connect


def test_a_step_that_one_round_measured_is_said_to_be_measured_once(run: Run, described: Probes) -> None:
    (record,) = (
        r
        for r in run.records
        if (r.probe, r.point.path, r.point.operation) == ("network.connect", "emulated", "tcp")
    )
    assert record.summary is not None
    few = msgspec.structs.replace(
        record, summary=msgspec.structs.replace(record.summary, intervals={}), rounds=record.rounds[:1]
    )
    (listing,) = of_topic(network_connect.TOPIC, Run(run.header, [few]), described).listings
    assert listing.table.rows[0][4:6] == ("measured once", None)
