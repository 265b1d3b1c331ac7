//! `storage.read.random`: how many random blocks a disk reads a second, and how long each takes, by queue
//! depth.

use super::random::Marker;
use crate::disk::Way;
use latlab_probes_shared::prelude::*;

/// Blocks that are read.
pub struct Read;

impl Marker for Read {
    const WAY: Way = Way::Read;

    const SPEC: Spec = Spec {
        id: "storage.read.random",
        tier: Tier::Storage,
        title: "random reads by queue depth",
        question: "How long does a read at a random place of the disk take, and how many a second are there \
            when several are under way?",
        method: "Blocks of the run's test file are read past the page cache (O_DIRECT), at random places: \
            each block once in random order before any comes again, in an order that is new in every run, \
            because a cache in the drive or the host answers what was asked before. \
A closed loop keeps as many reads under way as the queue depth says: when one ends, the next is submitted. \
A value is one read, from before its submission until this program learnt that it had ended; time between \
building a request and handing it over is inside, as in fio's lat and not as in its clat. \
At depth 1 each is one preadv2 call; deeper queues are io_uring's, or a thread for each read where io_uring \
is refused, which is flagged. The engine is part of the point, because at depth 1 io_uring is about 11 % \
slower.

The rate is counted while the depth was kept: filling and draining the queue would lower it in a short \
block. The achieved depth is the rate times the mean time (Little's law); where it is below nine tenths of \
what was asked, the figure is flagged: it is this program that was too slow, not the disk. \
Depth 1 is measured first and separately: between deep queues it was up to an eighth faster than for a \
program that reads alone. The other depths are interleaved in random order.

Where one read at a time is under way, each visit begins with 0.1 s of such reads that do not count: a CPU \
that mostly sleeps, and an idle disk, answer differently at first. The median of the first of them (0.02 s, \
quick 0.012, thorough 0.06) is shown beside the figure.

Every block read is checked: it must hold its own number and the run's seed. The file was written whole \
with bytes that cannot be compressed (on a disk whose host detected zeros, they came back 2.5 times as \
fast), none of its extents is only reserved (such are read at 0.7 µs without the disk), \
and the kernel's count of bytes fetched from storage must grow by all that was read, and so must the count \
of the device under the file (others can only add to it; a file system without a device of its own is \
named). A median below 2 µs cannot come from a device, and gives no figure.

Before the blocks of single 4 KiB reads there are a few rounds of a read far away in the file (a quarter of \
it or more), one 128 KiB behind it and one 4 MiB on. A spinning disk moves its arm and waits for the \
rotation: the far read takes milliseconds more and spreads over a rotation. On solid state the distance \
does not matter. \
Where everything takes milliseconds, or only some far reads do, nothing is concluded (a limit, a network, a \
cache before a spinning disk); the kernel's flag \"rotational\" is shown but not used. A cache as large as \
the file counts as solid state.",
        method_version: 3,
        unit: Unit::Ns,
        convention: "one block, from before its submission to its end; bytes as read",
        needs: &["a disk with direct I/O", "room for the test file"],
        touches: &["the run's test file, read", "the disk, up to 64 reads at a time"],
        saturates: true,
        operations: Operations::Disk,
    };
}
