"""What a ledger answers, and how sure it is: the one place that decides what may be named.

A share is known by its interval alone. It is the largest if its low end lies above the high ends of all
others; as the shares sum to all of wall time, none of them is higher than what the first leaves for sure.
Otherwise those that reach as high cannot be distinguished, and are all named. What is ruled out is ruled out
by its high end, with all that could not be explained beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from latlab.explain.model import Explained, Row

SMALL: Final = 0.02
"""Below this share of wall time, nothing is worth a sentence: it is what a share is known to."""
_CLOSE: Final = 0.1
"""Shares with intervals no wider than this are known: which is larger does not matter."""
_RULED_OUT: Final = 0.05
"""The most that a category can have and be ruled out, if all that was not explained were its own."""
_POOLED_S: Final = 60.0
"""Nobody waits for longer for more samples without having thought of it."""
_MOST_RUNS: Final = 1000
_SHORT_S: Final = 0.05
"""A run of less time has few samples and looks."""
UNEXPLAINED: Final = "unexplained"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "computing": ("compute", "user-cpu", "memory-copy", "garbage-collection", "allocator"),
    "memory-management": ("page-faults",),
    "kernel": ("kernel-cpu",),
    "storage": ("storage-wait", "file-io-cpu"),
    "network": ("network",),
    "pipes": ("pipe",),
    "locks": ("locks",),
    "waiting-for-cpus": ("run-queue-wait",),
    "sleeping": ("sleep",),
    "waiting-for-children": ("waiting-for-children",),
    "starting-and-ending": ("start-and-exit",),
    "interrupts": ("interrupts-for-others",),
    UNEXPLAINED: (UNEXPLAINED,),
}
"""What a program can be bound by, and the categories that make it so."""
_SUSPECTS: Final = (
    "storage-wait",
    "file-io-cpu",
    "network",
    "locks",
    "allocator",
    "page-faults",
    "run-queue-wait",
)
"""What people suspect."""


class Share(msgspec.Struct, frozen=True):
    """A share of wall time with its 95 % interval."""

    name: str
    share: float
    low: float
    high: float

    @property
    def is_close(self) -> bool:
        """It is known well enough to be named beside others that are as large."""
        return self.high - self.low <= _CLOSE


def percent(share: float) -> str:
    """A share as people read it: a digit more where it is small."""
    points = 100 * share
    return f"{points:.1f} %" if points < 9.95 else f"{points:.0f} %"  # noqa: PLR2004 - two digits


def interval(low: float, high: float, dash: str = "–") -> str:
    """`1.2–3.4 %`."""
    return f"{100 * low:.1f}{dash}{100 * high:.1f} %"


class Leading(msgspec.Struct, frozen=True):
    """What may be the largest: one, or several that cannot be distinguished, the largest as seen first."""

    of: tuple[Share, ...]

    @property
    def is_known(self) -> bool:
        """There is no other."""
        return len(self.of) == 1

    @property
    def is_tie(self) -> bool:
        """Each is known, and they are about as large."""
        return not self.is_known and all(share.is_close for share in self.of)


class Answer(msgspec.Struct, frozen=True):
    """What can be said of a ledger.

    Attributes:
        leading: of `GROUPS`; empty if nothing was seen.
        categories: of the first of these groups, in the same way.
        ruled_out: what it is not, with the most that it can be.
        again: how often to run it so that what leads is distinguished; None where that is known, or runs are
            not what it takes.
    """

    leading: Leading
    categories: Leading
    ruled_out: tuple[Share, ...]
    again: int | None

    @property
    def is_known(self) -> bool:
        """What to do next may follow from the category that leads."""
        return all(leading.is_known or leading.is_tie for leading in (self.leading, self.categories))

    def plain(self) -> dict[str, object]:
        """As `--json` has it."""
        return {
            "known": self.leading.is_known,
            "leading": msgspec.to_builtins(self.leading.of),
            "categories_known": self.categories.is_known,
            "categories": msgspec.to_builtins(self.categories.of),
            "ruled_out": msgspec.to_builtins(self.ruled_out),
            "again": self.again,
        }


def leading(shares: Sequence[Share]) -> Leading:
    """The rule: see the module."""
    seen = sorted((share for share in shares if share.share > 0), key=lambda share: -share.share)
    if not seen:
        return Leading(())
    first = seen[0]
    left = 1.0 - first.low
    rivals = [
        share for share in shares if share is not first and min(share.high, left) >= max(first.low, SMALL)
    ]
    return Leading((first, *sorted(rivals, key=lambda share: (-share.share, -share.high))))


def together(name: str, rows: Sequence[Row | Share]) -> Share:
    """Rows as one: their intervals add up as those of independent figures."""
    share = sum(row.share for row in rows)
    below = sum((row.share - row.low) ** 2 for row in rows) ** 0.5
    above = sum((row.high - row.share) ** 2 for row in rows) ** 0.5
    return Share(name, share, max(share - below, 0.0), min(share + above, 1.0))


def answer(explained: Explained) -> Answer:
    """See the module."""
    groups = leading(groups_of(explained))
    first = GROUPS[groups.of[0].name] if groups.of else ()
    categories = leading([together(row.name, (row,)) for row in explained.rows(first)])
    return Answer(groups, categories, _ruled_out(explained), _again(explained, groups, categories))


def groups_of(explained: Explained) -> list[Share]:
    """The share of each of `GROUPS`."""
    return [_group(explained, name) for name in GROUPS]


def _group(explained: Explained, name: str) -> Share:
    """One of `GROUPS`."""
    found = together(name, explained.rows(GROUPS[name]))
    if name != "computing":
        return found
    known = explained.computing
    low, high = max(found.low, known.low), min(found.high, known.high)
    return Share(name, found.share, min(low, found.share), max(high, found.share))


def narrowing(explained: Explained) -> tuple[int, Share] | None:
    """Runs that narrow each share of one short run to `SMALL` on either side, and the widest share.

    None where it needs no more runs. Runs do not narrow what is modelled. A run in which nothing was seen
    says nothing of any share.
    """
    if explained.runs > 1 or explained.best_of_s or explained.program.exit_code != 0:
        return None
    modelled = {row.name for row in explained.categories if row.method == "modelled" and row.high > 0}
    rows = [group for group in groups_of(explained) if modelled.isdisjoint(GROUPS[group.name])]
    was_seen = explained.observer.scans + explained.observer.samples > 0
    widest = max(rows, key=lambda row: row.high - row.low, default=None) if was_seen else None
    share = widest or Share("", 0.0, 0.0, 0.0 if was_seen else 1.0)
    width = share.high - share.low
    if explained.wall_s >= _SHORT_S or width <= 2 * SMALL:
        return None
    wanted = (width / (2 * SMALL)) ** 2
    return _round(max(2.0, min(wanted, _POOLED_S / max(explained.wall_s, 1e-9), _MOST_RUNS))), share


def _ruled_out(explained: Explained) -> tuple[Share, ...]:
    """Those that are small, even if all that was not explained were of one of them."""
    found = []
    for name in _SUSPECTS:
        row = explained.row(name)
        within = [each.high for whole in explained.categories for each in whole.within if each.name == name]
        hidden = sum(within) + sum(other.high for other in explained.rows([UNEXPLAINED]))
        if row is not None and row.high < SMALL and row.high + hidden < _RULED_OUT:
            found.append(Share(name, row.share, row.low, min(row.high + hidden, 1.0)))
    return tuple(found)


def _again(explained: Explained, *leaders: Leading) -> int | None:
    """How many runs, pooled: an interval is half as wide with four times as many."""
    unclear = next((each for each in leaders if each.of and not (each.is_known or each.is_tie)), None)
    if unclear is None or not explained.program.arguments or _is_modelled(explained, unclear):
        return None
    first = unclear.of[0]
    wanted = 2.0
    for other in unclear.of[1:]:
        blur = first.share - first.low + other.high - other.share
        # Until they are apart, or both known.
        apart = max(first.share - other.share, _CLOSE / 2)
        wanted = max(wanted, (blur / apart) ** 2)
    most = max(2.0, min(_POOLED_S / max(explained.wall_s, 1e-9), _MOST_RUNS))
    # Of what is pooled already, twice as many runs say more in any case.
    return max(2 * explained.runs, min(explained.runs * _round(wanted), _round(most)))


def _is_modelled(explained: Explained, unclear: Leading) -> bool:
    """What makes the intervals wide is a model, which more runs do not make better.

    At level 1 they bring samples of the kernel instead.
    """
    if explained.level == 1:
        return False
    names = [name for share in unclear.of for name in GROUPS.get(share.name, (share.name,))]
    rows = [row for row in explained.rows(names) if row.high > 0]
    widest = max(rows, key=lambda row: row.high - row.low, default=None)
    return widest is not None and widest.method == "modelled"


def _round(number: float) -> int:
    """Up to 2, 5 or 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return math.ceil(next(each for each in (1, 2, 5, 10) if number <= each * power * (1 + 1e-9)) * power)
