"""The ledger in words: what dominates, how sure that is, what was ruled out, and what to do next."""

from __future__ import annotations

import math
import signal
from collections import defaultdict
from typing import Final

from latlab.explain.answer import (
    GROUPS,
    SMALL,
    UNEXPLAINED,
    Answer,
    Share,
    answer,
    groups_of,
    narrowing,
    percent,
    together,
)
from latlab.explain.model import Explained, Process, Row, Rung
from latlab.explain.named import most_of, place_of, waits_in
from latlab.explain.worker import worker
from latlab.text import clean
from latlab.units import format_ns, format_seconds

_MOST_NAMED: Final = 4
_MOST_OTHERS: Final = 3
_LARGER_HALF: Final = 0.5
_AT_A_PIPE: Final = 0.1
"""Share of its time that some process waits at a pipe before there is a pipeline to speak of."""
_SLOWER: Final = 0.1
"""So much less of its time at its pipes than the next, and a stage is the slow one: twice level 3's error."""
_DISTURBED: Final = 0.1
"""Share of its time that others took, from which on it is worth another run."""
_LOOKS_ALONE: Final = 3
"""The level at which nothing is recorded."""
_NONE: Final = 0.0005
"""Prints as nothing."""
_MOST_OVERHEAD: Final = 50
"""Per cent: beyond, a program is another one."""
_EXACT: Final = 0.9
"""Share of wall time that was recorded, from which on processes are known by more than scans."""
_NOT_ASKED_FOR: Final = "not asked for"
"""The reason of a level that `--level` left out, as `levels.rs` of the ledger has it."""

_GROUPED: Final[dict[str, str]] = {
    "computing": "computing",
    "storage": "working on files and waiting for the disk",
    UNEXPLAINED: "what could not be explained",
}
"""What a program does by groups of several categories."""

NAMES: Final[dict[str, str]] = {
    "compute": "computing",
    "memory-copy": "copying memory",
    "allocator": "allocating memory",
    "garbage-collection": "garbage collection",
    "user-cpu": "computing",
    "page-faults": "page faults",
    "file-io-cpu": "the kernel's work on files",
    "kernel-cpu": "undivided work of the kernel",
    "storage-wait": "waiting for the disk",
    "network": "the network",
    "pipe": "waiting at pipes",
    "locks": "waiting for locks",
    "run-queue-wait": "waiting for a CPU",
    "sleep": "sleeping",
    "waiting-for-children": "waiting for child processes",
    "start-and-exit": "starting and ending",
    "interrupts-for-others": "interrupts on behalf of others",
    "unexplained": "what could not be explained",
}
"""Categories as they stand in a sentence."""

_NEXT: Final[dict[str, str]] = {
    "compute": "look at the functions listed under compute",
    "user-cpu": "raise the level to see what its own code does",
    "memory-copy": "find the copying code: copy larger blocks, or none",
    "allocator": "find the allocating code, or try another allocator",
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
    "unexplained": "raise the tracing level",
}

_PARTS: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("network", "readiness"): (
        "waiting for readiness (poll, select, epoll)",
        "look at what it polls: sockets, pipes or nothing but a time",
    ),
    ("network", "readiness of sockets"): (
        "waiting for sockets (poll, select, epoll)",
        "look at who is at the other end of its sockets, or whether there was anything to do",
    ),
    ("pipe", "readiness of pipes"): (
        "waiting for pipes (poll, select, epoll)",
        "look at who is at the other end of its pipes",
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
        "flush less often, or several changes at once",
    ),
    ("file-io-cpu", "names and metadata"): (
        "the kernel's work on names of files",
        "open, look up or list fewer names",
    ),
}
"""What a category is called, as in `NAMES` and `_NEXT`, if this part is most of it."""
_WRITES: Final = "write larger blocks, or let the kernel write behind (neither O_SYNC nor O_DIRECT)"


def _part(row: Row) -> tuple[str, str]:
    """A category with what most of it is."""
    most = row.parts[0] if row.parts and row.parts[0].share > row.share / 2 else None
    return row.name, most.name if most else ""


def _name(row: Row) -> str:
    return _PARTS[_part(row)][0] if _part(row) in _PARTS else NAMES[row.name]


def _called(explained: Explained, share: Share) -> tuple[str, Share]:
    """A share of `GROUPS` as people call it: by its one category where nothing else of it is seen."""
    rows = [row for row in explained.categories if row.name in GROUPS[share.name]]
    seen = [row for row in rows if row.share >= SMALL] or rows[:1]
    if len(seen) > 1 or share.name == "computing":
        return _GROUPED[share.name], share
    return _name(seen[0]), together(seen[0].name, seen)


def _step(explained: Explained, name: str) -> str:
    """What a category asks for."""
    row = explained.row(name)
    if row is not None and _part(row) in _PARTS:
        return _PARTS[_part(row)][1]
    counters = explained.counters
    if name == "storage-wait" and (counters.device_written_bytes or 0) > (counters.device_read_bytes or 0):
        return _WRITES
    return _NEXT[name]


def verdict(explained: Explained) -> list[str]:
    """The sentences, most important first: each share once, of wall time where no other whole is named."""
    found = answer(explained)
    sentences = [
        _headline(explained, found),
        worker(explained).says,
        _disk(explained, found),
        _ended_early(explained),
        _others(explained, found),
        _critical_path(explained) or _slow_stage(explained),
        _ruled_out(found),
        *_doubts(explained, found),
        _runs(explained, found),
        _next(explained, found),
    ]
    return [sentence for sentence in sentences if sentence]


def interval(low: float, high: float, dash: str = "–") -> str:
    """`1.2–3.4 %`."""
    return f"{100 * low:.1f}{dash}{100 * high:.1f} %"


def _headline(explained: Explained, found: Answer) -> str:
    """What takes most of the time: with the function or the line that does, where one is known."""
    who, took, leading = worker(explained).name, _took(explained), found.leading.of
    if not leading:
        return f"{who} took {took}; nothing was seen of what it did."
    listed = [_called(explained, share) for share in leading[:_MOST_NAMED]]
    if found.leading.is_tie:
        parts = [
            f"{_at(name)} {percent(share.share)}{_known(share, _with(explained, group))}"
            for group, (name, share) in zip(leading, listed, strict=False)
        ]
        return f"{who} spends {took} about equally {' and '.join(parts)}."
    if not found.leading.is_known:
        parts = [f"{_at(name)} ({_span(share)})" for name, share in listed]
        if len(leading) > _MOST_NAMED:
            parts[-1] = f"on one of {len(leading) - _MOST_NAMED + 1} others"
        either = f"{', '.join(parts[:-1])} or {parts[-1]}"
        return f"{who} spends most of {took} {either}: which is more cannot be determined."
    place = place_of(explained, leading[0])
    (name, share), more = listed[0], _with(explained, leading[0], places=False)
    if place is not None:
        who, name, share, more = place.called, place.doing or name, place.share, ""
    elif share.name == UNEXPLAINED and _was_idle(explained, share):
        name = "waiting for what could not be read"
    named = "" if place else most_of(explained, leading[0])
    return f"{who} spends {percent(share.share)} of {took} {_at(name)}{_known(share, more)}{named}."


def _took(explained: Explained) -> str:
    took = format_ns(1e9 * explained.wall_s)
    if explained.runs > 1:
        took += f" (mean of {explained.runs:,} runs)"
    if explained.best_of_s:
        walls = ", ".join(format_ns(1e9 * seconds) for seconds in explained.best_of_s)
        took += f" (best of {len(explained.best_of_s):,} runs: {walls})"
    return took


def _at(name: str) -> str:
    """Completes "it spends half of the time …"."""
    return name if name.split(maxsplit=1)[0].rstrip(",").endswith("ing") else f"on {name}"


def _span(share: Share) -> str:
    """`60–70 %`; one figure where both ends print alike."""
    low, high = percent(share.low), percent(share.high)
    return high if low == high else f"{low.removesuffix(' %')}–{high}"


def _known(share: Share, more: str = "") -> str:
    """` (60–70 %, more)`, after the share; without the interval where that is as narrow as it is printed."""
    span = _span(share)
    inside = ", ".join(each for each in (span if "–" in span else "", more) if each)
    return f" ({inside})" if inside else ""


def _with(explained: Explained, group: Share, *, places: bool = True) -> str:
    """Where most of a group is spent, and what of computing has a name of its own."""
    place = place_of(explained, group) if places else None
    most = [f"most in {place.called}"] if place else []
    if group.name != "computing":
        return ", ".join(most)
    rows = [row for row in explained.categories if row.name in GROUPS[group.name] and row.share >= SMALL]
    parts = [f"{percent(row.share)} {_at(_name(row))}" for row in rows if _name(row) != _GROUPED[group.name]]
    return ", ".join([*most, f"with {' and '.join(parts)}"] if parts else most)


def _disk(explained: Explained, found: Answer) -> str | None:
    """Whether it waits for the disk: asked of every program, so answered of each, once."""
    if any(_called(explained, share)[1].name == "storage-wait" for share in found.leading.of):
        return None
    row, unexplained = explained.row("storage-wait"), explained.row(UNEXPLAINED)
    if row is None:
        return f"Whether it waits for the disk cannot be determined at tracing level {explained.level}."
    high = min(row.high + (unexplained.high if unexplained else 0.0), 1.0)
    share = Share(row.name, row.share, row.low, high)
    if share.low <= SMALL and not share.is_close:
        looked = explained.level == _LOOKS_ALONE
        looks = f" from {explained.observer.looks:,} looks at /proc" if looked else ""
        return f"Whether it waits for the disk cannot be determined{looks}: {_span(share)} of the time."
    if high < _NONE:
        return "It does not wait for the disk: 0 %."
    if high < SMALL:
        return f"It waits for the disk at most {percent(high)} of the time."
    where = waits_in(explained, share)
    return f"It waits for the disk {percent(share.share)} of the time{_known(share)}{where}."


def _ended_early(explained: Explained) -> str | None:
    number = explained.program.signal
    return None if number is None else f"It was ended by {signal_name(number)}."


def signal_name(number: int) -> str:
    """`signal 11 (SIGSEGV)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _was_idle(explained: Explained, share: Share) -> bool:
    """What could not be explained was waiting: beside the time that it ran there is room for all of it."""
    running_s = explained.threads.cpu_s / max(explained.threads.parallelism, 1.0)
    return share.share + running_s / max(explained.wall_s, 1e-9) <= 1.0 + SMALL


def _others(explained: Explained, found: Answer) -> str | None:
    """The largest groups that the sentences before do not name."""
    leading = found.leading
    placed = leading.of and leading.is_known and place_of(explained, leading.of[0]) is not None
    said = {UNEXPLAINED} if placed else {UNEXPLAINED, *(share.name for share in leading.of)}
    listed = []
    for group in sorted(groups_of(explained), key=lambda share: -share.share):
        if group.share < SMALL or group.name in said:
            continue
        name, share = _called(explained, group)
        if share.name != "storage-wait":
            listed.append(
                f"{name} {percent(share.share)}{_known(share, _with(explained, group, places=not placed))}"
            )
    return f"{'Overall' if placed else 'Also'}: {', '.join(listed[:_MOST_OTHERS])}." if listed else None


def _critical_path(explained: Explained) -> str | None:
    """Who was on a CPU while the end waited for it, where they are several; of each the longest."""
    ran: dict[str, float] = defaultdict(float)
    for step in explained.steps:
        if step.doing == "on-cpu":
            ran[step.name] += step.share
    listed = [
        f"{clean(name, most=24)} {percent(ran[name])}"
        for name in sorted(ran, key=lambda name: -ran[name])[:_MOST_OTHERS]
        if ran[name] >= SMALL
    ]
    # One alone is the program of the first sentence.
    if explained.path is None or len(listed) < 2:  # noqa: PLR2004 - several
        return None
    whole = format_ns(1e9 * explained.path.recorded_share * explained.wall_s)
    return f"On a CPU while the end waited for it, of the {whole} recorded: {', '.join(listed)}."


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
        return f"The slow stage of its pipeline cannot be determined from {looks:,.0f} scans ({shares})."
    return (
        f"The slow stage of its pipeline is {clean(slow.name, most=24)} ({slow.pid}): it waits at its pipes"
        f" {percent(least)} of its time, every other at least {percent(next_)}."
    )


def _ruled_out(found: Answer) -> str | None:
    """What people suspect, and what it is not; of the disk more is said."""
    shown = [share for share in found.ruled_out if share.name != "storage-wait"][:_MOST_NAMED]
    if not shown:
        return None
    most = max(share.high for share in shown)
    at_most = f"{'each ' if len(shown) > 1 else ''}{f'at most {percent(most)}' if most >= _NONE else '0 %'}"
    return f"Ruled out: {', '.join(NAMES[share.name] for share in shown)} ({at_most})."


def _doubts(explained: Explained, found: Answer) -> list[str]:
    doubts = []
    if not explained.closure.holds:
        whole = 100 * explained.closure.sum
        doubts.append(
            f"Accounting error: categories sum to {whole:.1f} % of wall time. Distrust every share."
        )
    leading = {share.name for share in found.leading.of}
    unexplained = explained.row(UNEXPLAINED)
    if unexplained and unexplained.share >= SMALL and UNEXPLAINED not in leading:
        known = interval(unexplained.low, unexplained.high)
        doubts.append(f"{percent(unexplained.share)} ({known}) could not be explained.")
    user = explained.row("user-cpu")
    if user and user.share >= max(SMALL, explained.share("compute")):
        doubts.append(
            "Computing may include the allocator, copying memory and garbage collection: this level does not"
            " tell them apart."
        )
    kernel = explained.row("kernel-cpu")
    if kernel and kernel.share >= SMALL and kernel.within:
        doubts.append(_of_the_kernel(kernel))
    rows = [row for row in explained.categories if row.name in ("interrupts-for-others", "run-queue-wait")]
    # Then the machine, not the program, is what is measured.
    if together("others", rows).low >= _DISTURBED and "waiting-for-cpus" not in leading:
        doubts.append(
            "Other programs, or a limit on its CPU time, slow it down: measure again on a quiet machine."
        )
    return doubts


def _of_the_kernel(kernel: Row) -> str:
    """What counts say of its work where that is left whole, or of what they leave."""
    counted = [each for each in kernel.counted if each.share >= SMALL]
    if not counted:
        return (
            "The kernel does not count that work of its own: most often it is on names of files, but any"
            " other may be in it."
        )
    listed = ", ".join(
        f"{NAMES[each.name]} {percent(each.share)} ({interval(each.low, each.high)})"
        for each in counted[:_MOST_NAMED]
    )
    return f"What the kernel did is known by counts alone: {listed}; the rest may be any of its work."


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
    """What tells apart what cannot be determined now."""
    if found.again is not None:
        unclear = found.categories if found.leading.is_known else found.leading
        # The whole of computing is known better than its rows.
        shares = [share for share in unclear.of if NAMES.get(share.name) != _GROUPED["computing"]]
        widest = max(shares or unclear.of, key=lambda share: share.high - share.low)
        runs = _narrowed(explained, widest, found.again)
        overhead = _more_overhead(explained, found.again / explained.runs)
        return f"{overhead}, or {runs}" if overhead else runs
    if not explained.program.arguments:
        return "watch it for longer (--for)"
    higher = _higher(explained)
    if higher:
        return f"raise the level, which tells more of them apart: {higher}"
    return _to_record(explained) or "look at each of them, as nothing here tells which is more"


def _runs(explained: Explained, found: Answer) -> str | None:
    """What more runs add to a short one, where the next step does not say it."""
    short = narrowing(explained)
    if short is None or found.again is not None:
        return None
    runs, widest = short
    if not widest.name:
        return f"It was over before it was seen: --runs {runs} shows where its time goes, to about ±2 points."
    return f"More runs: {_narrowed(explained, widest, runs)}."


def _narrowed(explained: Explained, share: Share, runs: int) -> str:
    """An interval is half as wide with four times as many runs."""
    part = (explained.runs / runs) ** 0.5
    low = share.share - part * (share.share - share.low)
    high = share.share + part * (share.high - share.share)
    name = NAMES.get(share.name) or _called(explained, share)[0]
    then = Share(share.name, share.share, low, high)
    return (
        f"--runs {runs} narrows {name} from {_span(share)} to about {_span(then)}"
        f" in {format_seconds(explained.wall_s * runs)}; the program does all it does each time"
    )


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
