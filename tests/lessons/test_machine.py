"""What a lesson says of its machine: the file system, the caches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from latlab.lessons.machine import cache_sizes, file_system


def test_a_file_system_is_asked_for_its_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    mount = f"22 1 {os.major(device)}:{os.minor(device)} / / rw - ext4 /dev/vdz rw"
    listed = {"mountinfo": mount}
    real = Path.read_text

    def read(path: Path, encoding: str | None = None, errors: str | None = None) -> str:
        return listed["mountinfo"] if path.name == "mountinfo" else real(path, encoding, errors)

    monkeypatch.setattr(Path, "read_text", read)
    assert file_system(tmp_path) == "ext4 without a journal"
    listed["mountinfo"] = mount.replace("ext4", "xfs")
    assert file_system(tmp_path) == "xfs"
    listed["mountinfo"] = "damaged"
    assert not file_system(tmp_path)


def test_a_journal_has_the_kernels_name_of_the_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = tmp_path.stat().st_dev
    mount = f"22 1 {os.major(device)}:{os.minor(device)} / / rw - ext4 /dev/mapper/vg-root rw"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mount)
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr(Path, "resolve", lambda _: Path("/sys/devices/virtual/block/dm-0"))
    monkeypatch.setattr(Path, "glob", lambda _, pattern: [Path("dm-0-8")] if pattern == "dm-0-*" else [])
    assert file_system(tmp_path) == "ext4"
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert file_system(tmp_path) == "ext4", "without sysfs nobody says"


def test_caches_are_read_with_their_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/sys/devices/system/cpu/cpu0/cache/index0": ("1", "Data", "32K"),
        "/sys/devices/system/cpu/cpu0/cache/index1": ("1", "Instruction", "64K"),
        "/sys/devices/system/cpu/cpu0/cache/index2": ("2", "Unified", "unknown"),
        "/sys/devices/system/cpu/cpu0/cache/index3": ("3", "Unified", "32768K"),
    }
    names = ("level", "type", "size")
    monkeypatch.setattr(Path, "glob", lambda *_: map(Path, files))
    monkeypatch.setattr(
        Path, "read_text", lambda path, **_: f"{files[str(path.parent)][names.index(path.name)]}\n"
    )
    assert cache_sizes() == {"L1d": 32 << 10, "L1i": 64 << 10, "L3": 32 << 20}
