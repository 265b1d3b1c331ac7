"""Budgets of a program: how much of its wall time a category may take, and how often it may do something.

`storage_wait="5 %"`, `page_faults="100 per request"`, `wall="2 s"`: a name with underscores, and a limit
whose unit says what is limited: a share of wall time, time, or a count. Tests have them by
`latlab.pytest_plugin`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from latlab.errors import UserError, named
from latlab.explain.answer import GROUPS, UNEXPLAINED, Share, percent
from latlab.explain.named import most_of, place_of
from latlab.explain.verdict import verdict
from latlab.nearest import nearest
from latlab.text import clean
from latlab.units import (
    format_bytes,
    format_count,
    format_ns,
    format_span,
    parse_count,
    parse_share,
    parse_size,
    parse_value,
)

if TYPE_CHECKING:
    from latlab.compare.outcome import Held
    from latlab.explain.model import Counters, Explained, Row, Within

Kind: TypeAlias = Literal["share", "time", "count", "bytes"]

CATEGORIES: Final = tuple(name.replace("-", "_") for group in GROUPS.values() for name in group)
TIMES: Final[dict[str, Callable[[Explained], float]]] = {
    "wall": lambda explained: explained.wall_s,
    "cpu": lambda explained: explained.counters.user_s + explained.counters.system_s,
}
COUNTS: Final[dict[str, tuple[Kind, Callable[[Counters], float | None]]]] = {
    "page_faults": ("count", lambda counters: counters.minor_faults + counters.major_faults),
    "major_faults": ("count", lambda counters: counters.major_faults),
    "switches": ("count", lambda counters: counters.voluntary_switches + counters.involuntary_switches),
    "reads": ("count", lambda counters: counters.read_calls),
    "writes": ("count", lambda counters: counters.write_calls),
    "read_bytes": ("bytes", lambda counters: counters.read_chars),
    "written_bytes": ("bytes", lambda counters: counters.written_chars),
    "disk_read_bytes": ("bytes", lambda counters: counters.device_read_bytes),
    "disk_written_bytes": ("bytes", lambda counters: counters.device_written_bytes),
}
#: As people say it.
_ALSO: Final = {"wait_disk": "storage_wait"}
#: Every name that a budget may have.
NAMES: Final = tuple(dict.fromkeys((*TIMES, *COUNTS, *CATEGORIES, *_ALSO)))
_PER: Final = re.compile(r"(.*\S)\s+per\s+(\w+)\s*")
_WRITE: Final[Mapping[Kind, Callable[[float], str]]] = {
    "share": percent,
    "time": lambda seconds: format_ns(1e9 * seconds),
    "count": format_count,
    "bytes": format_bytes,
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a program may take of one thing.

    Attributes:
        name: As it was written: `page_faults`.
        kind: What is limited.
        limit: A share of wall time, seconds, a count or bytes.
        per: Of what the limit is for one: `request`; empty: of a run.
    """

    name: str
    kind: Kind
    limit: float
    per: str = ""

    @property
    def key(self) -> str:
        """The name of what is limited."""
        return _ALSO.get(self.name, self.name)

    def written(self, amount: float) -> str:
        """An amount with its unit: `100 per request`."""
        return _WRITE[self.kind](amount) + (f" per {self.per}" if self.per else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a budget.

    Attributes:
        budget: The budget.
        verdict: Held where the whole interval is within, broken where all of it is beyond.
        why: The figure with its interval and the limit, and where most of it is; or why it is not known.
    """

    budget: Budget
    verdict: Held
    why: str


def budgets(given: Mapping[str, object]) -> list[Budget]:
    """The budgets that a test names.

    Raises:
        UserError: a name or a limit is none.
    """
    return [named(clean(name, most=60), partial(_budget, name), limit) for name, limit in given.items()]


def _budget(name: str, limit: object) -> Budget:
    if name not in NAMES:
        guess = nearest(name, NAMES)
        wish = f"did you mean {guess}? " if guess else ""
        raise UserError(f"is no budget; {wish}There are: {', '.join(NAMES)}")
    key, text, per = _ALSO.get(name, name), str(limit), ""
    if isinstance(limit, str) and (match := _PER.fullmatch(limit)):
        text, per = match.groups()
    kind, amount = _limit(key, text, is_number=isinstance(limit, int | float) and not isinstance(limit, bool))
    if per and kind == "share":
        raise UserError(f"{clean(limit, most=60)!r}: a share of wall time is that of the whole run")
    return Budget(name, kind, amount, per)


def _limit(key: str, text: str, *, is_number: bool) -> tuple[Kind, float]:
    """What a limit limits, and its amount in the kind's unit."""
    if key in CATEGORIES and text.rstrip().endswith("%"):
        return "share", parse_share(text)
    if key in COUNTS and (is_number or key not in CATEGORIES or not re.search(r"[nuµm]?s\s*$", text)):
        kind = COUNTS[key][0]
        return kind, float(parse_size(text) if kind == "bytes" else parse_count(text))
    if key in TIMES or key in CATEGORIES:
        if is_number:
            raise UserError(f"{clean(text, most=60)} has no unit: write it as {_example(key)}")
        ns, unit = parse_value(text)
        if unit == "ns":
            return "time", ns / 1e9
    raise UserError(f"{clean(text, most=60)!r} is no limit of it: write it as {_example(key)}")


def _example(key: str) -> str:
    return '"2 s"' if key in TIMES else '"5 %" or "20 ms"'


def outcomes(explained: Explained, of: Sequence[Budget], requests: int = 1) -> list[Outcome]:
    """Holds a program's ledger against budgets; a run of it served so many requests."""
    return [_outcome(explained, budget, requests if budget.per else 1) for budget in of]


def _outcome(explained: Explained, budget: Budget, parts: int) -> Outcome:
    known = _amount(explained, budget)
    if known is None:
        return Outcome(budget, "undecided", f"{budget.name} is not known here{_because(explained)}")
    low, amount, high = (each / parts for each in known)
    verdict: Held = "held" if high <= budget.limit else "broken" if low > budget.limit else "undecided"
    ends = format_span(low, high, _WRITE[budget.kind])
    text = f"{budget.name} is {budget.written(amount)}"
    if ends.count("–") and low < high:
        text += f" ({ends})"
    if budget.kind == "share":
        text += f" of {format_ns(1e9 * explained.wall_s)}"
    text += f", allowed: {budget.written(budget.limit)}"
    if verdict == "broken":
        text += _where(explained, budget)
    elif verdict == "undecided":
        text += f": cannot tell; more runs= narrow it{_because(explained)}"
    return Outcome(budget, verdict, text)


def _amount(explained: Explained, budget: Budget) -> tuple[float, float, float] | None:
    """From, as seen, up to; None where this is not known."""
    if budget.key in TIMES:
        amount = TIMES[budget.key](explained)
        return amount, amount, amount
    if budget.kind in {"count", "bytes"}:
        counted = COUNTS[budget.key][1](explained.counters)
        return None if counted is None else (counted, counted, counted)
    share = _share(explained, budget.key.replace("_", "-"))
    if share is None:
        return None
    whole = explained.wall_s if budget.kind == "time" else 1.0
    return share.low * whole, share.share * whole, share.high * whole


def _share(explained: Explained, name: str) -> Share | None:
    """A category, with what of it other rows may contain; at most, all that is unexplained is of it too."""
    of: list[Row | Within] = [
        each for row in explained.categories for each in row.within if each.name == name
    ]
    of += explained.rows((name,))
    if not of:
        return None
    rest = explained.row(UNEXPLAINED) if name != UNEXPLAINED else None
    high = sum(each.high for each in of) + (rest.high if rest else 0.0)
    return Share(name, sum(each.share for each in of), sum(each.low for each in of), min(high, 1.0))


def _because(explained: Explained) -> str:
    """Why no more is known: the tracing level that is missing."""
    for rung in explained.levels:
        if not rung.available and rung.reason:
            return f"; tracing level {rung.level} is missing: {clean(rung.reason, most=200)}"
    return ""


def _where(explained: Explained, budget: Budget) -> str:
    """The function, the line or the file with most of it; of all the time, what the time went to."""
    if budget.key in TIMES:
        return f". {verdict(explained)[0]}"
    category = budget.key.replace("_", "-")
    share = _share(explained, category)
    group = next((name for name, of in GROUPS.items() if category in of), None)
    if share is None or group is None:
        return ""
    share = Share(group, share.share, share.low, share.high)
    place = place_of(explained, share)
    return f"; most in {place.called}" if place else most_of(explained, share) or _at(explained, share)


def _at(explained: Explained, share: Share) -> str:
    """The line of Python code that takes so much of wall time that half of a share of it or more is there."""
    lines = [line for line in (explained.python.lines if explained.python else ()) if line.line]
    most = max(lines, key=lambda line: line.share, default=None)
    if most is None or most.low < 1 - share.low / 2:
        return ""
    file = clean(PurePath(most.file or "?").name, most=60)
    return f"; most at {file}:{most.line} ({clean(most.name, most=60)})"
