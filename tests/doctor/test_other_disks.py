"""Mounted disks that are not measured."""

from __future__ import annotations

from collections.abc import Callable

from latlab.doctor import Host
from latlab.doctor.rules.other_disks import finding

Maker = Callable[..., Host]


def test_a_second_disk_is_named_with_the_command_that_measures_it(host: Maker) -> None:
    machine = {
        "dir": {"file_system": {"kind": "ext4", "mount_point": "/", "disk": "vda"}},
        "file_systems": [
            {"kind": "ext4", "mount_point": "/", "disk": "vda"},
            {"kind": "xfs", "mount_point": "/data", "disk": "nvme0n1"},
            {"kind": "tmpfs", "mount_point": "/tmp", "in_memory": True},
            {"kind": "vfat", "mount_point": "/boot/efi", "disk": "sda"},
        ],
    }
    found = finding(host(machine))
    assert found is not None
    assert found.title == "not measured: /data (nvme0n1)"
    assert found.remedy == "latlab measure --dir /data"


def test_the_same_disk_mounted_twice_is_no_other_disk(host: Maker) -> None:
    machine = {
        "dir": {"file_system": {"mount_point": "/", "disk": "vda"}},
        "file_systems": [{"mount_point": "/", "disk": "vda"}, {"mount_point": "/home", "disk": "vda"}],
    }
    assert finding(host(machine)) is None


def test_many_disks_are_counted_not_listed(host: Maker) -> None:
    systems = [{"kind": "ext4", "mount_point": f"/disk{n}", "disk": f"sd{n}"} for n in range(6)]
    found = finding(host({"dir": {"file_system": systems[0]}, "file_systems": systems}))
    assert found is not None
    assert "and 2 more" in found.title


def test_nothing_is_said_when_it_is_unknown(host: Maker) -> None:
    assert finding(host({})) is None
