"""The ledger in words: what dominates, how sure that is, what was ruled out, and what to do next."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from latlab.explain.answer import GROUPS, SMALL, UNEXPLAINED, Answer, Share, answer, narrowing, together
from latlab.explain.model import Explained, Process, Row, Rung
from latlab.explain.named import most_of
from latlab.text import clean
from latlab.units import format_ns

_MOST_NAMED: Final = 4
_LARGER_HALF: Final = 0.5
_AT_A_PIPE: Final = 0.1
"""Share of its time that some process waits at a pipe before there is a pipeline to speak of."""
_SLOWER: Final = 0.1
"""So much less of its time at its pipes than the next, and a stage is the slow one: twice level 3's error."""
_MOST_OVERHEAD: Final = 50
"""Per cent: beyond, a program is another one."""
_EXACT: Final = 0.9
"""Share of wall time that was recorded, from which on processes are known by more than looks."""
_NOT_ASKED_FOR: Final = "not asked for"
"""The reason of a level that `--level` left out, as `levels.rs` of the ledger has it."""

_IS: Final[dict[str, str]] = {
    "computing": "bound by computing",
    "memory-management": "bound by memory management",
    "kernel": "bound by the kernel's work",
    "storage": "bound by storage",
    "network": "bound by the network",
    "pipes": "bound by pipes",
    "locks": "bound by locks",
    "waiting-for-cpus": "short of CPUs",
    "sleeping": "asleep",
    "waiting-for-children": "waiting for its children",
    "starting-and-ending": "starting and ending",
    "interrupts": "interrupted",
    UNEXPLAINED: "something that was not found",
}
"""What a program is said to be."""
_STATES: Final = frozenset({"sleeping", "waiting-for-children", "starting-and-ending", "interrupts"})
"""What it is for a time: mostly, then."""

NAMES: Final[dict[str, str]] = {
    "compute": "computing",
    "memory-copy": "copying memory",
    "allocator": "the allocator",
    "garbage-collection": "garbage collection",
    "user-cpu": "its own code as a whole",
    "page-faults": "page faults",
    "file-io-cpu": "the kernel's work on files",
    "kernel-cpu": "the kernel's work that is not divided",
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
    "kernel-cpu": "raise the level to see what the kernel does for it",
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

_PARTS: Final[dict[tuple[str, str], tuple[str, str, str]]] = {
    ("network", "readiness"): (
        "waiting for descriptors to become ready",
        "waiting for readiness (poll, select, epoll)",
        "look at what it polls: sockets, pipes or nothing but a time",
    ),
    ("network", "readiness of sockets"): (
        "waiting for its sockets to become ready",
        "waiting for sockets (poll, select, epoll)",
        "look at who is at the other end of its sockets, or whether there was anything to do",
    ),
    ("pipe", "readiness of pipes"): (
        "waiting for its pipes to become ready",
        "waiting for pipes (poll, select, epoll)",
        "look at who is at the other end of its pipes",
    ),
    ("locks", "event descriptor"): (
        "waiting for its own threads",
        "waiting for its own threads (an event descriptor)",
        "look at what its other threads wait for",
    ),
    ("sleep", "terminal"): (
        "waiting for a terminal",
        "waiting for a terminal",
        "give it its input beforehand, or write less to the terminal",
    ),
    ("storage-wait", "flushing"): (
        "bound by storage",
        "waiting until data is safe on storage",
        "flush less often, or several changes at once",
    ),
    ("file-io-cpu", "names and metadata"): (
        "bound by work on names of files",
        "the kernel's work on names of files",
        "open, look up or list fewer names",
    ),
}
"""What a category is called, as in `_IS`, `NAMES` and `_NEXT`, if this part is most of it."""
_WRITES: Final = "write larger blocks, or let the kernel write behind (neither O_SYNC nor O_DIRECT)"


def _part(row: Row) -> tuple[str, str]:
    """A category with what most of it is."""
    most = row.parts[0] if row.parts and row.parts[0].share > row.share / 2 else None
    return row.name, most.name if most else ""


def _name(row: Row) -> str:
    return _PARTS[_part(row)][1] if _part(row) in _PARTS else NAMES[row.name]


def _is(explained: Explained, share: Share) -> str:
    """What a program is by a share of `GROUPS`."""
    rows = [row for row in explained.categories if row.name in GROUPS[share.name]]
    most = max(rows, key=lambda row: row.share)
    if most.share <= share.share / 2:
        return _IS[share.name]
    # What was in memory, or goes no further than that, is no storage.
    warm = "bound by the kernel's work on files" if most.name == "file-io-cpu" else _IS[share.name]
    return _PARTS[_part(most)][0] if _part(most) in _PARTS else warm


def _step(explained: Explained, name: str) -> str:
    """What a category asks for."""
    row = explained.row(name)
    if row is not None and _part(row) in _PARTS:
        return _PARTS[_part(row)][2]
    counters = explained.counters
    if name == "storage-wait" and (counters.device_written_bytes or 0) > (counters.device_read_bytes or 0):
        return _WRITES
    return _NEXT[name]


def verdict(explained: Explained) -> list[str]:
    """The sentences, most important first."""
    found = answer(explained)
    path = _critical_path(explained)
    sentences = [_dominates(explained, found), *_ended_early(explained), *path, *_shares(explained)]
    stage = None if path else _slow_stage(explained)
    if stage:
        sentences.append(stage)
    ruled_out = _ruled_out(found)
    if ruled_out:
        sentences.append(ruled_out)
    sentences += _doubts(explained)
    step = _next(explained, found)
    runs = narrowing(explained)
    if runs is not None and "--runs" not in (step or ""):
        sentences.append(
            f"One run of {format_ns(1e9 * explained.wall_s)} shows little: --runs {runs} shows more (whatever"
            " the program does, it does each time)."
        )
    if step:
        sentences.append(step)
    return sentences


def interval(low: float, high: float, dash: str = "–") -> str:
    """`1.2–3.4 %`."""
    return f"{100 * low:.1f}{dash}{100 * high:.1f} %"


def percent(share: float) -> str:
    """A share as people read it: a digit more where it is small."""
    points = 100 * share
    return f"{points:.1f} %" if points < 9.95 else f"{points:.0f} %"  # noqa: PLR2004 - two digits


def _dominates(explained: Explained, found: Answer) -> str:
    took = f"took {format_ns(1e9 * explained.wall_s)}"
    if explained.runs > 1:
        took += f" (mean of {explained.runs:,} runs)"
    if explained.best_of_s:
        walls = ", ".join(format_ns(1e9 * seconds) for seconds in explained.best_of_s)
        took += f" (best of {len(explained.best_of_s):,} runs: {walls})"
    return f"The program {took}{_what_leads(explained, found)}."


def _ended_early(explained: Explained) -> list[str]:
    if explained.program.signal is None:
        return []
    return [f"It was ended by {signal_name(explained.program.signal)}."]


def signal_name(number: int) -> str:
    """`signal 11 (SIGSEGV)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _what_leads(explained: Explained, found: Answer) -> str:
    leading = found.leading.of
    if not leading:
        return "; nothing was seen of what it did"
    first = leading[0]
    listed = [f"{_is(explained, share)} ({_known(share)})" for share in leading[:_MOST_NAMED]]
    if len(leading) > _MOST_NAMED:
        listed[-1] = f"one of {len(leading) - _MOST_NAMED + 1} others"
    if found.leading.is_tie:
        return f". It is about as much {_joined(listed, 'as')}: which is more cannot be told"
    if not found.leading.is_known:
        return f". What takes most of it cannot be told: it may be {_joined(listed, 'or')}"
    sure = f"{percent(first.share)} of that time, {percent(first.low)} to {percent(first.high)}"
    if first.name == UNEXPLAINED:
        return f". {_not_explained(explained, first)} ({sure})"
    named = most_of(explained, first.name)
    if first.low > _LARGER_HALF:
        mostly = "mostly " if first.name in _STATES else ""
        return f". It is {mostly}{_is(explained, first)} ({sure}){named}"
    few = "No one thing takes half of it; most" if first.high <= _LARGER_HALF else "Most"
    return f". {few} of all it is {_is(explained, first)} ({sure}){named}"


def _not_explained(explained: Explained, share: Share) -> str:
    much = "most of it" if share.low > _LARGER_HALF else "more of it than anything else took"
    running_s = explained.threads.cpu_s / max(explained.threads.parallelism, 1.0)
    if share.share + running_s / max(explained.wall_s, 1e-9) <= 1.0 + SMALL:
        return f"For {much} it waited, and what for could not be read"
    return f"{much.capitalize()} could not be explained"


def _known(share: Share) -> str:
    return f"{percent(share.share)}, {percent(share.low)} to {percent(share.high)}"


def _joined(parts: Sequence[str], word: str) -> str:
    return f" {word} ".join(parts) if word == "as" else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _shares(explained: Explained) -> list[str]:
    rows = [row for row in explained.categories if row.share >= SMALL and row.name != UNEXPLAINED][:3]
    if not rows:
        return []
    parts = [
        f"{_name(row)} {percent(row.share)} ({interval(row.low, row.high)}; {format_ns(1e9 * row.seconds)})"
        for row in rows
    ]
    return [f"Largest shares: {', '.join(parts)}."]


def _critical_path(explained: Explained) -> list[str]:
    """Who was on a CPU while the end waited for it, and what was waited for then; of each the longest."""
    path = explained.path
    if path is None or not explained.steps:
        return []
    ran: dict[str, float] = {}
    waited: dict[str, float] = {}
    for step in explained.steps:
        if step.doing == "on-cpu":
            ran[step.name] = ran.get(step.name, 0.0) + step.share
        elif step.doing is not None:
            name = NAMES[step.doing]
            waited[name] = waited.get(name, 0.0) + step.share
    listed = [
        ", ".join(f"{clean(name, most=24)} {percent(share)}" for name, share in _largest(of)) + where
        for of, where in ((ran, " on a CPU"), (waited, ""))
        if _largest(of)
    ]
    if not listed:
        return []
    recorded = percent(path.recorded_share)
    return [f"On its critical path ({recorded} of the time was recorded): {'; '.join(listed)}."]


def _largest(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    largest = sorted(shares.items(), key=lambda each: -each[1])[:3]
    return [(name, share) for name, share in largest if share >= SMALL]


def _slow_stage(explained: Explained) -> str | None:
    """Of processes that wait for each other at pipes, the one that waits least: all others wait for it."""

    def waits(process: Process, name: str) -> float:
        return sum(wait.share for wait in process.waits if wait.name == name)

    stages = [
        (waits(process, "pipe"), process)
        for process in explained.processes
        if process.wall_s >= explained.wall_s / 2 and waits(process, "waiting-for-children") < _LARGER_HALF
    ]
    stages.sort(key=lambda stage: stage[0])
    if len(stages) < 2 or stages[-1][0] < _AT_A_PIPE:  # noqa: PLR2004 - a stage and what it waits for
        return None
    (least, slow), (next_, _) = stages[:2]
    if next_ < _AT_A_PIPE:
        # Several that wait at no pipe are no chain: one process gives work to the others, say.
        return None
    shares = f"{percent(least)} and {percent(next_)}"
    if next_ - least < _SLOWER:
        return (
            f"No stage of its pipeline is much slower than the next: {shares} of their time at their pipes."
        )
    exact = explained.observer.recorded_share >= _EXACT
    looks = max(explained.observer.looks / max(explained.runs, 1), 1.0)
    # Looks know a share to about one over the root of their number.
    if not exact and next_ - least < looks**-0.5:
        return (
            f"Which stage of its pipeline is the slow one cannot be told from {looks:,.0f} looks ({shares})."
        )
    return (
        f"The slow stage of its pipeline is {clean(slow.name, most=24)} ({slow.pid}): it waits at its pipes"
        f" {percent(least)} of its time, every other at least {percent(next_)}."
    )


def _ruled_out(found: Answer) -> str | None:
    """What people suspect, and what it is not."""
    if not found.ruled_out:
        return None
    shown = found.ruled_out[:_MOST_NAMED]
    most = max(share.high for share in shown)
    each = "Each" if len(shown) > 1 else "It"
    named = ", ".join(NAMES[share.name] for share in shown)
    return f"Ruled out: {named}. {each} takes at most {percent(most)}, with all that was not explained."


def _doubts(explained: Explained) -> list[str]:
    doubts = []
    if not explained.closure.holds:
        doubts.append(
            f"The books do not close: {100 * explained.closure.sum:.1f} % of wall time was given away;"
            " distrust every share."
        )
    unexplained = explained.row(UNEXPLAINED)
    if unexplained and unexplained.share >= SMALL:
        known = interval(unexplained.low, unexplained.high)
        doubts.append(f"{percent(unexplained.share)} ({known}) could not be explained.")
    user = explained.row("user-cpu")
    if user and user.share >= SMALL:
        doubts.append(
            f"Of {percent(user.share)} in its own code it is not known what is computing and what the"
            " allocator, copying or garbage collection: each is between none and all of it."
        )
    kernel = explained.row("kernel-cpu")
    if kernel and kernel.share >= SMALL and kernel.within:
        doubts.append(_of_the_kernel(kernel))
    others = together(
        "others",
        [row for row in explained.categories if row.name in ("interrupts-for-others", "run-queue-wait")],
    )
    if others.low >= 0.1:  # noqa: PLR2004 - then the machine, not the program, is what is measured
        doubts.append(
            f"Other programs, or a limit on its CPU time, cost it {percent(others.share)}"
            f" ({interval(others.low, others.high)}): measure again on a quiet machine."
        )
    return doubts


def _of_the_kernel(kernel: Row) -> str:
    """What counts say of its work where that is left whole, or of what they leave."""
    counted = [each for each in kernel.counted if each.share >= SMALL]
    if not counted:
        return (
            f"{percent(kernel.share)} was work of the kernel that it does not count: most often on names of"
            " files, but any of its other work may be in it."
        )
    listed = ", ".join(
        f"{NAMES[each.name]} {percent(each.share)} ({interval(each.low, each.high)})"
        for each in counted[:_MOST_NAMED]
    )
    return (
        f"What the kernel did in {percent(kernel.share)} of the time is known by counts alone: {listed};"
        " the rest may be any of its work."
    )


def _next(explained: Explained, found: Answer) -> str | None:
    if not found.leading.of:
        return None
    if not found.is_known:
        return f"Next: {_to_know_more(explained, found)}."
    first = found.categories.of[0].name
    step = _step(explained, first)
    if first not in {"user-cpu", "kernel-cpu", UNEXPLAINED}:
        return f"Next: {step}."
    higher = _higher(explained)
    if higher:
        return f"Next: {step}: {higher}."
    return f"Next: {_to_record(explained) or f'{step}, where that is allowed'}."


def _to_know_more(explained: Explained, found: Answer) -> str:
    """What tells apart what cannot be told now."""
    if found.again is not None:
        runs = (
            "run it again and put the runs together (whatever it does, it does each time):"
            f" --runs {found.again}"
        )
        overhead = _more_overhead(explained, found.again / explained.runs)
        return f"{overhead}, or {runs}" if overhead else runs
    if not explained.program.arguments:
        return "watch it for longer (--for)"
    higher = _higher(explained)
    if higher:
        return f"raise the level, which tells more of them apart: {higher}"
    return _to_record(explained) or "look at each of them, as nothing here tells which is more"


def _more_overhead(explained: Explained, times: float) -> str | None:
    """One run that records this many times as much, where that does not change the program too much."""
    observer = explained.observer
    if observer.samples == 0 or observer.recorded_share * times > 1 or observer.allowed_share is None:
        return None
    wanted = math.ceil(100 * observer.allowed_share * times)
    return f"record more of it: --overhead {wanted}%" if wanted <= _MOST_OVERHEAD else None


def _higher(explained: Explained) -> str | None:
    """How to get a higher level."""
    if explained.raise_:
        return explained.raise_
    not_asked_for = any(rung.reason == _NOT_ASKED_FOR for rung in _above(explained))
    return "leave out --level" if not_asked_for else None


def _to_record(explained: Explained) -> str | None:
    """How to have some recorded at a level that is allowed: it was too short, or switched too often."""
    if not any(rung.available for rung in _above(explained)):
        return None
    if not explained.program.arguments:
        return "watch it for longer, so that some of it can be recorded (--for)"
    return f"run it more often, so that some of it can be recorded: --runs {10 * explained.runs}"


def _above(explained: Explained) -> list[Rung]:
    """Levels that see more than this one."""
    return [rung for rung in explained.levels if rung.level < explained.level]
