"""What to do next: about what leads, or to know what leads."""

from __future__ import annotations

import math
from typing import Final

from latlab.explain.answer import UNEXPLAINED, Answer, Share, narrowing
from latlab.explain.model import Explained, Row, Rung
from latlab.explain.words import CATEGORIES, called, span, words_of
from latlab.units import format_seconds

_MOST_OVERHEAD: Final = 50
"""Per cent: beyond, a program is another one."""
_NOT_ASKED_FOR: Final = "not asked for"
"""The reason of a level that `--level` left out, as `levels.rs` of the ledger has it."""
_WRITES: Final = "write larger blocks, or let the kernel write behind (neither O_SYNC nor O_DIRECT)"
_WHOLES: Final = frozenset({"user-cpu", "kernel-cpu", UNEXPLAINED})
"""Categories that a higher level tells more of."""


def next_step(explained: Explained, found: Answer) -> str | None:
    """The last sentence of the verdict; None where nothing was seen."""
    if not found.leading.of:
        return None
    if not found.is_known:
        return f"Next: {_to_know_more(explained, found)}."
    row = next(row for row in explained.categories if row.name == found.categories.of[0].name)
    step = _step(explained, row)
    if row.name not in _WHOLES:
        return f"Next: {step}."
    higher = _higher(explained)
    if higher:
        return f"Next: {step}: {higher}."
    return f"Next: {_to_record(explained) or f'{step}, where this is permitted'}."


def _step(explained: Explained, row: Row) -> str:
    """What a category asks for."""
    words, counters = words_of(row), explained.counters
    writes = (counters.device_written_bytes or 0) > (counters.device_read_bytes or 0)
    return _WRITES if writes and words == CATEGORIES["storage-wait"] else words[1]


def _to_know_more(explained: Explained, found: Answer) -> str:
    """What tells apart what cannot be determined now."""
    if found.again is not None:
        unclear = found.categories if found.leading.is_known else found.leading
        # The whole of computing is known better than its rows.
        shares = [share for share in unclear.of if share.name not in {"compute", "user-cpu"}]
        widest = max(shares or unclear.of, key=lambda share: share.high - share.low)
        runs = _narrowed(explained, widest, found.again)
        overhead = _more_overhead(explained, found.again / explained.runs)
        return f"{overhead}, or {runs}" if overhead else runs
    if not explained.program.arguments:
        return "watch it for longer (--for)"
    higher = _higher(explained)
    if higher:
        return f"raise the tracing level, which distinguishes more of them: {higher}"
    return _to_record(explained) or "look at each of them: their order is unknown here"


def more_runs(explained: Explained, found: Answer) -> str | None:
    """What more runs add to a short one, where the next step does not say it."""
    short = narrowing(explained)
    if short is None or found.again is not None:
        return None
    runs, widest = short
    if not widest.name:
        return (
            f"It ended too soon to be sampled: --runs {runs} shows where its time goes, to about ±2 points."
        )
    return f"More runs: {_narrowed(explained, widest, runs)}."


def _narrowed(explained: Explained, share: Share, runs: int) -> str:
    """An interval is half as wide with four times as many runs."""
    part = (explained.runs / runs) ** 0.5
    low = share.share - part * (share.share - share.low)
    high = share.share + part * (share.high - share.share)
    name = CATEGORIES[share.name][0] if share.name in CATEGORIES else called(explained, share)[0]
    return (
        f"--runs {runs} narrows {name} from {span(share)} to about "
        f"{span(Share(share.name, share.share, low, high))} in "
        f"{format_seconds(explained.wall_s * runs)}; the program's effects happen each time"
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
    return f"run it more times, so that some of it can be recorded: --runs {10 * explained.runs}"


def _above(explained: Explained) -> list[Rung]:
    """Levels that see more than this one."""
    return [rung for rung in explained.levels if rung.level < explained.level]
