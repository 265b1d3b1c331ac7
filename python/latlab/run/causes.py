"""What the slow operations of a run are made of, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latlab.text import clean
from latlab.units import format_percent

if TYPE_CHECKING:
    from latlab.run.model import Record

UNEXPLAINED = "unexplained"
#: Fewer samples have no shares worth telling.
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class Causes:
    """How many slow samples have which cause.

    Attributes:
        counts: By name, the most frequent first and what nothing explains last; names as people write them.
        samples: Their sum.
        level: The least that could be seen of any of them.
    """

    counts: tuple[tuple[str, int], ...]
    samples: int
    level: str

    def shares(self) -> str:
        """`61 % timer tick, 25 % host tick, 14 % unexplained`."""
        return ", ".join(f"{format_percent(count / self.samples)} {name}" for name, count in self.counts)


#: The rungs of evidence, least first.
_LEVELS = ("time stamps", "rseq", "perf records", "tracepoints")


def slow_causes(records: Iterable[Record], least_ns: float) -> Causes | None:
    """Causes of the time-stamped samples of at least `least_ns`.

    None where fewer than ten were kept, or where causes were not looked for in all of these records: shares
    of some of them would be read as shares of all.
    """
    counts: Counter[str] = Counter()
    levels = set()
    for record in records:
        if record.tail_causes is None:
            return None
        levels.add(record.tail_causes.level)
        counts.update(
            clean(sample.cause or UNEXPLAINED, most=40) for sample in record.tail if sample.value >= least_ns
        )
    samples = counts.total()
    if samples < _FEWEST:
        return None
    named = [(name, count) for name, count in counts.most_common() if name != UNEXPLAINED]
    # Never folded away, and never left out: that nothing stays unexplained is an answer too.
    rows = [*named, (UNEXPLAINED, counts[UNEXPLAINED])]
    known = [level for level in _LEVELS if level in levels]
    return Causes(
        counts=tuple((name.replace("-", " "), count) for name, count in rows),
        samples=samples,
        level=known[0] if known else clean(min(levels), most=40),
    )
