"""Every experiment, figure and question of the documents, one row each, against the lessons.

A row names what the lesson's result must hold: a cell (`table.row.column`), a whole table (`table`), a
picture (`picture:name`), a misled claim (`misled:words`), an answer (`answer:words`), a reason
(`reason:words`), a series (`series:name`). A row without any is open: a test says how many those are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from latlab import lessons
from latlab.lessons.model import Result

Found = Callable[[str], Result]

LESSON = "a lesson, “Understanding Latency”"
NOTEBOOK = "a course notebook, “measuring memory latency”"
LIST = "part 1 of a learning path on memory latency"
ARTICLE = "an article, “I/O is no longer the bottleneck”"
POST = "a post, “Disk Bandwidth”"


@dataclass(frozen=True)
class Row:
    """One thing that a document does, shows or asks."""

    document: str
    what: str
    lesson: str
    holds: tuple[str, ...] = ()


ROWS = (
    # ------------------------------------------------------------------------------------- the lesson
    Row(LESSON, "question: one 100 MB file against 100 of 1 MB", "small-files", ("question", "answer:")),
    Row(
        LESSON,
        "question: by how many orders of magnitude is disk slower than RAM",
        "latency-ladder",
        ("orders.magnitude.native",),
    ),
    Row(LESSON, "question: what does creating a list cost", "list-cost", ("create", "picture:by_way")),
    Row(LESSON, "disk cache, then RAM: sequential and large reads are cheaper", "small-files", ("disk",)),
    Row(
        LESSON,
        "Python's io is buffered by itself",
        "small-files",
        ("habits.buffered.python", "habits.unbuffered.python", "habits.buffer_ratio.python"),
    ),
    Row(LESSON, "a path is turned into an address", "small-files", ("steps.lookup.python",)),
    Row(LESSON, "or an exception is raised", "small-files", ("steps.missing.python",)),
    Row(
        LESSON,
        "scattered files are slower than one",
        "small-files",
        ("disk.warm_scattered.python", "disk.order_ratio.python"),
    ),
    Row(LESSON, "1 x 10 MB, write: 0.00198 s", "small-files", ("original.write_one.python",)),
    Row(LESSON, "1000 x 10 KB, write: 0.14886 s", "small-files", ("original.write_many.python",)),
    Row(LESSON, "1 x 10 MB, read: 0.00478 s", "small-files", ("original.read_one.python",)),
    Row(LESSON, "1000 x 10 KB, read: 2.50339 s", "small-files", ("original.read_many.python",)),
    Row(LESSON, "write ratio 75.1", "small-files", ("original.write_ratio.python",)),
    Row(LESSON, "read ratio 523.9", "small-files", ("original.read_ratio.python", "reason:523.9")),
    Row(LESSON, "repeated runs keep the order of magnitude", "small-files", ("misled:repeated runs",)),
    Row(LESSON, "one file read again and again against kept", "small-files", ("habits.keep_ratio.python",)),
    Row(
        LESSON,
        "upload or download of 1 GB as one file or thousands",
        "downloads",
        (
            *("gigabyte.one.download", "gigabyte.thousand.download", "gigabyte.thousand.upload"),
            *("gigabyte.one.upload", "answer:1 GB", "shapes"),
        ),
    ),
    Row(
        LESSON,
        "10 files sequentially: 3.225 s",
        "downloads",
        ("original.sequential.python", "original.sequential.requests"),
    ),
    Row(
        LESSON,
        "10 files with a pool of 6: 0.285 s",
        "downloads",
        (
            *("original.pool.python", "original.pool.requests", "original.speed_up_ratio.python"),
            *("misled:3.225 s and 0.285 s", "picture:workers", "workers.w6.most_ratio"),
        ),
    ),
    Row(
        LESSON,
        "order of completion",
        "downloads",
        ("order.place_1.pool", "order.place_10.pool_published", "picture:completion", "answer:finish vary"),
    ),
    Row(
        LESSON,
        "errors handled for each file",
        "downloads",
        (
            "errors.file_12.urllib",
            "errors.file_15.urllib",
            "errors.file_17.urllib",
            "misled:by exception",
        ),
    ),
    Row(
        LESSON,
        "one large download against many small",
        "downloads",
        ("shapes.many_ratio.download", "shapes.many_ratio.upload"),
    ),
    Row(
        LESSON,
        "the pool always ran second",
        "downloads",
        (
            *("second.as_document_ratio.python", "second.reversed_ratio.python", "second.warm_ratio.python"),
            *("misled:always runs second", "connections.mixed_ratio.python"),
        ),
    ),
    Row(
        LESSON,
        "the overhead of each transfer, and the bandwidth that many small files leave unused",
        "downloads",
        ("reason:round trips", "connections.kept_ratio.python"),
    ),
    Row(
        LESSON,
        "chart: L1, L2, L3, RAM, SSD, HDD, packet, log scale",
        "latency-ladder",
        ("original", "picture:ladder"),
    ),
    Row(LESSON, "1 ns to 140 ms", "latency-ladder", ("original.L1.native", "original.packet.native")),
    Row(
        LESSON,
        "bandwidth: L1 and L2 1 TB/s",
        "latency-ladder",
        ("bandwidth.L1.native", "bandwidth.L2.native"),
    ),
    Row(LESSON, "bandwidth: RAM 100 GB/s", "latency-ladder", ("bandwidth.RAM.native",)),
    Row(LESSON, "bandwidth: SSD up to 32 GB/s", "latency-ladder", ("bandwidth.SSD.native",)),
    Row(LESSON, "bandwidth: HDD up to 150 MB/s", "latency-ladder", ("bandwidth.HDD.native",)),
    Row(LESSON, "allocating against reusing", "list-cost", ("reuse.reuse_ratio.python", "answer:recreating")),
    Row(LESSON, "deallocation", "list-cost", ("free",)),
    Row(LESSON, "garbage collection", "list-cost", ("reuse.collector_ratio.python", "misled:garbage")),
    Row(
        LESSON,
        "heat equation with a fresh grid: 55.4675 s",
        "heat-equation",
        ("original.total_published.python",),
    ),
    Row(
        LESSON,
        "line profile with a fresh grid: 39.3 % in the allocation",
        "heat-equation",
        ("profile_fresh", "original.allocation_share.python"),
    ),
    Row(
        LESSON,
        "heat equation with swapped buffers: 34.0597 s",
        "heat-equation",
        ("original.total_swapped.python",),
    ),
    Row(LESSON, "line profile with swapped buffers", "heat-equation", ("profile_swapped",)),
    Row(
        LESSON, "saving of 39 %", "heat-equation", ("original.saving.python", "original.saving_fresh.python")
    ),
    Row(
        LESSON,
        "the grid is a thousand times too large",
        "heat-equation",
        ("grids", "misled:multiplies each row"),
    ),
    # ----------------------------------------------------------------------------------- the notebook
    Row(
        NOTEBOOK,
        "create_file: time to allocate a block, and to write it so often",
        "random-pokes",
        ("creation",),
    ),
    Row(
        NOTEBOOK,
        "pokes in a file and in memory of 0, 1 KB, 1 MB, 1 GB; k = 100,000",
        "random-pokes",
        ("original",),
    ),
    Row(
        NOTEBOOK,
        "10 GB where it fits",
        "random-pokes",
        ("original.bytes_10000000000.memory_mean", "original.bytes_10000000000.file_mean"),
    ),
    Row(NOTEBOOK, "table of mean and deviation", "random-pokes", ("original",)),
    Row(
        NOTEBOOK,
        "the 1,000 largest of each",
        "random-pokes",
        ("series:memory_largest_1000000", "series:file_largest_1000000"),
    ),
    Row(
        NOTEBOOK,
        "histogram against a normal, below and above 1 us",
        "random-pokes",
        ("picture:histogram_below", "picture:histogram_from"),
    ),
    Row(NOTEBOOK, "fraction of zeros: 0.00252", "random-pokes", ("distribution.memory_1000000.zeros",)),
    Row(NOTEBOOK, "1-CDF, linear, normal and measured", "random-pokes", ("picture:ccdf_linear",)),
    Row(NOTEBOOK, "1-CDF, log-log, normal and measured", "random-pokes", ("picture:ccdf_loglog",)),
    Row(
        NOTEBOOK,
        "one figure with every size, file and memory, as PDF",
        "random-pokes",
        ("picture:all_sizes",),
    ),
    Row(NOTEBOOK, "sequential time per byte at 0.001, 1, 1000 MB", "random-pokes", ("sequential",)),
    Row(
        NOTEBOOK,
        "time per byte is time per element, eight times off",
        "random-pokes",
        ("misled:integers of eight bytes",),
    ),
    Row(NOTEBOOK, "latency is not bandwidth: many at once", "random-pokes", ("summary.overlap_ratio.here",)),
    Row(
        NOTEBOOK,
        "10 GB in 8.9 s; 1 TB in about 1000 s",
        "random-pokes",
        ("summary.terabyte.here", "misled:8.9 s"),
    ),
    Row(NOTEBOOK, "system description", "random-pokes", ("system",)),
    Row(NOTEBOOK, "one report file", "random-pokes", ("system", "original", "sequential")),
    Row(
        NOTEBOOK,
        "zero is not zero; time stamps could not resolve what they timed",
        "random-pokes",
        ("clocks.time.step", "misled:time.time()"),
    ),
    Row(
        NOTEBOOK,
        "question: a 10 us delay once every 10,000; a context switch?",
        "random-pokes",
        ("ten_microseconds",),
    ),
    Row(NOTEBOOK, "blank: SSD random access latency is ...", "random-pokes", ("summary.disk_latency.here",)),
    Row(NOTEBOOK, "ranges of memory latency: 1 ns to 1 us", "random-pokes", ("summary.memory_range.here",)),
    Row(NOTEBOOK, "ranges of SSD latency: 10 us to 100 ms", "random-pokes", ("summary.disk_range.here",)),
    Row(
        NOTEBOOK,
        "throughput: memory 100 MB/s, SSD 1 GB/s, disk (blank)",
        "random-pokes",
        ("summary.memory_rate.here", "summary.disk_rate.here"),
    ),
    Row(NOTEBOOK, "long tails need log-log", "random-pokes", ("answer:log-log",)),
    Row(
        NOTEBOOK,
        "moving data is the bottleneck, not calculation",
        "random-pokes",
        ("bottleneck.python_moving.here", "bottleneck.native_moving.here", "answer:not calculation"),
    ),
    Row(
        NOTEBOOK,
        "moving data is the bottleneck: against the article that says it is not",
        "io-bottleneck",
        ("movement", "answer:moving data is"),
    ),
    Row(NOTEBOOK, "the sequel: more accurate measurements", "random-pokes", ("batches",)),
    # ---------------------------------------------------------------------------------- the learning path
    Row(
        LIST,
        "1,000,000 nodes: 29473 us",
        "linked-list",
        ("original.creation.c", "original.creation.native", "original.creation.python", "picture:ways"),
    ),
    Row(LIST, "malloc 24.62 %", "linked-list", ("symbols.malloc.share", "parts.allocator.share")),
    Row(LIST, "_int_malloc 23.70 %", "linked-list", ("symbols.int_malloc.share",)),
    Row(
        LIST,
        "clearing pages 17.14 %",
        "linked-list",
        ("symbols.clear_page.share", "parts.page_clearing.share"),
    ),
    Row(
        LIST,
        "get_page_from_freelist 5.77 %",
        "linked-list",
        ("symbols.get_page_from_freelist.share", "parts.page_faults.share"),
    ),
    Row(
        LIST,
        "unmap_page_range 4.01 %",
        "linked-list",
        ("symbols.unmap_page_range.share", "parts.start_and_exit.share"),
    ),
    Row(LIST, "free_unref_page_list 3.34 %", "linked-list", ("symbols.free_unref_page_list.share",)),
    Row(
        LIST,
        "main 2.03 %: almost nothing to do with the core",
        "linked-list",
        ("symbols.main.share", "parts.main.share", "misled:almost nothing"),
    ),
    Row(LIST, "where those 30 ms are spent: of the whole run", "linked-list", ("misled:those 30ms",)),
    Row(
        LIST,
        "timing one node alone has a large error",
        "linked-list",
        ("alone", "answer:statistical error margin"),
    ),
    Row(
        LIST,
        "is there a way to improve it: linear allocator",
        "linked-list",
        ("ways.linear.created", "ways.linear.gain_ratio", "answer:a way to improve"),
    ),
    Row(
        LIST,
        "alignment and misalignment",
        "linked-list",
        ("ways.aligned.created", "ways.across.created", "walking.across.shuffled"),
    ),
    Row(
        LIST,
        "prefetch",
        "linked-list",
        ("ways.prefetched.created", "ways.populated.created", "ways.huge.created", "walking.close.ahead"),
    ),
    Row(LIST, "pool", "linked-list", ("ways.pool.created", "ways.again.created")),
    Row(
        LIST,
        "other allocators",
        "linked-list",
        ("ways.jemalloc.created", "ways.tcmalloc.created", "ways.mimalloc.created", "ways.top_pad.created"),
    ),
    Row(
        LIST,
        "the node is 32 bytes, and 21 bytes go into 20",
        "linked-list",
        ("overflow", "misled:21 bytes", "misled:pointer and 20 bytes"),
    ),
    Row(LIST, "the last node is never freed", "linked-list", ("misled:free_nodes",)),
    # ---------------------------------------------------------------------------------------- the article
    Row(
        ARTICLE,
        "question: what is the bottleneck in your program",
        "io-bottleneck",
        ("share", "answer:I/O is"),
    ),
    Row(ARTICLE, "read, not cached: 1.7 GB/s", "io-bottleneck", ("disk.read_cold.python",)),
    Row(ARTICLE, "read, cached: 10.8 GB/s", "io-bottleneck", ("disk.read_cached.python",)),
    Row(ARTICLE, "write with sync: 1.2 GB/s", "io-bottleneck", ("disk.write_sync.python",)),
    Row(ARTICLE, "write without sync: 1.6 GB/s", "io-bottleneck", ("disk.write.native", "picture:disk")),
    Row(
        ARTICLE,
        "one system call for every 4 KB or 64 KB",
        "io-bottleneck",
        ("calls.block_4096.call", "calls.block_65536.rate", "answer:system calls"),
    ),
    Row(ARTICLE, "I/O over a network is still slow", "io-bottleneck", ("answer:over a network",)),
    Row(
        ARTICLE,
        "word count in simple Python: 0.384, 7.980, 0.005, 0.010, 8.386",
        "io-bottleneck",
        ("original.reading.python_simple", "original.total.python_simple", "picture:stages"),
    ),
    Row(
        ARTICLE,
        "word count in simple Go: 0.499, 3.492, 0.002, 0.009, 4.000",
        "io-bottleneck",
        ("original.reading.go_simple", "original.total.go_simple"),
    ),
    Row(
        ARTICLE,
        "word count in optimised Go: 0.154, 2.249, 0.002, 0.010, 2.414",
        "io-bottleneck",
        ("original.reading.go_optimised", "original.total.go_optimised", "claims.go_ratio.here"),
    ),
    Row(ARTICLE, "a text of 413 MB, 100 copies of one", "io-bottleneck", ("text.size.here",)),
    Row(
        ARTICLE,
        "line by line in Python is slower",
        "io-bottleneck",
        ("others.total.python_lines", "claims.lines_ratio.here", "answer:line by line"),
    ),
    Row(
        ARTICLE,
        "optimised Python: 8.4 to 7.5 s",
        "io-bottleneck",
        ("others.total.python_optimised", "claims.optimised_ratio.here"),
    ),
    Row(
        ARTICLE,
        "I/O is 14 % of simple Go (the table gives 12.5 %)",
        "io-bottleneck",
        ("share.go_simple.reading", "misled:14%", "picture:io_share"),
    ),
    Row(ARTICLE, "I/O is 7 % of optimised Go", "io-bottleneck", ("share.go_optimised.io",)),
    Row(
        ARTICLE,
        "two different Ns: words and distinct words; what sorting costs",
        "io-bottleneck",
        ("text.words.here", "text.distinct.here", "sorting", "picture:sorting", "answer:sorting"),
    ),
    Row(ARTICLE, "the disk's part came from the cache", "io-bottleneck", ("misled:disk I/O",)),
    Row(
        ARTICLE,
        "verdict: I/O is not the bottleneck, allocation and parsing are",
        "io-bottleneck",
        ("share.python_simple.cold", "answer:the bottleneck of", "reason:allocator"),
    ),
    # ------------------------------------------------------------------------------------------- the post
    Row(
        POST,
        "read and write bandwidth against block size, fsync, caches cleared",
        "block-size",
        ("original", "blocks", "picture:by_file"),
    ),
    Row(POST, "one file a size up to 100 MB", "block-size", ("original",)),
    Row(
        POST,
        "chunks of 1 to 100 MB; 500 MB/s",
        "block-size",
        ("claims.sweet_read.python", "claims.best_read.python"),
    ),
    Row(POST, "10 MB/s to 500 MB/s", "block-size", ("claims.slowest.python", "claims.best_read.python")),
    Row(
        POST,
        "rule 1: large blocks are faster than small",
        "block-size",
        ("rules.large_write.python", "rules.large_read.native"),
    ),
    Row(POST, "rule 2: reading is faster than writing", "block-size", ("rules.reading.python",)),
    Row(
        POST,
        "rule 3: solid state is faster than spinning, above all for small",
        "block-size",
        ("rules.solid.python",),
    ),
    Row(POST, "30 GB in one minute", "block-size", ("claims.thirty_best.python",)),
    Row(POST, "column stores", "block-size", ("columns.ratio_cold.python",)),
    Row(
        POST,
        "buffering lifts small writes from 0.1 to 20 MB/s",
        "block-size",
        ("claims.small_flushed.python", "claims.small_buffered.python"),
    ),
    Row(POST, "battery: writes capped at 30 MB/s", "block-size", ("claims.battery.python",)),
)

#: Rows that no lesson covers yet. It may only become smaller.
OPEN = 0


def holds(result: Result, what: str) -> bool:
    kind, _, words = what.partition(":")
    texts = {
        "picture": [picture.name for picture in result.pictures],
        "misled": [each.says for each in result.misled],
        "answer": [*result.answer, *(each.question for each in result.answers)],
        "reason": list(result.reasons),
        "series": [each.name for each in result.series],
    }
    if kind in texts:
        return any(words in text for text in texts[kind])
    return what in result.cells or any(table.name == what and table.rows for table in result.tables)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.holds], ids=lambda row: f"{row.lesson}: {row.what}"
)
def test_a_row_that_is_covered_is_in_the_lessons_result(row: Row, found: Found) -> None:
    # A reason may come with the default sizes only: the one for 523.9 compares 10 MB with 10 MB.
    wanted = [what for what in row.holds if not what.startswith("reason:")]
    result = found(row.lesson)
    assert [what for what in wanted if not holds(result, what)] == []


def test_rows_that_are_open_are_counted_and_said() -> None:
    still = [row for row in ROWS if not row.holds]
    assert len(still) == OPEN, f"{len(still)} of {len(ROWS)} rows are open"


def test_no_lesson_is_without_a_row_and_no_open_row_is_of_a_lesson_that_claims_it() -> None:
    assert set(lessons.LESSONS) <= {row.lesson for row in ROWS if row.holds}
    assert len({(row.document, row.what) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("document", [LESSON, NOTEBOOK, LIST, ARTICLE, POST])
def test_every_document_has_its_rows(document: str) -> None:
    assert sum(row.document == document for row in ROWS) >= 10
