"""Huge pages are off, forbidden to this process, or given only on request."""

from __future__ import annotations

from latlab.doctor.host import Host
from latlab.run.model import Finding


def finding(host: Host) -> Finding | None:
    """Finding, or None when transparent huge pages are always given, or that is unknown."""
    mode = host.machine.text("memory.thp.enabled")
    if mode == "never":
        return Finding(
            id="huge-pages",
            severity="caution",
            title="transparent huge pages are off",
            effect="the huge-page curves are not measured; random access to large arrays suffers TLB "
            "misses in every program here (183 instead of 117 ns in 1 GiB on one machine)",
            remedy="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    if host.machine.flag("memory.thp.this_process") is False:
        return Finding(
            id="huge-pages",
            severity="caution",
            title="this process cannot get transparent huge pages",
            effect="its parent process disabled them (prctl PR_SET_THP_DISABLE): huge-page figures "
            "are measured in small pages",
            remedy="start latlab from a shell without that setting, or change it in the service or container",
        )
    if mode == "madvise":
        return Finding(
            id="huge-pages",
            severity="note",
            title="transparent huge pages are given only to programs that ask (madvise)",
            effect="latlab asks, and measures both; your program gets 4 KiB pages unless its "
            "allocator also asks",
            remedy="most programs: GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        )
    return None
