"""The ledger in words: what dominates, how sure that is, what was ruled out, and what to do next."""

from __future__ import annotations

from typing import Final

from latlab.explain.model import Explained, Row
from latlab.units import format_ns

_SMALL: Final = 0.02
"""Below this share of wall time, nothing is worth a sentence: it is what a share is known to."""
_MOST_RULED_OUT: Final = 4

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "bound by computing": ("compute", "user-cpu", "memory-copy", "garbage-collection", "allocator"),
    "bound by memory management": ("page-faults",),
    "bound by storage": ("storage-wait", "file-io-cpu"),
    "bound by the network": ("network",),
    "bound by pipes": ("pipe",),
    "bound by locks": ("locks",),
    "short of CPUs": ("run-queue-wait",),
    "mostly asleep": ("sleep",),
    "mostly waiting for its children": ("waiting-for-children",),
    "mostly starting and ending": ("start-and-exit",),
    "mostly interrupted": ("interrupts-for-others",),
}
"""What a program is said to be, and the categories that make it so."""

NAMES: Final[dict[str, str]] = {
    "compute": "computing",
    "memory-copy": "copying memory",
    "allocator": "the allocator",
    "garbage-collection": "garbage collection",
    "user-cpu": "its own code, which this level cannot look into",
    "page-faults": "page faults",
    "file-io-cpu": "the kernel's work on files",
    "storage-wait": "waiting for storage",
    "network": "the network",
    "pipe": "pipes",
    "locks": "locks",
    "run-queue-wait": "waiting for a CPU",
    "sleep": "sleeping",
    "waiting-for-children": "waiting for child processes",
    "start-and-exit": "starting and ending",
    "interrupts-for-others": "interrupts on behalf of others",
    "unexplained": "nothing that could be found",
}
"""Categories as they stand in a sentence."""

_NEXT: Final[dict[str, str]] = {
    "compute": "look at the functions listed under compute",
    "user-cpu": "raise the level to see what its own code does",
    "memory-copy": "look at who copies: larger moves at once, or none",
    "allocator": "look at who allocates, or try another allocator",
    "garbage-collection": "give the collector more memory, or allocate less",
    "page-faults": "reuse memory instead of giving it back, or ask for huge pages",
    "file-io-cpu": "use larger blocks and fewer calls",
    "storage-wait": "read ahead, read more at once, or keep the file in memory",
    "network": "make fewer round trips, or several at once",
    "pipe": "look at the slower end of the pipe, in the list of processes",
    "locks": "shorten what is done under the lock, or split it",
    "run-queue-wait": "measure again when other programs leave it the CPUs, or use fewer threads",
    "sleep": "look at why it sleeps",
    "waiting-for-children": "look at the child processes",
    "start-and-exit": "do more in one run",
    "interrupts-for-others": "measure again on a quiet machine",
    "unexplained": "raise the level of sight",
}


def verdict(explained: Explained) -> list[str]:
    """The sentences, most important first."""
    sentences = [_dominates(explained), *_largest(explained)]
    ruled_out = _ruled_out(explained)
    if ruled_out:
        sentences.append(ruled_out)
    sentences += _doubts(explained)
    step = _next(explained)
    if step:
        sentences.append(step)
    return sentences


def group_of(explained: Explained) -> tuple[str, float, float, float] | None:
    """What the program is, with the share of wall time that makes it so and that share's interval."""
    shares = []
    for name, categories in GROUPS.items():
        rows = [row for row in explained.categories if row.name in categories]
        share = sum(row.share for row in rows)
        below = sum((row.share - row.low) ** 2 for row in rows) ** 0.5
        above = sum((row.high - row.share) ** 2 for row in rows) ** 0.5
        shares.append((name, share, max(share - below, 0.0), min(share + above, 1.0)))
    best = max(shares, key=lambda each: each[1])
    return best if best[1] > 0 else None


def percent(share: float) -> str:
    """A share as people read it: a digit more where it is small."""
    points = 100 * share
    return f"{points:.1f} %" if points < 9.95 else f"{points:.0f} %"  # noqa: PLR2004 - two digits


def _dominates(explained: Explained) -> str:
    took = f"took {format_ns(1e9 * explained.wall_s)}"
    if explained.runs > 1:
        took += f" (mean of {explained.runs:,} runs)"
    group = group_of(explained)
    if group is None:
        return f"The program {took}; nothing was seen of what it did."
    name, share, low, high = group
    sure = f"{percent(share)} of that time, {percent(low)} to {percent(high)}"
    if low > 0.5:  # noqa: PLR2004 - the larger half
        return f"The program {took}. It is {name} ({sure})."
    return f"The program {took}. No one thing takes half of it; most of all it is {name} ({sure})."


def _largest(explained: Explained) -> list[str]:
    rows = [row for row in explained.categories if row.share >= _SMALL and row.name != "unexplained"][:3]
    if not rows:
        return []
    parts = [f"{NAMES[row.name]} {percent(row.share)} ({format_ns(1e9 * row.seconds)})" for row in rows]
    return [f"Largest: {'; '.join(parts)}."]


def _ruled_out(explained: Explained) -> str | None:
    """What people suspect, and what it is not."""
    suspects = (
        "storage-wait",
        "file-io-cpu",
        "network",
        "locks",
        "allocator",
        "page-faults",
        "run-queue-wait",
    )
    rows: list[Row] = [row for name in suspects if (row := explained.row(name)) and row.high < _SMALL]
    if not rows:
        return None
    named = ", ".join(NAMES[row.name] for row in rows[:_MOST_RULED_OUT])
    most = max(row.high for row in rows[:_MOST_RULED_OUT])
    each = "Each" if len(rows[:_MOST_RULED_OUT]) > 1 else "It"
    return f"Ruled out: {named}. {each} takes at most {percent(most)}."


def _doubts(explained: Explained) -> list[str]:
    doubts = []
    if not explained.closure.holds:
        doubts.append(
            f"The books do not close: {100 * explained.closure.sum:.1f} % of wall time was given away;"
            " distrust every share."
        )
    unexplained = explained.share("unexplained")
    if unexplained >= _SMALL:
        doubts.append(f"{percent(unexplained)} could not be explained.")
    user = explained.row("user-cpu")
    if user and user.share >= _SMALL:
        doubts.append(
            f"Of {percent(user.share)} in its own code this level cannot say what is computing and what the"
            " allocator, copying or garbage collection: each is between none and all of it."
        )
    quiet = explained.share("interrupts-for-others", "run-queue-wait")
    if quiet >= 0.1:  # noqa: PLR2004 - then the machine, not the program, is what is measured
        doubts.append(f"Other programs cost it {percent(quiet)}: measure again on a quiet machine.")
    return doubts


def _next(explained: Explained) -> str | None:
    rows = [row for row in explained.categories if row.share >= _SMALL]
    if not rows:
        return None
    first = rows[0].name
    step = _NEXT[first]
    if explained.raise_ and first in {"user-cpu", "unexplained"}:
        step = f"{step}: {explained.raise_}"
    elif first in {"user-cpu", "unexplained"} and explained.level > 1:
        step = f"{step}, where that is allowed"
    return f"Next: {step}."
