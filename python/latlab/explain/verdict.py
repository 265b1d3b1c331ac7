"""The ledger in words: what dominates, how sure that is, what was ruled out, and what to do next."""

from __future__ import annotations

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
    interval,
    percent,
    together,
)
from latlab.explain.model import Explained, Process, Row
from latlab.explain.named import most_of, place_of, waits_in
from latlab.explain.next_step import more_runs, next_step
from latlab.explain.words import CATEGORIES, GROUPED, at, called, known, span, words_of
from latlab.explain.worker import worker
from latlab.text import clean
from latlab.units import format_ns

_MOST_NAMED: Final = 4
_MOST_OTHERS: Final = 3
_AT_A_PIPE: Final = 0.1
"""Share of its time that some process waits at a pipe before there is a pipeline to speak of."""
_SLOWER: Final = 0.1
"""So much less of its time at its pipes than the next, and a stage is the slow one: twice level 3's error."""
_DISTURBED: Final = 0.1
"""Share of its time that others took, from which on it is worth another run."""
_SCANS_ALONE: Final = 3
"""The level at which nothing is recorded."""
_NONE: Final = 0.0005
"""Prints as nothing."""
_EXACT: Final = 0.9
"""Share of wall time that was recorded, from which on processes are known by more than scans."""


def verdict(explained: Explained) -> list[str]:
    """The sentences, most important first: each share once, of wall time where no other whole is named."""
    found = answer(explained)
    sentences = [
        _headline(explained, found),
        worker(explained).says,
        _python(explained),
        _disk(explained, found),
        _ended_early(explained),
        _others(explained, found),
        _critical_path(explained) or _slow_stage(explained),
        _ruled_out(found),
        *_doubts(explained, found),
        more_runs(explained, found),
        next_step(explained, found),
    ]
    return [sentence for sentence in sentences if sentence]


def _headline(explained: Explained, found: Answer) -> str:
    """What takes most of the time: with the function or the line that does, where one is known."""
    who, took, leading = worker(explained).name, _took(explained), found.leading.of
    if not leading:
        return f"{who} took {took}; no sample shows what it did."
    listed = [called(explained, share) for share in leading[:_MOST_NAMED]]
    if found.leading.is_tie:
        parts = [
            f"{at(name)} {percent(share.share)}{known(share, _with(explained, group))}"
            for group, (name, share) in zip(leading, listed, strict=False)
        ]
        return f"{who} spends {took} about equally {' and '.join(parts)}."
    if not found.leading.is_known:
        parts = [f"{at(name)} ({span(share)})" for name, share in listed]
        if len(leading) > _MOST_NAMED:
            parts[-1] = f"on one of {len(leading) - _MOST_NAMED + 1} others"
        either = f"{', '.join(parts[:-1])} or {parts[-1]}"
        return f"{who} spends most of {took} {either}: which is more cannot be determined."
    place = place_of(explained, leading[0])
    (name, share), more = listed[0], _with(explained, leading[0], places=False)
    if place is not None:
        who, name, share, more = place.called, place.doing or name, place.share, ""
    elif share.name == UNEXPLAINED and _was_idle(explained, share):
        name = "waiting for an unknown cause"
    named = "" if place else most_of(explained, leading[0])
    return f"{who} spends {percent(share.share)} of {took} {at(name)}{known(share, more)}{named}."


def _took(explained: Explained) -> str:
    took = format_ns(1e9 * explained.wall_s)
    if explained.runs > 1:
        took += f" (mean of {explained.runs:,} runs)"
    if explained.best_of_s:
        walls = ", ".join(format_ns(1e9 * seconds) for seconds in explained.best_of_s)
        took += f" (best of {len(explained.best_of_s):,} runs: {walls})"
    return took


def _with(explained: Explained, group: Share, *, places: bool = True) -> str:
    """Where most of a group is spent, and what of computing has a name of its own."""
    place = place_of(explained, group) if places else None
    most = [f"most in {place.called}"] if place else []
    if group.name != "computing":
        return ", ".join(most)
    names = [(row, words_of(row)[0]) for row in explained.rows(GROUPS[group.name]) if row.share >= SMALL]
    parts = [f"{percent(row.share)} {at(name)}" for row, name in names if name != GROUPED[group.name]]
    return ", ".join([*most, f"with {' and '.join(parts)}"] if parts else most)


def _disk(explained: Explained, found: Answer) -> str | None:
    """Whether it waits for the disk: asked of every program, so answered of each, once."""
    if any(called(explained, share)[1].name == "storage-wait" for share in found.leading.of):
        return None
    row, unexplained = explained.row("storage-wait"), explained.row(UNEXPLAINED)
    if row is None:
        return f"Whether it waits for the disk cannot be determined at tracing level {explained.level}."
    high = min(row.high + (unexplained.high if unexplained else 0.0), 1.0)
    share = Share(row.name, row.share, row.low, high)
    if share.low <= SMALL and not share.is_close:
        scanned = explained.level == _SCANS_ALONE
        scans = f" from {explained.observer.scans:,} scans of /proc" if scanned else ""
        return f"Whether it waits for the disk cannot be determined{scans}: {span(share)} of the time."
    if high < _NONE:
        return "It does not wait for the disk: 0 %."
    if high < SMALL:
        return f"It waits for the disk at most {percent(high)} of the time."
    where = waits_in(explained, share)
    return f"It waits for the disk {percent(share.share)} of the time{known(share)}{where}."


def _python(explained: Explained) -> str | None:
    """That a script without `python` before it is one; a process of that name says so itself."""
    versions = explained.python.versions if explained.python else ()
    if not versions or any(process.name.startswith("python") for process in explained.processes):
        return None
    return f"{worker(explained).name} runs Python {' and '.join(versions)} code."


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
        name, share = called(explained, group)
        if share.name != "storage-wait":
            listed.append(
                f"{name} {percent(share.share)}{known(share, _with(explained, group, places=not placed))}"
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
    return f"CPU time on the critical path, of the {whole} recorded: {', '.join(listed)}."


def _slow_stage(explained: Explained) -> str | None:
    """Of processes that wait for each other at pipes, the one that waits least: all others wait for it."""

    def waits(process: Process, name: str) -> float:
        return sum(wait.share for wait in process.waits if wait.name == name)

    stages = [
        (waits(process, "pipe"), process)
        for process in explained.processes
        if process.wall_s >= explained.wall_s / 2 and 2 * waits(process, "waiting-for-children") < 1
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
            f"No stage of its pipeline is much slower than the next: they wait at their pipes for "
            f"{shares} of their time."
        )
    exact = explained.observer.recorded_share >= _EXACT
    scans = max(explained.observer.scans / max(explained.runs, 1), 1.0)
    # Looks know a share to about one over the root of their number.
    if not exact and next_ - least < scans**-0.5:
        return f"The slow stage of its pipeline cannot be determined from {scans:,.0f} scans ({shares})."
    return (
        f"The slow stage of its pipeline is {clean(slow.name, most=24)} ({slow.pid}): it waits at "
        f"its pipes for {percent(least)} of its time, every other stage for at least {percent(next_)}."
    )


def _ruled_out(found: Answer) -> str | None:
    """What people suspect, and what it is not; of the disk more is said."""
    shown = [share for share in found.ruled_out if share.name != "storage-wait"][:_MOST_NAMED]
    if not shown:
        return None
    most = max(share.high for share in shown)
    at_most = f"{'each ' if len(shown) > 1 else ''}{f'at most {percent(most)}' if most >= _NONE else '0 %'}"
    return f"Ruled out: {', '.join(CATEGORIES[share.name][0] for share in shown)} ({at_most})."


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
        ends = interval(unexplained.low, unexplained.high)
        doubts.append(f"{percent(unexplained.share)} ({ends}) could not be explained.")
    user = explained.row("user-cpu")
    if user and user.share >= max(SMALL, explained.share("compute")):
        doubts.append(
            "Computing may include the allocator, copying memory and garbage collection: this level does not"
            " distinguish them."
        )
    kernel = explained.row("kernel-cpu")
    if kernel and kernel.share >= SMALL and kernel.within:
        doubts.append(_of_the_kernel(kernel))
    rows = explained.rows(("interrupts-for-others", "run-queue-wait"))
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
            "The kernel does not count this work: most often it is on file names, but it can be "
            "anything else."
        )
    listed = ", ".join(
        f"{CATEGORIES[each.name][0]} {percent(each.share)} ({interval(each.low, each.high)})"
        for each in counted[:_MOST_NAMED]
    )
    return f"The kernel's work is known only from counts: {listed}; the rest may be any of its work."
