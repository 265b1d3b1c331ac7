"""Change points of `latlab history` beside those of Apache Otava and ruptures, on series of known changes.

    pip install apache-otava==0.8.0 ruptures==1.1.10
    .venv/bin/python benches/history.py [--save]

All look for changes of more than 3 %. Otava has its defaults (window 50, p 0.001), then p 0.0001, at which it
has about as few false changes as latlab. ruptures is PELT of the logarithms; its penalty is that of the
Bayesian information criterion, at the noise that the series was made with, which the others do not know. A
change counts as found within two runs of its place, as false elsewhere. Of a drift any change is found. There
are 100 series of each kind for each of three noises: a run deviates by 1, 3 or 8 %. `--save` keeps the table
in benches/results.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from latlab.compare.series import judged

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import evidence

RESULT: Final = "history-changes.csv"
#: Series of each kind and noise.
TIMES: Final = 100
NOISES: Final = (0.01, 0.03, 0.08)
#: Changes that do not matter, as a share.
SAME: Final = 0.03
#: Runs between a change and where it is found, at most.
_NEAR: Final = 2
#: Finds the places of the changes of a series, whose noise it is told.
Finder = Callable[[Sequence[float], float], list[int]]


@dataclass(frozen=True)
class Golden:
    """A kind of series.

    Attributes:
        levels: So many runs at each level.
        drift: By how much the last run is above what its level says, as a share.
        spikes: Runs that are three times as slow.
        heavy: Whether noise is Student's t with four degrees of freedom, else normal.
        wider: Noise after the first change, in units of that before.
    """

    levels: tuple[tuple[int, float], ...]
    drift: float = 0.0
    spikes: tuple[int, ...] = ()
    heavy: bool = False
    wider: float = 1.0

    @property
    def changes(self) -> list[int]:
        """The first runs after each change."""
        return list(accumulate(count for count, _ in self.levels))[:-1]

    def values(self, dice: random.Random, noise: float) -> list[float]:
        """A series."""
        found: list[float] = []
        total = sum(count for count, _ in self.levels)
        for number, (count, level) in enumerate(self.levels):
            for _ in range(count):
                # Divided by the root of a gamma variate a normal one is Student's t.
                scale = math.sqrt(dice.gammavariate(2, 0.5)) if self.heavy else 1.0
                own = noise * (self.wider if number else 1.0) * dice.gauss(0, 1) / scale
                rise = math.log1p(self.drift) * len(found) / (total - 1)
                found.append(level * math.exp(own + rise) * (3 if len(found) in self.spikes else 1))
        return found


GOLDEN: Final = {
    "nothing, 30 runs": Golden(((30, 1.0),)),
    "nothing, 100 runs": Golden(((100, 1.0),)),
    "nothing, 300 runs": Golden(((300, 1.0),)),
    "nothing, heavy tails": Golden(((100, 1.0),), heavy=True),
    "5 %": Golden(((20, 1.0), (20, 1.05))),
    "10 %": Golden(((15, 1.0), (15, 1.1))),
    "30 %": Golden(((15, 1.0), (15, 1.3))),
    "30 %, heavy tails": Golden(((15, 1.0), (15, 1.3)), heavy=True),
    "30 % four runs ago": Golden(((26, 1.0), (4, 1.3))),
    "three steps of 10 %": Golden(((20, 1.0), (20, 1.1), (20, 1.21), (20, 1.331))),
    "30 % for 6 of 30 runs": Golden(((12, 1.0), (6, 1.3), (12, 1.0))),
    "30 % for 5 of 200 runs": Golden(((100, 1.0), (5, 1.3), (95, 1.0))),
    "30 % of 300 runs, kept": Golden(((200, 1.0), (100, 1.3))),
    "a kernel, 10 % and twice the noise": Golden(((20, 1.0), (20, 1.1)), wider=2.0),
    "drift of 40 %": Golden(((40, 1.0),), drift=0.4),
    "a spike": Golden(((30, 1.0),), spikes=(12,)),
    "two spikes side by side": Golden(((30, 1.0),), spikes=(12, 13)),
    "a spike in twenty": Golden(((100, 1.0),), spikes=(9, 31, 47, 70, 93)),
    "10 % among spikes": Golden(((30, 1.0), (30, 1.1)), spikes=(9, 31, 47)),
}


def ours(values: Sequence[float], _: float = 0.0) -> list[int]:
    """As `latlab history --same 3%` finds them."""
    logs = [math.log(value) for value in values]
    return [change.place for change in judged(logs, math.log1p(SAME))[1]]


def otavas(values: Sequence[float], _: float = 0.0, *, p: float = 0.001) -> list[int]:
    """As Apache Otava finds them."""
    from otava.analysis import compute_change_points  # noqa: PLC0415 - not needed for ours

    found, _weak = compute_change_points(list(values), window_len=50, max_pvalue=p, min_magnitude=SAME)
    return [int(change.index) for change in found]


def ruptures(values: Sequence[float], noise: float) -> list[int]:
    """As PELT finds them (Killick et al. 2012)."""
    import numpy as np  # noqa: PLC0415 - not needed for ours
    import ruptures as rpt  # noqa: PLC0415 - see above

    logs = np.log(np.asarray(values))
    # A change is a place and a level: two parameters, and the first level one.
    price = 3 * math.log(len(logs)) * noise**2
    return [int(place) for place in rpt.Pelt(model="l2", min_size=3, jump=1).fit_predict(logs, price)[:-1]]


FINDERS: Final[dict[str, Finder]] = {
    "latlab": ours,
    "otava": otavas,
    "otava_strict": functools.partial(otavas, p=0.0001),
    "ruptures": ruptures,
}


def scores(golden: Golden, noise: float, finder: Finder, times: int = TIMES) -> tuple[int, int]:
    """Changes found and false ones, over series that do not depend on who looks at them."""
    found = false = 0
    for seed in range(times):
        dice = random.Random(seed)  # noqa: S311 - noise
        places = finder(golden.values(dice, noise), noise)
        if golden.drift:
            found += bool(places)
            continue
        hits = [any(abs(place - change) <= _NEAR for place in places) for change in golden.changes]
        found += sum(hits)
        false += len(places) - sum(hits)
    return found, false


def row(name: str, finders: dict[str, Finder]) -> dict[str, object]:
    """A row of the table: what each finds, and what it finds besides, at each noise."""
    golden = GOLDEN[name]
    made = TIMES * (1 if golden.drift else len(golden.changes))
    cells: dict[str, object] = {"series": name, "changes": made}
    for who, finder in finders.items():
        found, false = zip(*(scores(golden, noise, finder) for noise in NOISES), strict=True)
        cells[f"{who}_found"] = " ".join(map(str, found)) if made else "-"
        cells[f"{who}_false"] = "-" if golden.drift else " ".join(map(str, false))
    return cells


def main() -> None:
    """Prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="keep the table in benches/results")
    asked = parser.parse_args()
    rows = []
    for name in GOLDEN:
        rows.append(row(name, FINDERS))
        print("  ".join(f"{key}: {value}" for key, value in rows[-1].items()), flush=True)
    if asked.save:
        origin = evidence.origin("benches/history.py")
        evidence.write(RESULT, [each | origin for each in rows])


if __name__ == "__main__":
    main()
