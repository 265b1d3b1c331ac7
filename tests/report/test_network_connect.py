"""What the section about connections says of the interval where blocks have few connections each."""

from __future__ import annotations

import msgspec

from latlab.report.probes import Probes
from latlab.report.sections.network_connect import section
from latlab.run.run import Run


def test_blocks_of_a_few_connections_give_the_interval_of_their_medians(run: Run, described: Probes) -> None:
    (record,) = (
        r
        for r in run.records
        if (r.probe, r.point.path, r.point.operation) == ("network.connect", "emulated", "tcp")
    )
    assert record.summary is not None
    assert record.value is not None
    # Beside the figure by less than a step of its histogram.
    ends = [record.value * 1.001, record.value * 1.01]
    few = msgspec.structs.replace(
        record,
        summary=msgspec.structs.replace(record.summary, intervals={}),
        findings={**(record.findings or {}), "time_interval": ends},
    )
    (listing,) = section(Run(run.header, [few]), described).listings
    assert listing.table.rows[0][4:6] == (record.value, ends[1])
    without = msgspec.structs.replace(few, findings=record.findings)
    (listing,) = section(Run(run.header, [without]), described).listings
    assert listing.table.rows[0][4:6] == (None, None)
