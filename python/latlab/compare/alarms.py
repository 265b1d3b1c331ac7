"""How often runs of one machine are called changed, and which change would show: a machine against itself."""

from __future__ import annotations

import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from latlab.compare import KEPT, SAME, Side, compare

if TYPE_CHECKING:
    from latlab.compare.verdict import Kind
    from latlab.run.run import Run

#: Comparisons of runs that were dealt out.
TIMES: Final = 24
#: Fewer runs are not dealt out.
FEWEST: Final = 4


@dataclass(frozen=True, slots=True)
class Alarms:
    """What comparisons of one machine with itself said.

    Attributes:
        runs: A side.
        kept: Other runs that show the variation between runs.
        figures: That were compared, over all comparisons.
        changed: Of these, called changed: false alarms.
        headline: Comparisons in which a headline figure was called changed.
        verdicts: Of headline figures.
        visible: The smallest change that would have shown, as a share, by the name of a headline figure: the
            median over comparisons.
    """

    runs: int
    kept: int
    figures: int
    changed: int
    headline: int
    verdicts: Counter[Kind]
    visible: dict[str, float]


def alarms(runs: Sequence[Run], a_side: int, same: float = SAME) -> Alarms:
    """Assigns runs of one machine to two sides at random, :data:`TIMES` times.

    Args:
        runs: Of one machine and profile, :data:`FEWEST` or more.
        a_side: So many on each side, half of the runs at most. With one a side, the other runs show the
            variation between runs.
        same: Changes up to this share count as none.
    """
    dice = random.Random(1)  # noqa: S311 - deals runs out
    others = min(len(runs) - 2, KEPT) if a_side == 1 else 0
    figures = changed = headline = 0
    verdicts: Counter[Kind] = Counter()
    visible: dict[str, list[float]] = defaultdict(list)
    for _ in range(TIMES):
        dealt = dice.sample(list(runs), len(runs))
        a, b, rest = dealt[:a_side], dealt[a_side : 2 * a_side], dealt[2 * a_side :]
        found = compare(Side("A", tuple(a)), Side("B", tuple(b)), same=same, kept=rest[:others])
        figures += sum(each.kind != "not-comparable" for each in found.figures)
        changed += len(found.changed)
        headline += any(each.kind == "changed" for each in found.headline)
        verdicts.update(each.kind for each in found.headline)
        for each in found.headline:
            if each.verdict is not None:
                visible[each.name].append(each.verdict.smallest_visible)
    medians = {name: statistics.median(known) for name, known in visible.items()}
    return Alarms(a_side, others, figures, changed, headline, verdicts, medians)
