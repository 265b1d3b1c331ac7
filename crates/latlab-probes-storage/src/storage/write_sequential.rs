//! `storage.write.sequential`: overwriting a file from front to back in blocks of each size, past the page
//! cache and through it, with and without flushes.

use crate::disk::curve::{self, Bandwidth, Blocks, Findings};
use crate::disk::{self, Access, BUFFERED, DIRECT, FSYNC_EACH, FSYNC_END};
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "write_sequential/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct WriteSequential;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Paths with their blocks for the quick, standard and thorough profile; each list goes on behind the one
/// before. In the order in which they are given up last.
const POINTS: [(Access, [&[u64]; 3]); 4] = [
    (
        DIRECT,
        [&[4 * KIB, 64 * KIB, MIB, 16 * MIB], &[16 * KIB, 256 * KIB, 4 * MIB, 512], &[64 * MIB, 128 * MIB]],
    ),
    (FSYNC_EACH, [&[4 * KIB, 64 * KIB, MIB], &[16 * MIB], &[16 * KIB, 256 * KIB, 4 * MIB, 512]]),
    (FSYNC_END, [&[MIB], &[4 * KIB, 64 * KIB, 16 * MIB], &[16 * KIB, 256 * KIB, 4 * MIB]]),
    (BUFFERED, [&[4 * KIB], &[64 * KIB, MIB], &[16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB]]),
];
/// Bytes that one point may write in a run of the profiles, unless six blocks, or one in each round, need
/// more.
const POINT_BYTES: [u64; 3] = [20 * MIB, 96 * MIB, 192 * MIB];
/// Blocks of all rounds together, as far as they divide among them.
const LEAST_BLOCKS: u64 = 6;
const MOST_BLOCKS: u64 = 24;

/// Bytes that one block of samples writes.
fn stretch(profile: Profile, path: Access, block_bytes: u64) -> u64 {
    let (operations, bytes) = match path {
        DIRECT => (128, [4 * MIB, 16 * MIB, 32 * MIB]),
        FSYNC_EACH => (64, [2 * MIB, 8 * MIB, 16 * MIB]),
        _ => (256, [4 * MIB, 16 * MIB, 32 * MIB]),
    };
    block_bytes.saturating_mul(operations).min(profile.of(bytes)).max(block_bytes)
}

fn planned(profile: Profile, path: Access, block_bytes: u64, priority: u8) -> Planned<Blocks> {
    let stretch = stretch(profile, path, block_bytes);
    // The device's rate and its request, a durable block, and one that the page cache takes.
    let rank = match (path, block_bytes / KIB) {
        _ if profile == Profile::Quick => Rank::Curve,
        (DIRECT, 4 | 1024) | (FSYNC_EACH | BUFFERED, 4) => Rank::Headline,
        _ => Rank::Curve,
    };
    let rounds = u64::from(rank.rounds(profile.rounds()));
    let most = (profile.of(POINT_BYTES) / (rounds * stretch))
        .clamp((LEAST_BLOCKS / rounds).max(1), MOST_BLOCKS.div_ceil(rounds));
    let calls = (stretch / block_bytes) as f64;
    // What the plan reckons with; the contents of a stretch are computed at about a GB/s.
    let each_s = match path {
        DIRECT => 50e-6,
        FSYNC_EACH => 100e-6,
        _ => 3e-6,
    };
    Planned {
        rank,
        priority,
        setup_s: 1e-3,
        block_s: 3e-3 + calls * each_s + stretch as f64 * 1.5e-9,
        written_bytes: stretch,
        most_blocks: usize::try_from(most).unwrap_or(usize::MAX),
        ..Planned::new(Blocks::of(path, block_bytes))
    }
}

/// How fast the blocks of a point were.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    #[serde(flatten)]
    bandwidth: Bandwidth,
    /// All flushes at the ends of blocks of samples, ns; none where each block is flushed, or none is.
    fsync_ns: Option<f64>,
}

impl Probe for WriteSequential {
    type Point = Blocks;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.write.sequential",
        tier: Tier::Storage,
        title: "writing a file front to back by block size",
        question: "How fast is a file written from front to back, in small blocks and in large ones, and \
            what do flushes cost?",
        method: "One thread overwrites one block of an existing file after the other with one system call \
            each (pwrite); a value is the time of one block. bytes_per_s is all bytes over the time of all \
            calls, flushes included where they belong to the path.

direct goes past the page cache (O_DIRECT); the device has the bytes, its own cache may still hold them. \
buffered-fsync-each writes into the page cache and flushes after each block: the value is both, the \
channels write and fsync are the parts. \
buffered-fsync-end flushes once after a stretch of blocks: values are the writes alone, the flush is the \
channel fsync and is in bytes_per_s, from which its fit is made. buffered does not flush within the figure: \
it is a copy into memory, and says nothing about the disk; it is flushed afterwards, untimed. \
After each block of samples the file's pages are evicted, so that no block begins with pages from another.

The file is the shared test file: written whole once, so that no write has to find room or fill a reserved \
range. It is overwritten with what it holds, incompressible bytes that contain their own position, computed \
into the one buffer before each write, outside of what is timed: zeros are 2.5 times as fast on some hosts, \
and random bytes made meanwhile \
would be part of the time. The first and the last 4 KiB of each stretch are read back and compared. The \
writes must show in what the kernel counted for this process (/proc/self/io), and, where they were flushed \
or direct, in what the device under the file counted. A stretch's bytes are taken from the run's budget \
before they are written, so a run never writes more than it announced; that bounds the number of blocks.

What a flush can mean is another question (storage.sync). Bursts into a cache of the drive or a cloud's \
credits are faster than hours of writing (storage.steady). Where the device interrupts one CPU only, a \
small write on another CPU waits for that one to wake it (46 µs and 62 µs were seen), so the CPU is part of \
the figure. To compare, pinned to the same CPU: fio --ioengine=psync --direct=1 --rw=write --overwrite=1 \
--refill_buffers --bs=...",
        method_version: 2,
        unit: Unit::Ns,
        convention: "each byte written counts once",
        needs: &["a disk: no file system in memory", "room for the test file"],
        touches: &["disk: at most 140 MiB written into the test file (1 GiB standard, 4 GiB thorough), \
            beyond laying it out"],
        saturates: true,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Blocks> {
        let profile = env.settings.profile;
        let file = disk::file_bytes(env);
        // Two thirds of what may be written beside the file are for the other probes of the disk.
        let mut left = env.disk.budget().limit_bytes().saturating_sub(file) / 3;
        let mut points = Vec::new();
        for nth in 0..=profile.nth() {
            for (path, blocks) in POINTS {
                for block_bytes in blocks[usize::from(nth)] {
                    let priority = 2 * nth + u8::from(matches!(path, FSYNC_END | BUFFERED));
                    let planned = planned(profile, path, *block_bytes, priority);
                    let stretch = stretch(profile, path, *block_bytes);
                    if *block_bytes <= env.memory_bytes / 2
                        && 2 * stretch <= file
                        && planned.run_bytes(profile) <= left
                    {
                        left -= planned.run_bytes(profile);
                        points.push(planned);
                    }
                }
            }
        }
        let memory = curve::largest_block(&points);
        Plan::of(points).memory(memory).test_file(file).given(disk::support_writing(env))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Blocks]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let paths = POINTS.map(|(path, _)| path);
        curve::conclude(figures, |details| &details.bandwidth, &paths, &[FSYNC_END], &[DIRECT, FSYNC_EACH])
    }
}

#[cfg(test)]
mod tests;
