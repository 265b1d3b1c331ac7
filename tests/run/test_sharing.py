"""A run made anonymous says nowhere whose it is."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Set
from ipaddress import IPv6Address
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.fuzzing import inputs
from tests.poisoned import READ, SHOWN, as_text, few, poisoned

from latlab.cli.terminal.ending import ending_lines
from latlab.cli.terminal.run_view import run_lines
from latlab.cli.terminal.screen import Screen
from latlab.report.build import build
from latlab.report.html import render as as_html
from latlab.report.markdown import render as as_markdown
from latlab.run import model
from latlab.run.export import anonymous, to_lines
from latlab.run.fold import keeping
from latlab.run.run import Run, load
from latlab.run.sharing import Anonymous, Sharing

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
    of_each_kind = {(record.probe, record.kind, record.findings is None): record for record in run.records}
    records = [
        msgspec.structs.replace(
            record,
            flags=(*record.flags, *(f"degraded: {each}" for each in SENTENCES)),
            checks=(*record.checks, *(model.Check(name="read", ok=True, detail=each) for each in SENTENCES)),
            findings={**(record.findings or {}), "said": list(SENTENCES), "/srv/pathmark/z": {"at": HOME}},
            error=None if record.error is None else model.Absence(kind="failed", text=SENTENCES[1]),
        )
        for record in of_each_kind.values()
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
    assert sharing.header.machine.text("os.host_name") == "host-1"
    assert sharing.header.machine.at("memory.total_bytes") == planted.machine.at("memory.total_bytes")


@pytest.mark.parametrize("at", ["[2001:db8::17]", "[2001:db8::17]:8443", "user:secret@[2001:db8::17]"])
def test_an_address_of_version_6_is_left_out_with_and_without_a_port(at: str, planted: Run) -> None:
    asked = msgspec.structs.replace(planted.header.settings, url=f"https://{at}/x")
    sharing = Sharing(msgspec.structs.replace(planted.header, settings=asked))
    record = msgspec.structs.replace(
        planted.records[0], flags=("2001:db8::17 did not answer",), findings=None, checks=()
    )
    assert re.fullmatch(r"address-\d+ did not answer", sharing.record(record).flags[0])


def test_what_is_no_address_is_left_out_as_it_stands(planted: Run) -> None:
    asked = msgspec.structs.replace(planted.header.settings, url="https://[2001:db8::17/x")
    assert "2001" not in repr(Sharing(msgspec.structs.replace(planted.header, settings=asked)).header)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("fe80::1%eth0, 2001:db8::17: no answer", "address-1, address-2: no answer"),
        ("[2001:db8::17]:8443, addr:2001:DB8:0::17", "[address-1]:8443, addr:address-1"),
        ("::ffff:203.0.113.7/96", "address-1/96"),
        ("203.0.113.7:80, 203.0.113.7 and 203.0.113.70.", "address-1:80, address-1 and address-2."),
        ("52:54:00:4F:11:ab is 52-54-00-4f-11-AB", "address-1 is address-1"),
        ("ib 00:11:22:33:44:55:66:77", "ib address-1"),
        ("ata-Samsung_SSD_860_S3Z1NB0K123456A-part1", "ata-Samsung_SSD_860_serial-1-part1"),
        ("nvme-KINGSTON_50026B7685E4D3A1_1; 50026B7685E4D3A1", "nvme-KINGSTON_serial-1_1; serial-1"),
        ("wwn-0x5000c500a1b2c3d4, 0x5000c500a1b2c3d4", "serial-1, serial-2"),
        ("eui.0025385b71b0cf21 or naa.5000c500a1b2c3d4", "serial-1 or serial-2"),
        ("serial number: S123X9; serial S123X9", "serial number: serial-1; serial serial-1"),
        ("550e8400-e29b-41d4-a716-446655440000", "serial-1"),
        ("c0ffee00c0ffee00c0ffee00c0ffee01", "serial-1"),
        ("jane@mail.example.com wrote; jane is away", "user-1@host-1 wrote; user-1 is away"),
        ("/home/anna/a.py of anna, ~bert/x of bert", "path-1 of user-1, path-2 of user-2"),
        ("/usr/home/carl/x of carl", "path-1 of user-1"),
        ("ip-10-0-3-4.ec2.internal, build.prod.corp", "host-1, host-2"),
        ("https://api.prod.corp/x?key=1 on api.prod.corp", "url-1 on host-1"),
        ("filer:/export/x is on filer", "path-1 is on host-1"),
    ],
)
def test_what_identifies_becomes_a_word_that_is_the_same_for_the_same(text: str, shared: str) -> None:
    assert Anonymous().text(text) == shared


@pytest.mark.parametrize(
    "text",
    [
        "12:34:56, 12:34:56.789, 2026-11-21T00:30:12.418+00:00",
        "kernel 5.15.167.4-microsoft, firmware 1.2.3.4, v1.2.3.4, Version: 10.1.2.3",
        "Chrome/120.0.6099.109, 6.18.44, 1.2.3.4.5, 300.1.2.3",
        "127.0.0.1 and ::1 are everybody's",
        "std::vector<a::b>, dead::beef, ns::a1::b2, x[::2]",
        "x86_64-unknown-linux-gnu, 0123456789abcdef0123456789abcdef01234567",
        "1.5e308 of 1234567890123456 bytes, 0x7ffd1234abcd, PCI 0000:00:1f.2, disk 254:0",
        "memcpy@GLIBC_2.14, malloc@plt, libc.so.6, threading.local, java.net",
        "usb-storage, virtio-blk, serial 128k reads, serial 4096, nvme-cli",
        "host-1 of user-2 in path-3",
    ],
)
def test_versions_times_figures_and_names_of_code_stay(text: str) -> None:
    assert Anonymous().text(text) == text


def test_a_field_for_versions_holds_versions_and_one_for_serial_numbers_those() -> None:
    given = {
        "kernel_release": "5.15.167.4",
        "firmware_version": "10.0.0.1",
        "serial": "plain",
        "note": "plain it is",
    }
    assert Anonymous().value(given) == {**given, "serial": "serial-1", "note": "serial-1 it is"}


def test_the_names_of_this_machine_and_of_its_user_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "hostmark.lan")
    monkeypatch.setattr("getpass.getuser", lambda: "usermark")
    monkeypatch.setenv("HOME", "/places/of/usermark")
    names = Anonymous()
    names.know_this_machine()
    assert names.text("vg_hostmark-root: /places/of/usermark/x, USERMARK") == "vg_host-1-root: path-2, user-1"


def test_neither_lines_nor_the_figures_kept_beside_them_have_a_mark(planted: Run, tmp_path: Path) -> None:
    lines = [msgspec.structs.replace(record, round=0, cpu=0) for record in planted.records]
    assert planted.footer is not None
    figures = Run.of_lines(planted.header, lines).records
    run = Run.of_lines(planted.header, lines, keeping(planted.footer, figures))
    assert run.footer is not None
    assert len(run.footer.figures) == len(run.records)
    shared = run.anonymous()
    assert not said_in(to_lines(shared).decode())
    assert not said_in(shared.to_json())
    assert load(shared.save(tmp_path / "shared.latlab.jsonl")).records == shared.records


def test_runs_that_are_shared_together_have_the_same_word_for_the_same_name(planted: Run) -> None:
    asked = msgspec.structs.replace(planted.settings, url="http://other.example.org/")
    other = Run(msgspec.structs.replace(planted.header, settings=asked), planted.records[:1], planted.footer)
    few_records = Run(planted.header, planted.records[:1], planted.footer)
    one, same, third = anonymous(few_records, few_records, other)
    assert one.settings.url == same.settings.url
    assert one.settings.url != third.settings.url, "they were measured over other paths"
    assert one.machine.text("os.host_name") == third.machine.text("os.host_name") == "host-1"


def test_a_text_longer_than_any_is_left_out_whole() -> None:
    assert Anonymous().text("_" * 100_000) == "_" * 100_000
    assert Anonymous().text("x" * 100_001) == "(left out)"


def test_what_is_shared_again_stays_as_it_is(planted: Run) -> None:
    shared = planted.anonymous()
    assert to_lines(shared.anonymous()) == to_lines(shared)


# -----------------------------------------------------------------------------------------------------------
# every string and every key poisoned

_HEX = st.sampled_from("0123456789abcdef")
_TAIL = st.text(st.sampled_from("bcdfgjkqvxz"), min_size=6, max_size=9)


def _hex(size: int) -> st.SearchStrategy[str]:
    """With letters and digits: a figure has none, or only those."""
    return st.text(_HEX, min_size=size - 4, max_size=size - 4).map(lambda text: f"4{text}c1e")


def _names_a_machine(address: IPv6Address) -> bool:
    return len(str(address).replace(":", "")) > 4 and any(letter.isdigit() for letter in str(address))


_IP6 = st.integers(1, 2**128 - 1).map(IPv6Address).filter(_names_a_machine)
_IP4 = st.ip_addresses(v=4, network="128.0.0.0/2").map(str)
#: What is written, and what of it must not be found.
SECRETS = st.one_of(
    _IP6.map(lambda address: (str(address), str(address))),
    _IP6.map(lambda address: (address.exploded, address.exploded)),
    _IP6.map(lambda address: (f"[{address}]:8443", str(address))),
    _IP6.map(lambda address: (f"{address}%eth0", str(address))),
    _IP4.map(lambda address: (f"::ffff:{address}", address)),
    _IP4.map(lambda address: (address, address)),
    _IP4.map(lambda address: (f"{address}:443", address)),
    st.lists(st.text(_HEX, min_size=2, max_size=2), min_size=6, max_size=6).map(
        lambda of: (":".join(of),) * 2
    ),
    st.lists(st.text(_HEX, min_size=2, max_size=2), min_size=8, max_size=8).map(
        lambda of: (":".join(of),) * 2
    ),
    st.uuids().map(lambda of: (str(of),) * 2),
    _hex(32).map(lambda of: (of, of)),
    _hex(16).map(lambda of: (f"eui.{of}", of)),
    _hex(15).map(lambda of: (f"wwn-0x5{of}", of)),
    _hex(15).map(lambda of: (f"0x5{of}", of)),
    _TAIL.map(lambda of: (f"ata-Model_500GB_{of.upper()}77", of)),
    _TAIL.map(lambda of: (f"/dev/disk/by-id/nvme-Model_{of.upper()}77_1", of)),
    _TAIL.map(lambda of: (f"serial number {of.upper()}77", of)),
    _TAIL.map(lambda of: (f"/srv/{of}/x", of)),
    _TAIL.map(lambda of: (f"./{of}/x", of)),
    _TAIL.map(lambda of: (f"C:\\Users\\{of}\\x", of)),
    _TAIL.map(lambda of: (f"/home/{of}/x", of)),
    _TAIL.map(lambda of: (f"{of}@mail.example.com", of)),
    _TAIL.map(lambda of: (f"{of}.prod.example.org", of)),
    _TAIL.map(lambda of: (f"https://{of}.example.org:8080/x?y=1", of)),
    _TAIL.map(lambda of: (f"{of}:/export/x", of)),
    st.sampled_from(["qhostq", "qhostq.qdomq.example", "QHOSTQ", "vg_qhostq-root", "quserq", "qserverq"]).map(
        lambda name: (name, name.lower())
    ),
)
SENTENCES_AROUND = (
    *("{}", "degraded: {} did not answer", "({})", "'{}' is not there", '"{}"', "{}: none", "was={}, 4 KiB"),
    *("at {} 12:34:56", "{}.", "<{}>", "{};{}"),
)


def poisoned_run(most: int, secrets: list[str], seed: int, keep: Set[str]) -> Run:
    dice = random.Random(seed)

    def texts() -> Iterator[str]:
        while True:
            each = [dice.choice(secrets), dice.choice(secrets)]
            said = dice.choice(SENTENCES_AROUND).format(*each)
            # Four numbers that are all of a field for versions are one.
            yield said if re.search(r"[^\d.]", said) else f"see {said}"

    header, *records, footer = (poisoned(line, texts(), keep) for line in few(most))
    header["machine"]["os"]["host_name"] = "qhostq.qdomq.example"
    header["settings"] |= {"dir": "/home/quserq/x", "url": "http://qserverq.qnetq.example/y"}
    whole = model.WHOLE.decode(as_text([header, *records, footer]))
    read = msgspec.convert(header, model.Header, dec_hook=model.to_machine)
    return Run(read, whole.records, whole.footer)


def found_in(text: str, needles: Iterable[str]) -> list[str]:
    low = text.lower()
    return [needle for needle in needles if needle in low]


POISON = st.lists(SECRETS, min_size=6, max_size=14)


@settings(max_examples=inputs(200, 0.01), deadline=None)
@given(SECRETS, st.sampled_from(SENTENCES_AROUND))
def test_fuzz_leaves_nothing_that_identifies_in_a_sentence(secret: tuple[str, str], around: str) -> None:
    names = Anonymous()
    names.know("host", "qhostq.qdomq.example", own=True)
    names.know("path", "/home/quserq/x", own=True)
    names.know("url", "http://qserverq.qnetq.example/y", own=True)
    said, needle = secret
    assert needle.lower() in around.format(said, said).lower()
    assert needle.lower() not in names.text(around.format(said, said)).lower()


@settings(max_examples=inputs(5, 0.001), deadline=None, phases=(Phase.generate,))
@given(POISON, st.integers(0, 2**32))
def test_fuzz_leaves_nothing_that_identifies_in_any_string_or_key(
    tmp_path_factory: pytest.TempPathFactory, secrets: list[tuple[str, str]], seed: int
) -> None:
    run = poisoned_run(12, [said for said, _ in secrets], seed, READ)
    needles = {needle.lower() for _, needle in secrets} | {"qhostq", "qdomq", "quserq", "qserverq", "qnetq"}
    assert found_in(to_lines(run).decode(), needles), "nothing was planted"
    shared = run.anonymous()
    assert found_in(to_lines(shared).decode(), needles) == []
    assert found_in(shared.to_json(), needles) == []
    assert found_in(shared.to_csv(), needles) == []
    packed = tmp_path_factory.mktemp("packed") / "run.npz"
    shared.to_npz(packed)
    assert found_in(repr(np.load(packed)["index"].tolist()), needles) == []
    assert [record.summary and record.summary.p50 for record in shared] == [
        record.summary and record.summary.p50 for record in run
    ]


@settings(
    max_examples=inputs(1, 0.0001),
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(POISON, st.integers(0, 2**32))
def test_fuzz_leaves_nothing_that_identifies_in_a_rendering(
    secrets: list[tuple[str, str]], seed: int
) -> None:
    shared = poisoned_run(1000, [said for said, _ in secrets], seed, SHOWN).anonymous()
    needles = {needle.lower() for _, needle in secrets} | {"qhostq", "qdomq", "quserq", "qserverq", "qnetq"}
    document = build(shared)
    assert found_in(as_html(document), needles) == []
    assert found_in(as_markdown(document), needles) == []
    lines = [*run_lines(shared, Screen(), verbose=True), *ending_lines(shared, None, Screen())]
    assert len(lines) > 10
    assert found_in("\n".join(line.text for line in lines), needles) == []
    assert found_in(repr(shared.rows()), needles) == []
