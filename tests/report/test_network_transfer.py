"""What the section about transfers says of ten files: known, not known and why, and by whose program."""

from __future__ import annotations

import msgspec
import pytest

from latlab.report.document import Section
from latlab.report.probes import Probes
from latlab.report.sections import of_topic
from latlab.run.run import Run
from latlab.topics import network_transfer

ROW = {
    "path": "loopback",
    "file_bytes": 102_400,
    "connections": "new",
    "engine": "latlab",
    "workers": 6,
    "files": 10,
    "sequential_ns": {"value": 1.1e6, "low": 1.0e6, "high": 1.2e6},
    "pool_ns": {"value": 0.7e6, "low": 0.6e6, "high": 0.8e6},
    "speed_up": {"value": 1.6, "low": 1.5, "high": 1.7},
    "ceiling": 5.0,
}


def of(run: Run, described: Probes, *rows: dict[str, object], **findings: object) -> Section:
    """The section of a run with these sets of ten files."""
    records = [
        msgspec.structs.replace(record, findings={"ten_files": list(rows), **findings})
        for record in run.records
        if (record.probe, record.kind) == ("network.transfer", "derived")
    ]
    return of_topic(network_transfer.TOPIC, Run(run.header, records), described)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1.60 times as fast (95 % interval 1.50 to 1.70), where ten files allow 5."),
        (
            {"speed_up": {"value": 1.6, "low": 0.5, "high": 10.7}},
            "is unknown (95 % interval 0.5 to 11), because the sets differ too much from one another;",
        ),
        (
            {"speed_up": {"value": 7.1, "low": 6.6, "high": 7.4}},
            "is unknown (95 % interval 6.6 to 7.4), because 7.1 is more than ten files allow:",
        ),
        ({"speed_up": {"value": 1.6}}, "is unknown, because it was measured once; ten files allow 5."),
    ],
)
def test_a_speed_up_is_reported_or_why_it_is_not(
    run: Run, described: Probes, changes: dict[str, object], said: str
) -> None:
    found = of(run, described, {**ROW, **changes})
    assert said in found.sentences[0]
    (listing,) = found.listings
    assert (listing.table.rows[0][5] is None) == bool(changes)


def test_python_s_libraries_have_their_rows_and_one_that_is_missing_is_named(
    run: Run, described: Probes
) -> None:
    rows = [{**ROW, "engine": engine} for engine in ("latlab", "python-requests", "python-httpx")]
    found = of(run, described, *rows)
    (listing,) = found.listings
    assert [row[2] for row in listing.table.rows] == ["latlab", "Python, requests", "Python, httpx"]
    missing = [{"engine": "python-httpx", "not_measured": "httpx is not installed"}]
    found = of(run, described, ROW, python=missing)
    assert "Not measured by Python, httpx: httpx is not installed." in found.evidence


def test_a_knee_of_one_round_has_no_interval(run: Run, described: Probes) -> None:
    knee = {
        "path": "emulated",
        "file_bytes": 102_400,
        "connections": "new",
        "protocol": "http/1.1",
        "knee": {"value": 24.0},
        "below": 16,
        "plateau_bytes_per_s": 2e7,
        "foretold": 19.4,
    }
    sentence = of(run, described, knees=[knee]).sentences[0]
    assert "24 at once (measured once) reach 80 %" in sentence
