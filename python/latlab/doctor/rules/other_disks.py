"""Mounted disks that are not measured."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding

#: As many as fit a line.
SHOWN = 3
#: Where boot files live: nobody's data.
SYSTEM_PLACES = ("/boot", "/efi", "/snap/", "/var/lib/docker/", "/System/")


def finding(host: Host) -> Finding | None:
    """Finding, or None when the directory's disk is the only one that is mounted."""
    here = host.machine.section("dir.file_system")
    own = (here.text("mount_point"), here.text("disk"))
    others: dict[str, str] = {}
    for system in host.machine.sections("file_systems"):
        place, disk = system.text("mount_point"), system.text("disk")
        if (
            place is None
            or system.flag("in_memory")
            or system.flag("overlay")
            or place.startswith(SYSTEM_PLACES)
        ):
            continue
        if (
            place == own[0]
            or (disk is not None and disk == own[1])
            or (disk is None and not system.flag("network"))
        ):
            continue
        others.setdefault(disk or f"{system.text('kind')} over a network", place)
    if not others:
        return None
    named = ", ".join(f"{place} ({disk})" for disk, place in list(others.items())[:SHOWN])
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return Finding(
        id="other-disks",
        severity="note",
        title=f"not measured: {named}{more}",
        effect="the default directory is rarely where your data is: another disk can be ten times "
        "faster or slower",
        remedy=f"latlab measure --dir {next(iter(others.values()))}",
    )
