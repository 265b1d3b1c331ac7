"""Whether unit tests of latlab-stats and latlab-record notice a changed program: `make mutants`.

Of all changes that cargo-mutants knows 150 are tried, chosen at random but the same ones as long as the code
is. The outcomes go to benches/results/mutants-rust.csv; the reasons in it stay.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import evidence  # noqa: E402 - found from the project's folder

TABLE = "mutants-rust.csv"
OUT = ROOT / "target/mutants"
PACKAGES = ["--package=latlab-stats", "--package=latlab-record"]
CHOSEN, SEED = 150, 16
#: Compiling takes longest: less optimised and without debug information.
COMPILED = ["profile.dev.package.latlab-stats.opt-level=1", "profile.dev.debug=0"]
#: Tests with many repetitions, which would take four fifths of the time: the others have to suffice.
LONG = [
    "one_group_stays_one",
    "planted_hierarchies_come_out_as_planted",
    "pure_noise_seldom_has_a_change",
]
OUTCOMES = {
    "CaughtMutant": "caught",
    "MissedMutant": "missed",
    "Timeout": "timeout",
    "Unviable": "not compiled",
}


def chosen() -> list[str]:
    """The names of the mutants to try, in the order of the source."""
    command = ["cargo", "mutants", "--list", "--json", *PACKAGES]
    listed = json.loads(subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout)
    places = random.Random(SEED).sample(range(len(listed)), CHOSEN)  # noqa: S311 - it is to be repeatable
    return [listed[place]["name"] for place in sorted(places)]


def outcomes(names: list[str]) -> dict[str, str]:
    """What the unit tests say of each mutant."""
    OUT.mkdir(parents=True, exist_ok=True)
    command = ["cargo", "mutants", *PACKAGES, "--baseline=skip", "--timeout=300", f"--output={OUT}"]
    command += [f"--cargo-arg=--config={setting}" for setting in COMPILED]
    command += [f"--re=^{re.escape(name)}$" for name in names]
    command += ["--", "--lib", "--", *(f"--skip={test}" for test in LONG)]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(OUT / "target"), "LATLAB_FUZZ": "300"}
    # Its exit code says whether any was missed.
    subprocess.run(command, check=False, cwd=ROOT, env=environment)
    tried = json.loads((OUT / "mutants.out/outcomes.json").read_text(encoding="utf-8"))["outcomes"]
    return {each["scenario"]["Mutant"]["name"]: OUTCOMES[each["summary"]] for each in tried}


def rows(found: dict[str, str]) -> list[dict[str, str]]:
    """The table: what became of each mutant."""
    place = ("file", "line", "mutant")
    reasons = {tuple(row[column] for column in place): row["reason"] for row in evidence.read(TABLE)}
    origin = evidence.origin("make mutants")
    table = []
    for name, outcome in found.items():
        where, mutant = name.split(": ", 1)
        path, line, _ = where.split(":")
        reason = reasons.get((path, line, mutant), "") if outcome != "caught" else ""
        table.append(
            {**origin, "file": path, "line": line, "mutant": mutant, "outcome": outcome, "reason": reason}
        )
    return table


def main() -> int:
    """Tries the mutants and writes the table; 1 when fewer than nine in ten are caught."""
    names = chosen()
    tried = outcomes(names)
    # cargo-mutants adds some that were not asked for.
    found = {name: tried[name] for name in names}
    evidence.write(TABLE, rows(found))
    counts = Counter(found.values())
    caught, compiled = counts["caught"] + counts["timeout"], len(found) - counts["not compiled"]
    print(f"{caught} of {compiled} that compile were caught: benches/results/{TABLE}")
    return int(caught < 0.9 * compiled)


if __name__ == "__main__":
    sys.exit(main())
