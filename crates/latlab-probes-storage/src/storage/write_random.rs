//! `storage.write.random`: how many random blocks a disk overwrites a second, and how long each takes, by
//! queue depth.

use super::random::Marker;
use crate::disk::Way;
use latlab_probes_shared::prelude::*;

/// Blocks that are written.
pub struct Write;

impl Marker for Write {
    const WAY: Way = Way::Write;

    const SPEC: Spec = Spec {
        id: "storage.write.random",
        tier: Tier::Storage,
        title: "random overwrites by queue depth",
        question: "How long does a write at a random place of the disk take, and how many a second are \
            there when several are under way?",
        method: "Blocks of the run's test file are overwritten past the page cache (O_DIRECT), at random \
            places: each block once in random order before any comes again. Nothing is allocated, because \
            the file was written whole before: writing into a hole or a reserved extent takes up to twice \
            as long and is another experiment. \
A value is one write, from before its submission until this program learnt that it had ended. That it has \
ended means that the device has it, not that it would survive a power cut: what makes writes durable is \
storage.sync's subject.

A closed loop keeps as many writes under way as the queue depth says. At depth 1 each is one pwritev2 call; \
deeper queues are io_uring's, or a thread for each write where io_uring is refused, which is flagged. \
The rate is counted while the depth was kept; the achieved depth is the rate times the mean time (Little's \
law) and is flagged below nine tenths of what was asked.

Each block is overwritten with what it held, bytes that cannot be compressed, so that the file still \
verifies itself for the probes that read it after; the buffers are filled before the block is timed. \
Every byte is taken from the run's budget before it is written, so a block has a number of writes and not a \
time: 45 s of writing would be 100 GB of wear. \
The kernel's count of bytes sent to storage must grow by all that was written, so must the count of the \
device under the file, and a median below 2 µs cannot come from a device.",
        method_version: 2,
        unit: Unit::Ns,
        convention: "one block, from before its submission to its end; bytes as written",
        needs: &["a disk with direct I/O", "room for the test file"],
        touches: &[
            "the run's test file, overwritten with its own contents",
            "the disk, up to 64 writes at \
            a time",
        ],
        saturates: true,
        operations: Operations::Disk,
    };
}
