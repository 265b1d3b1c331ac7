"""A run made anonymous says nowhere whose it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from latlab.report.build import build
from latlab.report.html import render as as_html
from latlab.report.markdown import render as as_markdown
from latlab.run import model
from latlab.run.export import to_lines
from latlab.run.run import Run, load
from latlab.run.sharing import REMOVED, Sharing

#: No text that latlab writes holds these.
MARKS = ("hostmark", "usermark", "pathmark", "servermark", "volumemark", "filemark", "secretmark", "4711423")
HOME = "/home/usermark"
SENTENCES = (
    "degraded: /srv/pathmark/x is on hostmark.example.org",
    "cannot open '/mnt/pathmark with blanks/y': usermark may not",
    "filemark.bin: 4 KiB read; ~usermark/pathmark; HOSTMARK said no (/opt/pathmark)",
    "servermark:/export/pathmark, /dev/mapper/volumemark-root, /dev/disk/by-id/pathmark",
    "/sys/fs/cgroup/user.slice/user-4711423.slice/cpu.max is not there",
    r"C:\Users\usermark\pathmark, \\servermark\pathmark",
    "http://servermark.example.org:8080/pathmark?token=secretmark answered 404 from 203.0.113.7:8080",
    "answers of 52:54:00:4f:11:ab",
)


@pytest.fixture(scope="module")
def planted(root: Path) -> Run:
    """A run in which everything that a field or a sentence could give away is marked."""
    run = load(root / "tests/data/run-small.latlab.jsonl")
    plain = msgspec.to_builtins(run.header, enc_hook=model.from_machine)
    machine = plain["machine"]
    machine["os"]["host_name"] = "hostmark.example.org"
    machine["limits"]["uid"] = 4711423
    machine["disks"][0]["mapper_name"] = "volumemark-root"
    machine["dir"]["path"] = f"{HOME}/pathmark"
    machine["dir"]["file_system"] |= {"mount_point": HOME, "source": "servermark:/export/pathmark"}
    machine["file_systems"][0] |= {
        "mount_point": "/media/usermark/pathmark",
        "source": "/dev/mapper/volumemark",
    }
    machine["file_systems"].append(dict(machine["file_systems"][1], kind="tmpfs", source="tmpfs"))
    machine["unknown"].append({"what": "limits.cgroup", "why": SENTENCES[4]})
    plain["settings"] |= {
        "dir": f"{HOME}/pathmark",
        "file": f"{HOME}/pathmark/filemark.bin",
        "first_touch": "/srv/pathmark",
        "url": "http://servermark.example.org:8080/pathmark?token=secretmark",
        "secret_file": f"{HOME}/secretmark",
    }
    plain["doctor"] = [
        {"id": "clock-quantum", "severity": "note", "title": each, "effect": each, "remedy": each}
        for each in SENTENCES
    ]
    header = msgspec.convert(plain, model.Header, dec_hook=model.to_machine)
    records = [
        msgspec.structs.replace(
            record,
            flags=(*record.flags, *(f"degraded: {each}" for each in SENTENCES)),
            checks=(*record.checks, *(model.Check(name="read", ok=True, detail=each) for each in SENTENCES)),
            findings={**(record.findings or {}), "said": list(SENTENCES), "/srv/pathmark/z": {"at": HOME}},
            error=None if record.error is None else model.Absence(kind="failed", text=SENTENCES[1]),
        )
        for record in run.records
    ]
    assert run.footer is not None
    footer = msgspec.structs.replace(run.footer, stopped_by=f"failed: {SENTENCES[0]}")
    return Run(header, records, footer)


def said_in(text: str) -> list[str]:
    """The marks that a text holds."""
    return [mark for mark in (*MARKS, "203.0.113.7", "52:54:00") if mark in text.lower()]


def test_no_mark_is_in_an_anonymous_run_or_in_what_is_made_of_it(planted: Run, tmp_path: Path) -> None:
    assert len(said_in(to_lines(planted).decode())) == len(MARKS) + 2, "not everything was planted"
    shared = planted.anonymous()
    assert not said_in(to_lines(shared).decode())
    assert not said_in(shared.to_json())
    assert not said_in(shared.to_csv())
    assert not said_in(repr(shared))
    document = build(load(shared.save(tmp_path / "shared.latlab.jsonl")))
    assert not said_in(repr(document))
    assert not said_in(as_html(document))
    assert not said_in(as_markdown(document))


def test_an_anonymous_run_has_every_figure_and_says_what_was_measured_on(planted: Run) -> None:
    shared = planted.anonymous()
    assert [record.summary for record in shared.records] == [record.summary for record in planted.records]
    assert [record.point for record in shared.records] == [record.point for record in planted.records]
    assert [record.label for record in shared.records] == [record.label for record in planted.records]
    assert shared.levels == planted.levels
    assert [(rung.key, rung.latency_p50_ns, rung.interval) for rung in shared.ladder()] == [
        (rung.key, rung.latency_p50_ns, rung.interval) for rung in planted.ladder()
    ]
    for path in ("cpu", "caches", "memory", "boot", "virtualisation", "kernel"):
        assert shared.machine.at(path) == planted.machine.at(path)
    kinds = [system["kind"] for system in shared.machine.sections("file_systems")]
    assert kinds == ["ext4", "xfs", "tmpfs"]
    assert shared.header.tool == planted.header.tool


@pytest.mark.parametrize(
    "text",
    [
        "/proc/sys/vm/swappiness is not there, /sys/block/vda is",
        "read/write at 4 GB/s, 1/2 of it; 1 KiB/s",
        "see https://gist.github.com/jboner/2841832",
        "/.dockerenv is there, but no container engine mounted this root",
        "memory figures are not touched; data of /dev/vda",
    ],
)
def test_what_names_nobody_stays(text: str, planted: Run) -> None:
    record = msgspec.structs.replace(planted.records[0], flags=(text,), findings=None, checks=())
    assert Sharing(planted.header).record(record).flags == (text,)


def test_a_host_that_is_called_as_half_of_the_world_does_not_black_out_the_text(planted: Run) -> None:
    plain = msgspec.to_builtins(planted.header, enc_hook=model.from_machine)
    plain["machine"]["os"]["host_name"] = "memory"
    header = msgspec.convert(plain, model.Header, dec_hook=model.to_machine)
    sharing = Sharing(header)
    assert sharing.header.machine.text("os.host_name") == REMOVED
    assert sharing.header.machine.at("memory.total_bytes") == planted.machine.at("memory.total_bytes")


@pytest.mark.parametrize("at", ["[2001:db8::17]", "[2001:db8::17]:8443", "user:secret@[2001:db8::17]"])
def test_an_address_of_version_6_is_left_out_with_and_without_a_port(at: str, planted: Run) -> None:
    settings = msgspec.structs.replace(planted.header.settings, url=f"https://{at}/x")
    sharing = Sharing(msgspec.structs.replace(planted.header, settings=settings))
    record = msgspec.structs.replace(
        planted.records[0], flags=("2001:db8::17 did not answer",), findings=None, checks=()
    )
    assert sharing.record(record).flags == (f"{REMOVED} did not answer",)


def test_what_is_no_address_is_left_out_as_it_stands(planted: Run) -> None:
    settings = msgspec.structs.replace(planted.header.settings, url="https://[2001:db8::17/x")
    assert "2001" not in repr(Sharing(msgspec.structs.replace(planted.header, settings=settings)).header)
