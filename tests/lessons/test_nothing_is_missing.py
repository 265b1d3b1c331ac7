"""Every experiment, figure and question of the five documents is in a lesson's result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.some import some

from latlab import lessons
from latlab.lessons.model import Result

#: Of each document by lesson: a cell (`table.row.column`), a whole table (`table`), a picture
#: (`picture:name`), a misled claim (`misled:words`), an answer (`answer:words`), a series (`series:name`).
INDEX = {
    "a lesson, “Understanding Latency”": {
        "small-files": """
            question; disk; habits.buffered.python; habits.unbuffered.python;
            habits.buffer_ratio.python; steps.lookup.python; steps.missing.python;
            disk.warm_scattered.python; disk.order_ratio.python; original.write_one.python;
            original.write_many.python; original.read_one.python; original.read_many.python;
            original.write_ratio.python; original.read_ratio.python; misled:repeated runs;
            habits.keep_ratio.python
        """,
        "latency-ladder": """
            orders.magnitude.native; original; picture:ladder; original.L1.native;
            original.packet.native; bandwidth.L1.native; bandwidth.L2.native;
            bandwidth.RAM.native; bandwidth.SSD.native; bandwidth.HDD.native
        """,
        "list-cost": """
            create; picture:by_way; reuse.reuse_ratio.python; answer:recreating; free;
            reuse.collector_ratio.python; misled:garbage
        """,
        "downloads": """
            gigabyte.one.download; gigabyte.thousand.download; gigabyte.thousand.upload;
            gigabyte.one.upload; answer:1 GB; shapes; original.sequential.python;
            original.sequential.requests; original.pool.python; original.pool.requests;
            original.speed_up_ratio.python; misled:3.225 s and 0.285 s; picture:workers;
            workers.w6.most_ratio; order.place_1.pool; order.place_10.pool_published;
            picture:completion; answer:finish vary; errors.file_12.urllib;
            errors.file_15.urllib; errors.file_17.urllib; misled:by exception;
            shapes.many_ratio.download; shapes.many_ratio.upload;
            second.as_document_ratio.python; second.reversed_ratio.python;
            second.warm_ratio.python; misled:always runs second;
            connections.mixed_ratio.python; connections.kept_ratio.python
        """,
        "heat-equation": """
            original.total_published.python; profile_fresh; original.allocation_share.python;
            original.total_swapped.python; profile_swapped; original.saving.python;
            original.saving_fresh.python; grids; misled:multiplies each row
        """,
    },
    "a course notebook, “measuring memory latency”": {
        "random-pokes": """
            creation; original; original.bytes_10000000000.memory_mean;
            original.bytes_10000000000.file_mean; series:memory_largest_1000000;
            series:file_largest_1000000; picture:histogram_below; picture:histogram_from;
            distribution.memory_1000000.zeros; picture:ccdf_linear; picture:ccdf_loglog;
            picture:all_sizes; sequential; misled:integers of eight bytes;
            summary.overlap_ratio.here; summary.terabyte.here; misled:8.9 s; system;
            clocks.time.step; misled:time.time(); ten_microseconds; summary.disk_latency.here;
            summary.memory_range.here; summary.disk_range.here; summary.memory_rate.here;
            summary.disk_rate.here; answer:log-log; bottleneck.python_moving.here;
            bottleneck.native_moving.here; answer:not calculation; batches
        """,
        "io-bottleneck": """
            movement; answer:moving data is
        """,
    },
    "part 1 of a learning path on memory latency": {
        "linked-list": """
            original.creation.c; original.creation.native; original.creation.python;
            picture:ways; symbols.malloc.share; parts.allocator.share;
            symbols.int_malloc.share; symbols.clear_page.share; parts.page_clearing.share;
            symbols.get_page_from_freelist.share; parts.page_faults.share;
            symbols.unmap_page_range.share; parts.start_and_exit.share;
            symbols.free_unref_page_list.share; symbols.main.share; parts.main.share;
            misled:almost nothing; misled:those 30ms; alone; answer:statistical error margin;
            ways.linear.created; ways.linear.gain_ratio; answer:a way to improve;
            ways.aligned.created; ways.across.created; walking.across.shuffled;
            ways.prefetched.created; ways.populated.created; ways.huge.created;
            walking.close.ahead; ways.pool.created; ways.again.created; ways.jemalloc.created;
            ways.tcmalloc.created; ways.mimalloc.created; ways.top_pad.created; overflow;
            misled:21 bytes; misled:pointer and 20 bytes; misled:free_nodes
        """,
    },
    "an article, “I/O is no longer the bottleneck”": {
        "io-bottleneck": """
            share; answer:I/O is; disk.read_cold.python; disk.read_cached.python;
            disk.write_sync.python; disk.write.native; picture:disk; calls.block_4096.call;
            calls.block_65536.rate; answer:system calls; answer:over a network;
            original.reading.python_simple; original.total.python_simple; picture:stages;
            original.reading.go_simple; original.total.go_simple;
            original.reading.go_optimised; original.total.go_optimised; claims.go_ratio.here;
            text.size.here; others.total.python_lines; claims.lines_ratio.here; answer:line by
            line; others.total.python_optimised; claims.optimised_ratio.here;
            share.go_simple.reading; misled:14%; picture:io_share; share.go_optimised.io;
            text.words.here; text.distinct.here; sorting; picture:sorting; answer:sorting;
            misled:disk I/O; share.python_simple.cold; answer:the bottleneck of
        """,
    },
    "a post, “Disk Bandwidth”": {
        "block-size": """
            original; blocks; picture:by_file; claims.sweet_read.python;
            claims.best_read.python; claims.slowest.python; rules.large_write.python;
            rules.large_read.native; rules.reading.python; rules.solid.python;
            claims.thirty_best.python; columns.ratio_cold.python; claims.small_flushed.python;
            claims.small_buffered.python; claims.battery.python; references.here.small;
            references.spinning.small
        """,
    },
}


def holds(result: Result, what: str) -> bool:
    kind, _, words = what.partition(":")
    texts = {
        "picture": [picture.name for picture in result.pictures],
        "misled": [each.says for each in result.misled],
        "answer": [*result.answer, *(each.question for each in result.answers)],
        "series": [each.name for each in result.series],
    }
    if kind in texts:
        return any(words in text for text in texts[kind])
    return what in result.cells or any(table.name == what and table.rows for table in result.tables)


@pytest.mark.parametrize("name", lessons.LESSONS)
def test_what_the_documents_hold_is_in_the_lessons_result(found: Callable[[str], Result], name: str) -> None:
    texts = (" ".join(lesson[name].split()) for lesson in INDEX.values() if name in lesson)
    assert any(name in lesson for lesson in INDEX.values()), f"{name} has no entry in INDEX of this file"
    wanted = some(what for text in texts for what in text.split("; "))
    assert [what for what in wanted if not holds(found(name), what)] == []
