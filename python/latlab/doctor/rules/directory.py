"""The directory that is asked about is not on a disk of its own."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when it is on a disk's file system, or that is unknown."""
    system = host.machine.section("dir.file_system")
    kind = system.text("kind") or "unknown type"
    if system.flag("in_memory"):
        what, effect = f"is in memory ({kind})", "no disk is measured there: files are as fast as RAM"
    elif system.flag("network"):
        what, effect = (
            f"is on a network file system or shared by the host ({kind})",
            "file figures are those of the network and the server",
        )
    elif system.flag("overlay"):
        what, effect = (
            f"is a container's layer ({kind})",
            "the first write to a file copies it to the upper layer; figures mix two file systems",
        )
    elif system.flag("user_space"):
        what, effect = (
            f"is served by a user-space program ({kind})",
            "each request costs two more context switches, 5 to 50 µs",
        )
    else:
        return None
    return Finding(
        id="directory",
        severity="note",
        title=f"the measured directory {what}",
        effect=effect,
        remedy="name a directory on the disk that holds your data: --dir DIR",
    )
