"""What a merge keeps of each run file."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

from tests.fleet.files import run_of

from latlab.fleet.host import hosts

#: Most bytes that a run file may add: those of 10,000 are 20 MB then.
MOST = 2048


def written(folder: Path, first: int, last: int) -> list[Path]:
    """Run files of hosts whose descriptions differ in what differs between like hosts."""
    files = []
    for number in range(first, last):
        header, footer = run_of(f"node{number}", number, short=True).splitlines()
        described = json.loads(header)
        described["machine"]["memory"]["available_bytes"] -= 4096 * number
        described["machine"]["file_systems"][0]["available_bytes"] -= 4096 * number
        described["machine"]["dir"]["file_system"]["available_bytes"] -= 4096 * number
        described["machine"]["limits"]["usable_memory_bytes"] -= 4096 * number
        file = folder / f"{number}.latlab.jsonl"
        file.write_text(f"{json.dumps(described)}\n{footer}\n")
        files.append(file)
    return files


def test_each_run_file_adds_little_memory_and_hosts_share_what_is_equal(tmp_path: Path) -> None:
    few, many = written(tmp_path, 0, 50), written(tmp_path, 50, 250)
    hosts(few)
    used = []
    for files in (few, few + many):
        gc.collect()
        tracemalloc.start()
        found, _ = hosts(files)
        used.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert len(found) == 250
    assert (used[1] - used[0]) / len(many) < MOST
    assert found[0].machine["memory"] is found[-1].machine["memory"]
    assert found[0].figures.keys() == found[-1].figures.keys()


def test_a_description_without_what_passes_is_still_a_description(tmp_path: Path) -> None:
    ((own,), _) = hosts(written(tmp_path, 0, 1))
    assert own.machine.text("cpu.model_name") == "AMD EPYC"
    assert own.machine.text("memory.thp.enabled") == "madvise"
    assert own.machine.integer("memory.available_bytes") is None
    assert own.machine.at("file_systems") is None
    assert own.machine.text("dir.file_system.kind") == "ext4"
