"""The frozen runs, as files: two real ones, one with figures of every probe, and that one with parts missing.

`standard.json.zst` holds the figures of a run of a virtual machine, so that nothing depends on how lines are
folded; `quick.latlab.jsonl.zst` is another as it was written, which is folded when it is read. The others are
made of `tests/data/run-small.latlab.jsonl` by changing its JSON: nothing here knows how a run is shown. Both
real ones are of `latlab measure --anonymous --seed 42` (`--profile quick`; `--first-touch DIR`, `export`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
Change = Callable[["Json"], None]

HERE: Final = Path(__file__).resolve().parent
INPUTS: Final = HERE / "inputs"
DATA: Final = HERE.parent / "data"

#: What a person might send: shown in every form.
FILES: Final = {
    "synthetic": DATA / "run-small.latlab.jsonl",
    "rounds": DATA / "run-rounds.latlab.jsonl",
    "standard": INPUTS / "standard.json.zst",
    "quick": INPUTS / "quick.latlab.jsonl.zst",
}


def synthetic() -> str:
    """The made-up run as the one object that `measure --json` prints."""
    header, footer = map(json.loads, FILES["synthetic"].read_text(encoding="utf-8").splitlines())
    figures, _, _, _ = footer.pop("figures"), footer.pop("fold"), header.pop("line"), footer.pop("line")
    return json.dumps({**header, "records": figures, "lines": [], "footer": footer})


# ------------------------------------------------------------------------------------------ what is missing


def nothing(run: Json) -> None:
    """Stopped before the first record."""
    run |= {"records": [], "footer": None}


def unplanned(run: Json) -> None:
    """Nothing was asked for."""
    run |= {"records": [], "plan": []}


def failed(run: Json) -> None:
    """Each point says why there is nothing."""
    for record in run["records"]:
        error = {"kind": "io", "text": f"{record['probe']} found no place to work in"}
        for field in (
            "summary",
            "values",
            "histogram",
            "tail",
            "tail_causes",
            "blocks",
            "channels",
            "findings",
        ):
            record.pop(field, None)
        record |= {"kind": "absent", "samples": 0, "error": error, "stopped_by": "failed", "checks": []}


def unproved(run: Json) -> None:
    """No proof of work held."""
    for record in run["records"]:
        wrong = [
            check | {"ok": False, "detail": "the sum is wrong by 1"} for check in record.get("checks", [])
        ]
        record["checks"] = wrong or [{"name": "checksum", "ok": False, "detail": "there is no sum"}]


def disturbed(run: Json) -> None:
    """Something else ran all the time."""
    for record in run["records"]:
        record["flags"] = [*record.get("flags", []), "disturbed"]


def once(run: Json) -> None:
    """No figure has a range."""
    for record in run["records"]:
        record.get("summary", {}).pop("intervals", None)


def without_findings(run: Json) -> None:
    """Nothing followed from the points."""
    run["records"] = [record for record in run["records"] if record["kind"] != "derived"]
    for record in run["records"]:
        record.pop("findings", None)


def findings_alone(run: Json) -> None:
    """The points were lost, what followed from them was kept."""
    run["records"] = [record for record in run["records"] if record["kind"] == "derived"]


def cut_short(run: Json) -> None:
    """Every second point, of a run without an end."""
    run |= {"records": run["records"][::2], "footer": None}


def interrupted(run: Json) -> None:
    """The other points, of a run that was ended by its user."""
    run["records"] = run["records"][1::2]
    run["footer"]["stopped_by"] = "interrupted"


def bare_machine(run: Json) -> None:
    """Nothing is known of the machine."""
    run |= {"machine": {}, "doctor": []}


def small_machine(run: Json) -> None:
    """No L3, one CPU of two, on a disk in memory; nothing stands between it and its user."""
    machine = run["machine"]
    machine["caches"] = [cache for cache in machine["caches"] if cache["level"] < 3]
    machine["virtualisation"] = {"guest": False, "hypervisor": None, "container": None, "wsl": None}
    machine["cpu"] |= {"vendor": "ARM", "model_name": None, "microarchitecture": None, "logical_cpus": 2}
    machine["limits"] |= {"allowed_cpus": [1], "root": True}
    in_memory = {"mount_point": "/tmp", "kind": "tmpfs", "disk": None, "in_memory": True}
    machine |= {"disks": [], "numa": [], "file_systems": [in_memory], "dir": {"file_system": in_memory}}


def large_machine(run: Json) -> None:
    """Two nodes, eight L3, a fast disk, and limits of a container; without host and path, as shared."""
    machine = run["machine"]
    cpus = list(range(64))
    machine["cpu"] |= {"logical_cpus": 64, "online": cpus, "cores": 32, "sockets": 2, "threads_per_core": 2}
    machine["caches"][-1] |= {"size_bytes": 100663296, "instances": 8, "cpus": cpus, "shared_cpus": cpus[:8]}
    machine["numa"] = [
        {"id": node, "cpus": cpus[32 * node :][:32], "memory_bytes": 1 << 38, "distances": far}
        for node, far in enumerate(([10, 21], [21, 10]))
    ]
    machine["memory"] |= {"total_bytes": 1 << 39, "swap_total_bytes": 1 << 33, "swap_used_bytes": 1 << 30}
    machine["limits"]["cgroup"] |= {"cpu_quota": 2.5, "memory_limit_bytes": 1 << 33}
    machine["virtualisation"] |= {"guest": False, "container": {"kind": "docker"}}
    machine["disks"][0] |= {"name": "nvme0n1", "model": "a fast disk", "rotational_flag": False}
    machine["dir"] = {"file_system": machine["file_systems"][0] | {"disk": "nvme0n1", "kind": "xfs"}}
    del machine["os"]["host_name"]


#: Of the made-up run, each shown as a table and as a report.
CHANGES: Final[tuple[Change, ...]] = (
    nothing,
    unplanned,
    failed,
    unproved,
    disturbed,
    once,
    without_findings,
    findings_alone,
    cut_short,
    interrupted,
    bare_machine,
    small_machine,
    large_machine,
)


def changed(change: Change, run: str) -> bytes:
    """The made-up run after a change, as a file's content."""
    own = json.loads(run)
    change(own)
    return json.dumps(own, ensure_ascii=False).encode()
