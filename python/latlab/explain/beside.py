"""The judgement and the proof as plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from latlab.explain.answer import percent
from latlab.explain.bounds import KNOWN_TO, Bound
from latlab.explain.judge import WORTH_JUDGING, Judgement
from latlab.explain.model import USER_CODE, Explained
from latlab.explain.verdict import verdict
from latlab.explain.words import CATEGORIES
from latlab.text import aligned, clean
from latlab.units import format_bytes, format_ns, format_seconds

if TYPE_CHECKING:
    from latlab.explain.bench import Agenda
    from latlab.explain.prove import Measured, Proof

_MOST_FREE: Final = 4
_NOT_SHOWN: Final = frozenset({"compute", "user-cpu", "sleep", "start-and-exit"})
"""Free computing is no advice, and sleep is there on purpose."""


def judged_lines(judgement: Judgement) -> list[str]:
    """A sentence a thing that was judged."""
    return [each.says for each in judgement.judged] + list(judgement.notes)


def sentences(explained: Explained, judgement: Judgement, proof: Proof | None) -> list[str]:
    """The verdict with the judgement; what an experiment showed is a better next step than the ledger's."""
    lines = verdict(explained)
    ends = len(lines) - (1 if lines[-1].startswith("Next: ") else 0)
    lines[ends:ends] = judged_lines(judgement)
    if proof is None:
        return lines
    lines[1:1] = _unusual(proof)
    better = proof_next(proof)
    return lines if better is None else [line for line in lines if not line.startswith("Next: ")] + [better]


def _unusual(proof: Proof) -> list[str]:
    """That the run which is explained is not like those that were made to compare."""
    if proof.is_typical or proof.explained_s is None or proof.unchanged_s is None:
        return []
    took, low, high = (format_ns(1e9 * seconds) for seconds in (proof.explained_s, *proof.unchanged_s))
    waits = ", waits for a CPU left out" if proof.without_waits else ""
    return [
        f"This run was unusual: it took {took}, the unchanged program {low} to {high} when it was "
        f"rerun{waits}. The shares here are those of this run alone, and the experiments have no "
        "bounds: run explain again."
    ]


def bounds_table(judgement: Judgement) -> list[str]:
    """The same as plain lines."""
    cells = bounds_cells(judgement)
    return aligned(cells) if cells else []


def bounds_cells(judgement: Judgement) -> list[tuple[str, ...]]:
    """The bounds below their headings; what saves at most 3 % is not worth a line, and nothing is empty."""
    free = [
        bound
        for bound in judgement.bounds
        if bound.kind == "free" and bound.saving_high >= WORTH_JUDGING and bound.name not in _NOT_SHOWN
    ]
    if judgement.free("user-cpu") is not None:
        # All of user code may be each of these: the verdict says so, once.
        free = [bound for bound in free if bound.name not in USER_CODE]
    if any(bound.name == "file-io" for bound in free):
        free = [bound for bound in free if bound.name not in {"file-io-cpu", "storage-wait"}]
    limits = [bound for bound in judgement.bounds if bound.kind == "limit"]
    shown = [*free[:_MOST_FREE], *limits]
    if not shown:
        return []
    cells: list[tuple[str, ...]] = [("if", "saves", "wall time then")]
    return cells + [(_condition(bound), _saves(bound), _then(bound)) for bound in shown]


def _condition(bound: Bound) -> str:
    what = "file I/O" if bound.name == "file-io" else CATEGORIES.get(bound.name, (bound.name,))[0]
    if bound.kind == "free":
        return f"{what} took no time"
    return {
        "read-memory": "it read from memory",
        "read-disk": "it read as fast as this disk can",
        "fault": "page faults at this machine's normal cost",
        "fault-huge": "its memory came in huge pages",
    }.get(bound.limit, f"{what} at {bound.limit}")


def _saves(bound: Bound) -> str:
    if bound.kind == "free":
        at_most = f"at most {percent(bound.saving_high)}"
        if bound.saving_most > bound.saving_high + KNOWN_TO:
            return f"{at_most}, {percent(bound.saving_most)} if the others wait for it"
        return at_most
    if bound.saving_high < KNOWN_TO:
        return "nothing"
    return f"{percent(bound.saving_low)} to {percent(bound.saving_high)}"


def _then(bound: Bound) -> str:
    low = format_ns(1e9 * bound.low_s)
    if bound.kind == "free":
        return f"at least {low}"
    high = format_ns(1e9 * bound.high_s)
    return low if low == high else f"{low} to {high}"


def about_to(what: Agenda) -> str:
    """What is said before anything is run again."""
    names = "; ".join(each.says for each in what.planned.experiments)
    in_a_row = f", each {what.in_a_row} times in a row" if what.in_a_row > 1 else ""
    return (
        f"--prove: runs the program {what.runs:,} more times, about {format_seconds(what.seconds)}: "
        f"{what.rounds} rounds of it unchanged, unchanged once more, and {names}{in_a_row}. Its output "
        "is discarded; its other effects (files, network, databases) happen each time."
    )


def proof_table(proof: Proof) -> list[str]:
    """The same as plain lines."""
    return aligned(proof_cells(proof))


def proof_cells(proof: Proof) -> list[tuple[str, ...]]:
    """A row an experiment, below the headings."""
    cells: list[tuple[str, ...]] = [("experiment", "took", "saves", "interval", "bound", "")]
    for each in proof.experiments:
        if each.saving is None:
            cells.append((each.name, "–", "–", "", "", clean(each.failed or "", most=80)))
            continue
        cells.append(
            (
                each.name,
                format_ns(1e9 * (each.wall_s or 0)),
                _signed(each.saving),
                _interval(each),
                "" if each.bound is None else percent(each.bound),
                "EXCEEDS ITS BOUND" if each.beats_bound else each.says,
            )
        )
    return cells


def proof_lines(proof: Proof) -> list[str]:
    """What the experiments say together, the most important first."""
    lines = [
        f"The bound of {each.name} is wrong: it allows {percent(each.bound or 0)}, but the "
        f"experiment saved {_signed(each.saving or 0)} ({_interval(each)}). Either explain attributes "
        "too little time to it, or the change saves more than the bound's categories cover (address "
        "translation with huge pages, locality with another allocator)."
        for each in proof.experiments
        if each.beats_bound
    ]
    base = next((each.base_s for each in proof.experiments if each.base_s), None)
    input_ = ""
    if proof.input_files:
        where = {"evicted": "out of memory before each run", "warm": "in memory"}.get(
            proof.baseline, "as it was"
        )
        files = "1 file" if proof.input_files == 1 else f"{proof.input_files} files"
        input_ = f", its input ({files}, {format_bytes(proof.input_bytes)}) {where}"
    if base is not None:
        waits = " Times are without waits for a CPU." if proof.without_waits else ""
        lines.append(f"Unchanged it took {format_ns(1e9 * base)} (median){input_}.{waits}")
    for each in proof.experiments:
        if each.predicted is not None and each.saving is not None:
            low, high = each.predicted
            lines.append(
                f"{each.name}: from the limits a saving of {percent(low)} to {percent(high)} was predicted;"
                f" measured {_signed(each.saving)} ({_interval(each)})."
            )
    few = [each for each in proof.experiments if each.rounds and not each.is_interval]
    if few:
        lines.append(
            f"{few[0].rounds} rounds are too few for a 95 % interval: the table shows their range, "
            "and no conclusion is drawn."
        )
    if proof.interrupted:
        lines.append("The experiments were interrupted: partial results.")
    return [*lines, *proof.left_out]


def proof_next(proof: Proof) -> str | None:
    """The one next step; None where the experiments found none."""
    best = proof.best()
    if best is None:
        return None
    bound = ""
    if best.bound is not None:
        most = percent(best.bound)
        bound = f", more than the bound of {most}" if best.beats_bound else f"; the bound is {most}"
    return (
        f"Next: {best.how}. It saves {percent(best.saving or 0)} ({_interval(best)}), measured over"
        f" {best.rounds} pairs of runs{bound}."
    )


def _interval(each: Measured) -> str:
    return f"{100 * (each.low or 0):+.1f} to {100 * (each.high or 0):+.1f} %"


def _signed(saving: float) -> str:
    return f"{100 * saving:+.1f} %"
