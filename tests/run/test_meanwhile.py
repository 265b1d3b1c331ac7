"""What else happened while a run lasted: by its windows, and by the system's counters before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from latlab.run import model
from latlab.run.meanwhile import Counters, Meanwhile, meanwhile

MACHINE = model.Machine({"dir": {"file_system": {"disk": "sdb"}}})


def line(kind: model.Kind, ms: float, **observed: int) -> model.Record:
    """A record of two blocks that lasted so long together."""
    blocks = tuple(
        model.BlockSummary(at_ns=0.0, duration_ns=ms * 5e5, samples=1, p50=1.0, core_ghz=ghz)
        for ghz in (3.0, 3.2)
    )
    return model.Record(
        probe="kernel.syscall",
        method=1,
        unit="ns",
        kind=kind,
        stopped_by="planned",
        blocks=blocks,
        observed=model.Observed(**observed),
    )


def counters(folder: Path, seconds: float, *, ticks: int, sectors: int, own_s: float) -> Counters:
    """As they are read from a /proc with these counts."""
    (folder / "stat").write_text(f"cpu  {ticks} {ticks} {ticks} 9 9 0 0 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    (folder / "diskstats").write_text(
        f"   8 0 sda 1 1 5 1 1 1 5 1 0 1 1\n   8 16 sdb 1 1 {sectors} 1 1 1 {sectors} 1 0 1 1\n"
    )
    own = Counters.now(folder)
    return Counters(seconds, own.busy_s, own_s, own.sectors, own_sectors=100 * int(seconds))


def test_shares_are_of_the_time_of_windows_and_the_rest_of_the_whole_run(tmp_path: Path) -> None:
    lines = [
        line("batch_mean", 600, throttled_ns=300_000_000, run_queue_delay_ns=100_000_000, steal_ns=0),
        line("batch_mean", 400, throttled_ns=300_000_000, run_queue_delay_ns=0, steal_ns=100_000_000),
        # Single operations, and a thread that waits for others: not of those that have to run all the time.
        line("per_op", 5000, throttled_ns=10**9, steal_ns=10**9),
        line("batch_mean", 5000, throttled_ns=10**9, steal_ns=10**9, voluntary_switches=2),
    ]
    before = counters(tmp_path, 10.0, ticks=1000, sectors=1000, own_s=1.0)
    after = counters(tmp_path, 14.0, ticks=1200, sectors=11_200, own_s=3.0)
    # In 4 s three kinds of 2 s each, of which 2 s its own.
    assert meanwhile(lines, MACHINE, before, after) == Meanwhile(
        delayed=0.1,
        throttled=0.6,
        stolen=0.1,
        core_ghz=3.1,
        other_cpus=1.0,
        other_disk_bytes_per_s=20_000 * 512 / 4,
    )


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    nothing = Counters.now(tmp_path / "nowhere")
    assert nothing.busy_s is None
    assert meanwhile([], model.Machine({}), nothing, nothing) is None
    found = meanwhile([line("batch_mean", 50, steal_ns=0)], MACHINE, nothing, nothing)
    assert found == Meanwhile(core_ghz=3.1), "50 ms say nothing of shares"


@pytest.mark.parametrize(
    ("delayed", "throttled", "stolen", "lost"),
    [
        (0.5, 0.5, None, 0.5),
        (0.25, 0.5, 0.25, 0.75),
        (None, None, 0.25, 0.25),
        (0.75, None, 0.75, 1.0),
        (None, None, None, None),
    ],
)
def test_time_that_two_counters_have_is_lost_once(
    delayed: float | None, throttled: float | None, stolen: float | None, lost: float | None
) -> None:
    assert Meanwhile(delayed=delayed, throttled=throttled, stolen=stolen).interrupted == lost
