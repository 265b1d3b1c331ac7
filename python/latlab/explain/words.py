"""What a program does in words: each category as it stands in a sentence, and what it asks for."""

from __future__ import annotations

from typing import Final

from latlab.explain.answer import GROUPS, SMALL, UNEXPLAINED, Share, percent, together
from latlab.explain.model import Explained, Row

CATEGORIES: Final[dict[str, tuple[str, str]]] = {
    "compute": ("computing", "look at the functions listed under compute"),
    "user-cpu": ("computing", "raise the tracing level to see what its code does"),
    "memory-copy": ("copying memory", "find the copying code: copy larger blocks, or none"),
    "allocator": ("allocating memory", "find the allocating code, or try another allocator"),
    "garbage-collection": ("garbage collection", "give the collector more memory, or allocate less"),
    "page-faults": ("page faults", "reuse memory instead of giving it back, or ask for huge pages"),
    "file-io-cpu": ("the kernel's work on files", "use larger blocks and fewer calls"),
    "kernel-cpu": ("unclassified kernel work", "raise the tracing level to see what the kernel does for it"),
    "storage-wait": (
        "waiting for the disk",
        "read ahead, read more at once, or keep the file in memory",
    ),
    "network": ("the network", "make fewer round trips, or several at once"),
    "pipe": ("waiting at pipes", "look at the slower end of the pipe, in the list of processes"),
    "locks": ("waiting for locks", "shorten what is done under the lock, or split it"),
    "run-queue-wait": (
        "waiting for a CPU",
        "measure again when the CPUs are free, or use fewer threads",
    ),
    "sleep": ("sleeping", "look at why it sleeps"),
    "waiting-for-children": ("waiting for child processes", "look at the child processes"),
    "start-and-exit": ("starting and ending", "do more in one run"),
    "interrupts-for-others": ("interrupts on behalf of others", "measure again on a quiet machine"),
    UNEXPLAINED: ("what could not be explained", "raise the tracing level"),
}
"""What a category is called in a sentence, and the next step."""

_PARTS: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("network", "readiness"): (
        "waiting for readiness (poll, select, epoll)",
        "look at what it polls: sockets, pipes or only a timer",
    ),
    ("network", "readiness of sockets"): (
        "waiting for sockets (poll, select, epoll)",
        "look at the other end of its sockets, and at whether there was anything to do",
    ),
    ("pipe", "readiness of pipes"): (
        "waiting for pipes (poll, select, epoll)",
        "look at the other end of its pipes",
    ),
    ("locks", "event descriptor"): (
        "waiting for its own threads (an event descriptor)",
        "look at what its other threads wait for",
    ),
    ("sleep", "terminal"): (
        "waiting for a terminal",
        "give it its input beforehand, or write less to the terminal",
    ),
    ("storage-wait", "flushing"): (
        "waiting until data is safe on the disk",
        "flush less often, or batch several changes",
    ),
    ("file-io-cpu", "names and metadata"): (
        "the kernel's work on file names",
        "open, look up or list fewer names",
    ),
}
"""The same where this part is most of the category."""

GROUPED: Final[dict[str, str]] = {
    "computing": "computing",
    "storage": "working on files and waiting for the disk",
    UNEXPLAINED: "what could not be explained",
}
"""What a program does by groups of several categories."""


def words_of(row: Row) -> tuple[str, str]:
    """What a category is called, and the next step: by its part that is most of it, if there is one."""
    first = row.parts[0] if row.parts else None
    part = first.name if first and first.share > row.share / 2 else ""
    return _PARTS.get((row.name, part)) or CATEGORIES[row.name]


def called(explained: Explained, share: Share) -> tuple[str, Share]:
    """A share of `GROUPS` as people call it: by its one category where nothing else of it is seen."""
    rows = explained.rows(GROUPS[share.name])
    seen = [row for row in rows if row.share >= SMALL] or rows[:1]
    if len(seen) > 1 or share.name == "computing":
        return GROUPED[share.name], share
    return words_of(seen[0])[0], together(seen[0].name, seen)


def at(name: str) -> str:
    """Completes "it spends half of the time …"."""
    return name if name.split(maxsplit=1)[0].rstrip(",").endswith("ing") else f"on {name}"


def span(share: Share) -> str:
    """`60–70 %`; one figure where both ends print alike."""
    low, high = percent(share.low), percent(share.high)
    return high if low == high else f"{low.removesuffix(' %')}–{high}"


def known(share: Share, more: str = "") -> str:
    """` (60–70 %, more)`, after the share; without the interval where that is as narrow as it is printed."""
    ends = span(share)
    inside = ", ".join(each for each in (ends if "–" in ends else "", more) if each)
    return f" ({inside})" if inside else ""
