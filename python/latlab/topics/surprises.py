"""What is most surprising about a machine: rules over a run, of which the strongest are shown.

Every sentence is made of figures of the run; a rule without its data says nothing. A score is the binary
logarithm of the factor by which the machine departs from what a programmer would assume, times a weight that
says how much the assumption costs when it is wrong. Scores only order the sentences: they are no figure of
merit and are not printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from latlab import units
from latlab.run.causes import slow_causes
from latlab.run.cpus import differing
from latlab.run.findings import findings, positive
from latlab.run.ladder import curve_findings, reported_caches
from latlab.topics import loaded, noise
from latlab.view.topic import Surprise

if TYPE_CHECKING:
    from latlab.run.model import Record
    from latlab.run.run import Run
    from latlab.run.rung import Rung


def surprises(run: Run, most: int = 3) -> list[Surprise]:
    """The strongest surprises of a run, strongest first; fewer than `most` when there are no more."""
    facts = _Facts(run)
    found = [surprise for rule in RULES if (surprise := rule(facts)) is not None]
    return sorted(found, key=lambda surprise: -surprise.score)[:most]


_DISTURBED: Final = "disturbed"


class _Facts:
    """What the rules look at, gathered once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.findings = curve_findings(run)
        self.rungs: dict[str, Rung] = {rung.key: rung for rung in run.ladder()}
        self.clock = run.header.clock

    def ns(self, key: str) -> float | None:
        rung = self.rungs.get(key)
        if rung is None or any(flag.startswith(_DISTURBED) for flag in rung.flags):
            return None
        return rung.latency_p50_ns

    def records(self, probe: str, kind: str = "batch_mean", *, disturbed: bool = False) -> Iterator[Record]:
        """Those with a figure that is the machine's: what was disturbed may be the disturbance's."""
        for record in self.run.records:
            if (
                record.probe == probe
                and record.kind == kind
                and record.value
                and (disturbed or not any(flag.startswith(_DISTURBED) for flag in record.flags))
            ):
                yield record

    def rates(self, operation: str, threads: int) -> dict[int, float]:
        """Bytes a second by working set."""
        return {
            record.point.working_set_bytes or 0: record.value or 0.0
            for record in self.records("memory.bandwidth")
            if record.summary
            and record.point.operation == operation
            and (record.point.threads or 1) == threads
        }

    def beyond_caches(self) -> int:
        """Four times the largest reported cache: where RAM surely answers; 256 MiB when no cache is known."""
        return 4 * max(reported_caches(self.run).values(), default=64 * 2**20)


def _huge_pages_are_small(facts: _Facts) -> Surprise | None:
    effective = facts.findings.get("effective_page_bytes")
    obtained = any(
        check.ok and "huge" in check.name
        for record in facts.records("memory.load.dependent")
        if record.point.pages == "huge"
        for check in record.checks
    )
    if not obtained or not isinstance(effective, int | float) or not 0 < effective < 2**21:
        return None
    text = (
        f"Huge pages are {units.format_bytes(effective)} in hardware: the kernel gave huge pages, the TLB"
        " holds small ones. The host maps this guest's memory in small pages, so huge pages gain "
        "little here."
    )
    return Surprise("huge-pages-are-small", 5.0, text)


def _last_cache_far_below_nominal(facts: _Facts) -> Surprise | None:
    levels = facts.findings.sections("levels")
    last = next((level for level in reversed(levels) if level.text("name") in {"L3", "L4"}), None)
    if last is None:
        return None
    reported, end = last.number("reported_bytes"), last.estimate("end_bytes")
    bracket = end.ends if end else None
    if not reported or not bracket or not all(1 <= end < 2**63 for end in bracket):
        return None
    if reported < 1.5 * bracket[1]:
        return None
    low, high = (units.format_bytes(end) for end in bracket)
    text = (
        f"Of the {units.format_bytes(reported)} of {last.text('name')} that the CPU reports, {low} to "
        f"{high} are effective: size working sets to the effective capacity."
    )
    middle = math.sqrt(bracket[0] * bracket[1])
    return Surprise("last-cache-below-nominal", 2 * math.log2(reported / middle), text)


def _translation_costs(facts: _Facts) -> Surprise | None:
    local, random = facts.ns("RAM"), facts.ns("RAM+TLB")
    if local is None or random is None or random < 1.15 * local:
        return None
    share = units.format_percent((random - local) / random)
    text = (
        f"{share} of a random RAM access is avoided by programs that stay within 64 pages at a time: "
        f"{units.format_ns(random)} over the whole array, {units.format_ns(local)} within 64 pages. Their "
        "addresses are already translated, and the prefetcher loads some neighbouring lines."
    )
    return Surprise("translation-costs", 4 * math.log2(random / local), text)


def _clock_is_coarser_than_caches(facts: _Facts) -> Surprise | None:
    quantum, l1 = facts.clock.quantum_ns, facts.ns("L1")
    if not l1 or quantum < 3 * l1:
        return None
    text = (
        f"This clock steps by {units.format_ns(quantum, digits=2)}, {quantum / l1:.0f} times an L1 "
        "hit: it cannot time a single cache access."
    )
    return Surprise("clock-coarser-than-caches", 0.7 * math.log2(quantum / l1), text)


def _order_matters(facts: _Facts) -> Surprise | None:
    by_order: dict[str, Record] = {}
    for record in facts.records("memory.stride"):
        order = record.point.order or ""
        best = by_order.get(order)
        stride = record.point.stride_bytes or 0
        if order != "strided" and (best is None or _size(record) > _size(best)) and stride <= 64:  # noqa: PLR2004 - a line
            by_order[order] = record
    sequential, random = by_order.get("sequential"), by_order.get("random")
    if sequential is None or random is None or _size(sequential) != _size(random):
        return None
    slow, fast = _p50(random), _p50(sequential)
    if slow < 2 * fast:
        return None
    text = (
        f"In {units.format_bytes(_size(random))}, an access in random order costs {slow / fast:,.0f} "
        f"times one in sequential order ({units.format_ns(slow)} against {units.format_ns(fast)}): "
        "prefetching and whole cache lines hide the difference."
    )
    return Surprise("order-matters", 0.45 * math.log2(slow / fast), text)


def _pokes_have_a_tail(facts: _Facts) -> Surprise | None:
    limit_ns = 10_000.0
    # What disturbed them is what is told here, with its causes.
    pokes = [
        r
        for r in facts.records("memory.poke", "per_op", disturbed=True)
        if _size(r) and r.tail_threshold is not None
    ]
    samples = sum(record.samples for record in pokes)
    # From the histograms: of the time-stamped samples only the slowest few thousand are kept.
    slow = sum(count for record in pokes for low, _, count in record.buckets() if low >= limit_ns)
    seconds = sum(block.duration_ns for record in pokes for block in record.blocks) / 1e9
    if slow < 10 or not samples:  # noqa: PLR2004 - a rate of fewer than ten events is a guess
        return None
    worst = max(record.summary.max or 0.0 for record in pokes if record.summary)
    a_second = f", about {slow / seconds:,.0f} a second" if seconds > 0 else ""
    causes = slow_causes(pokes, limit_ns)
    shares = f": {causes.shares()}" if causes else ""
    text = (
        f"One poke in {samples / slow:,.0f} takes over 10 µs{a_second}{shares}; the slowest of"
        f" {units.format_count(samples)} took {units.format_ns(worst)}. These are interruptions, not memory."
    )
    return Surprise(
        "pokes-have-a-tail", 0.35 * math.log2(worst / max(facts.ns("RAM+TLB") or 100.0, 1.0)), text
    )


def _streaming_stores(facts: _Facts) -> Surprise | None:
    plain, streaming = facts.rates("write", 1), facts.rates("write-nt", 1)
    size = max(set(plain) & set(streaming), default=0)
    if size < facts.beyond_caches() or not plain[size]:
        return None
    factor = streaming[size] / plain[size]
    if factor < 1.15:  # noqa: PLR2004 - less is within what a busy host moves
        return None
    text = (
        f"Writing {units.format_bytes(size)} past the caches (non-temporal stores) is {factor:.1f} times as"
        f" fast as ordinary writing ({units.format_rate(streaming[size])} against"
        f" {units.format_rate(plain[size])} on one thread): an ordinary store first reads the line that it"
        " overwrites."
    )
    return Surprise("streaming-stores", 3 * math.log2(factor), text)


def _threads_share_memory(facts: _Facts) -> Surprise | None:
    counts = {
        record.point.threads or 1
        for record in facts.records("memory.bandwidth")
        if record.point.operation == "read"
    }
    most = max(counts, default=1)
    one, many = facts.rates("read", 1), facts.rates("read", most)
    size = max(set(one) & set(many), default=0)
    if most < 2 or size < facts.beyond_caches() or not one[size]:  # noqa: PLR2004 - nothing to compare
        return None
    factor = many[size] / one[size]
    if factor > 0.75 * most:
        return None
    text = (
        f"{most} threads read RAM only {factor:.1f} times as fast as one ({units.format_rate(many[size])}"
        f" against {units.format_rate(one[size])}): memory-bound code gains little from more threads here."
    )
    return Surprise("threads-share-memory", 2 * math.log2(most / factor), text)


def _copying_costs(facts: _Facts) -> Surprise | None:
    read, copy = facts.rates("read", 1), facts.rates("copy", 1)
    size = max(set(read) & set(copy), default=0)
    if size < facts.beyond_caches() or not copy[size]:
        return None
    # A copied byte counts twice in a copy's rate: it is read and written.
    factor = read[size] / (copy[size] / 2)
    if factor < 2.5:  # noqa: PLR2004 - two is what anybody would assume
        return None
    text = (
        f"Copying a byte of RAM costs {factor:.1f} times reading it ({units.format_rate(copy[size] / 2)}"
        f" copied against {units.format_rate(read[size])} read on one thread)."
    )
    return Surprise("copying-costs", 2 * math.log2(factor / 2), text)


def _clocks_differ(facts: _Facts) -> Surprise | None:
    costs = {record.point.clock or "?": _p50(record) for record in facts.records("clock.read")}
    usable = {name: cost for name, cost in costs.items() if not name.startswith("python.")}
    if len(usable) < 2:  # noqa: PLR2004 - nothing to compare
        return None
    fast, slow = min(usable, key=usable.__getitem__), max(usable, key=usable.__getitem__)
    factor = usable[slow] / usable[fast]
    if factor < 8:  # noqa: PLR2004 - a vDSO call against a counter is 3 to 6
        return None
    text = (
        f"Asking {slow} for the time costs {units.format_ns(usable[slow])}, {factor:.0f} times {fast} "
        f"({units.format_ns(usable[fast])})."
    )
    return Surprise("clocks-differ", 0.5 * math.log2(factor), text)


def _neighbours_were_heard(facts: _Facts) -> Surprise | None:
    disturbed, blocks = facts.run.disturbed_blocks
    if not disturbed or disturbed < 0.05 * blocks:
        return None
    text = (
        f"{disturbed:,} of {blocks:,} blocks were disturbed: memory was temporarily slower, or a "
        "thread was interrupted. Something else uses this machine's caches or CPUs."
    )
    return Surprise("neighbours-were-heard", 2 + 10 * disturbed / blocks, text)


def _a_miss_is_many_instructions(facts: _Facts) -> Surprise | None:
    ghz, ram = facts.findings.get("core_ghz"), facts.ns("RAM+TLB") or facts.ns("RAM")
    if not isinstance(ghz, int | float) or ram is None or ghz <= 0:
        return None
    text = (
        f"While one random load waits for RAM ({units.format_ns(ram)}), this core could do {ghz * ram:,.0f} "
        "additions in a row."
    )
    return Surprise("a-miss-is-many-additions", 0.5, text)


#: From there on a program that allocates many small things is another program when it takes memory in one
#: block: a third of the time.
_ARENA_GAIN = 3.0


def _touched_memory_beats_malloc(facts: _Facts) -> Surprise | None:
    costs = {record.point.operation or "": _p50(record) for record in facts.records("alloc.nodes")}
    malloc, touched = costs.get("malloc"), costs.get("arena-touched")
    if not malloc or not touched or malloc < _ARENA_GAIN * touched:
        return None
    text = (
        f"A list node from malloc costs {units.format_ns(malloc)}, {malloc / touched:.1f} times one "
        f"from a block that was touched before ({units.format_ns(touched)}): the cost is the kernel's "
        "first touch of each page and the allocator's own work, not writing the node."
    )
    return Surprise("touched-memory-beats-malloc", 2 * math.log2(malloc / touched), text)


#: A mode below a tenth of all faults is a tail; two modes less than twice apart are one.
_MODE_SHARE, _MODES_APART = 0.1, 2.0


def _faults_have_two_prices(facts: _Facts) -> Surprise | None:
    for kind in findings(facts.run, "vm.fault").sections("kinds"):
        if kind.text("operation") != "first-write" or kind.text("pages") != "4k":
            continue
        modes = [
            (at, share, mode.text("likely") or "")
            for mode in kind.sections("modes")
            if (at := positive(mode, "p50_ns")) and (share := positive(mode, "share")) and share <= 1
        ]
        large = sorted(mode for mode in modes if mode[1] >= _MODE_SHARE)
        if len(large) < 2 or large[-1][0] < _MODES_APART * large[0][0]:  # noqa: PLR2004 - two modes
            continue
        (fast, fast_share, _), (slow, slow_share, likely) = large[0], large[-1]
        reason = f" The slow ones likely are: {likely}." if likely else ""
        text = (
            f"The first touch of a page has two costs here: {units.format_ns(fast)} "
            f"({units.format_percent(fast_share)}) and {units.format_ns(slow)} "
            f"({units.format_percent(slow_share)}).{reason}"
        )
        return Surprise("faults-have-two-prices", 2.5 * math.log2(slow / fast), text)
    return None


#: Linux lets ordinary sleeps end up to 50 us late (PR_SET_TIMERSLACK); below 40 us none of that was used.
_LATE_NS = 40_000.0
#: A sleep that takes half as long again as was asked for is not the sleep that was asked for.
_LATE_SHARE = 0.5


def _sleeps_are_late(facts: _Facts) -> Surprise | None:
    late = [
        (record.point.sleep_ns, _p50(record))
        for record in facts.records("kernel.timer", "per_op")
        if record.point.operation in {None, "nanosleep"} and record.point.sleep_ns
    ]
    late = [(asked, over) for asked, over in late if over >= _LATE_NS and over >= _LATE_SHARE * (asked or 1)]
    if not late:
        return None
    asked, over = min(late)
    asked = asked or 1
    slack = positive(findings(facts.run, "kernel.timer"), "slack_ns")
    known = f"; {units.format_ns(slack)} of that is" if slack is not None and slack < over else ", with"
    text = (
        f"A sleep of {units.format_ns_as_asked(asked)} takes {units.format_ns(asked + over)}{known} the "
        "timer slack with which Linux groups the wake-ups of ordinary threads (50 µs unless prctl "
        "PR_SET_TIMERSLACK changes it)."
    )
    return Surprise("sleeps-are-late", 0.6 * math.log2((asked + over) / asked), text)


#: Two writers slow each other by the way of a line between cores; three times is beyond what noise does.
_SHARING_FACTOR = 3.0


def _false_sharing_costs(facts: _Facts) -> Surprise | None:
    found = []
    for entry in findings(facts.run, "memory.false_sharing").sections("operations"):
        same, own = positive(entry, "same_line_ns"), positive(entry, "own_line_ns")
        if same is not None and own is not None and same >= _SHARING_FACTOR * own:
            found.append((same / own, same, own, entry.text("operation")))
    if not found:
        return None
    factor, same, own, operation = max(found)
    what = "add atomically to" if operation == "add" else "write"
    text = (
        f"Two threads that {what} different variables on one cache line need {units.format_ns(same)} "
        f"each time, {factor:.1f} times as long as on separate lines ({units.format_ns(own)})."
    )
    return Surprise("false-sharing-costs", 1.2 * math.log2(factor), text)


def _cpus_differ(facts: _Facts) -> Surprise | None:
    found = differing(facts.run)
    if found is None:
        return None
    text = f"{found.title[:1].upper()}{found.title[1:]}. {found.why}: {found.remedy}."
    return Surprise("cpus-differ", 10 * math.log2(found.ratio), text)


Rule = Callable[[_Facts], Surprise | None]

RULES: tuple[Rule, ...] = (
    _cpus_differ,
    _huge_pages_are_small,
    _last_cache_far_below_nominal,
    _translation_costs,
    _clock_is_coarser_than_caches,
    _order_matters,
    _pokes_have_a_tail,
    _streaming_stores,
    _threads_share_memory,
    _copying_costs,
    _touched_memory_beats_malloc,
    _faults_have_two_prices,
    _sleeps_are_late,
    _false_sharing_costs,
    lambda facts: loaded.TOPIC.surprise(facts.run),
    lambda facts: noise.TOPIC.surprise(facts.run),
    _clocks_differ,
    _neighbours_were_heard,
    _a_miss_is_many_instructions,
)


def _size(record: Record) -> int:
    return record.point.working_set_bytes or 0


def _p50(record: Record) -> float:
    return record.value or 0.0
