//! `storage.read.sequential`: reading a file from front to back in blocks of each size, past the page cache,
//! through it, and from it.

use crate::disk::curve::{self, Bandwidth, Blocks, Findings};
use crate::disk::{self, Access, COLD, DIRECT, WARM};
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "read_sequential/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct ReadSequential;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// In the order in which they are given up last.
const KIB_4: u64 = 4 * KIB;
const KIB_64: u64 = 64 * KIB;
const BLOCKS: [u64; 10] =
    [4 * KIB, 64 * KIB, MIB, 16 * MIB, 16 * KIB, 256 * KIB, 4 * MIB, 512, 64 * MIB, 128 * MIB];
/// How many of them each profile takes.
const TAKEN: [usize; 3] = [4, 9, 10];
const PATHS: [Access; 3] = [DIRECT, COLD, WARM];

/// What the plan reckons with: a small request, and bytes a second. Slower disks show it at the first visit.
const REQUEST_S: f64 = 60e-6;
const BYTES_PER_S: f64 = 1e9;

/// Bytes of a file that one block of samples reads.
fn stretch(profile: Profile, file_bytes: u64, path: Access, block_bytes: u64) -> u64 {
    let (operations, bytes) = match path {
        DIRECT => (128, profile.of([8 * MIB, 16 * MIB, 32 * MIB])),
        // Its first half is the beginning, in which reading ahead grows.
        COLD => (u64::MAX, profile.of([32 * MIB, 64 * MIB, 128 * MIB])),
        _ => (2_048, profile.of([8 * MIB, 16 * MIB, 32 * MIB])),
    };
    block_bytes
        .saturating_mul(operations)
        .min(bytes.min(file_bytes / 3) / block_bytes * block_bytes)
        .max(if path == COLD { 2 * block_bytes } else { block_bytes })
}

/// Bytes of a file that are kept in the page cache for warm reads.
fn warm_bytes(profile: Profile, file_bytes: u64, block_bytes: u64) -> u64 {
    let bytes = profile.of([16 * MIB, 64 * MIB, 128 * MIB]);
    bytes.min(file_bytes / 3).max(block_bytes)
}

fn planned(profile: Profile, file_bytes: u64, path: Access, block_bytes: u64, nth: usize) -> Planned<Blocks> {
    let bytes = stretch(profile, file_bytes, path, block_bytes) as f64;
    let calls = bytes / block_bytes as f64;
    let (setup_s, block_s) = match path {
        DIRECT => (1e-3, calls * REQUEST_S + bytes / BYTES_PER_S),
        COLD => (2e-3, bytes / BYTES_PER_S + calls * 1e-6),
        _ => (1e-3, calls * 5e-7 + bytes / 8e9),
    };
    // The smaller blocks find what the first of them read.
    let first_s = if path == WARM && (nth == 0 || block_bytes > MIB) {
        warm_bytes(profile, file_bytes, block_bytes) as f64 / BYTES_PER_S
    } else {
        0.0
    };
    let quick = profile == Profile::Quick;
    let rank = match (path, block_bytes) {
        (DIRECT, MIB) => Rank::Headline,
        (DIRECT | WARM, KIB_4 | KIB_64 | MIB) | (COLD, MIB) if !quick => Rank::Headline,
        _ => Rank::Curve,
    };
    let first = match path {
        DIRECT => 0,
        COLD if block_bytes == 64 * KIB || block_bytes == MIB => 0,
        WARM if block_bytes <= MIB => 1,
        _ => 2,
    };
    Planned {
        rank,
        // What is to be in the page cache, and what is not: taking turns would read and evict it over and
        // over.
        group: u16::from(path == WARM),
        first_s,
        priority: first + if nth < TAKEN[0] { 0 } else { 3 },
        setup_s,
        block_s,
        ..Planned::new(Blocks::of(path, block_bytes))
    }
}

impl Probe for ReadSequential {
    type Point = Blocks;
    type Evidence = work::Evidence;
    type Details = Bandwidth;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.read.sequential",
        tier: Tier::Storage,
        title: "reading a file front to back by block size",
        question: "How fast is a file read from front to back, in small blocks and in large ones?",
        method: "One thread reads one block after the other with one system call each (pread), always the \
            next block of the file; a value is the time of one call. bytes_per_s is all bytes over the time \
            of all calls. \
Each block of samples reads a stretch of the file and the next one continues after it.

direct goes past the page cache (O_DIRECT): each call is one request that waits for the device. \
buffered-cold goes through a page cache that holds nothing of the file: before each stretch the file is \
flushed and evicted from the cache, and the kernel is asked (cachestat or mincore) \
whether anything is left; if so there is no figure. The kernel reads ahead, so most calls find their block \
there and few wait: the median is a copy, the mean is the disk. Reading ahead begins with little and \
doubles: the first half of a stretch is not counted, and start_ns is what it takes more than the second. \
buffered-warm reads a stretch that is in the page cache as read-ahead left it (in large folios where the \
file system has them), counted page by page before: no disk, a copy from memory. A kernel may reclaim pages: \
a stretch for which some had to be fetched \
does not count and is read again.

The test file has no name, is written whole with incompressible bytes that contain their own position, \
flushed, and its map is checked: a range that is only reserved reads at 100 GB/s. The first and the last \
header of each block that was read are compared outside of what is timed (blocks below 4 KiB whole). \
Direct and cold reads must show in what the kernel counted for this process (/proc/self/io), and in what \
the device under the file counted (others can only add to it; a file system without a device of its own is \
named). What is below the device (a host's cache, the drive's own) cannot be emptied and is part of the \
figure.

Over the medians a line is fitted, T = alpha + bytes / beta, to relative errors: alpha is the cost of a \
call, beta the bandwidth of endless blocks. At alpha x beta bytes half of the bandwidth is reached, at nine \
times that 90 %. Reads through an empty page cache do not follow such a line, because of read-ahead. \
To compare, pinned to the same CPU (where the device interrupts one CPU only, others wait for it): fio \
--ioengine=psync --direct=1 --rw=read --bs=...; its lat, not its clat.",
        method_version: 3,
        unit: Unit::Ns,
        convention: "each byte read counts once",
        needs: &["a disk: no file system in memory", "room for the test file"],
        touches: &["disk: a test file without a name, written once (96 MiB quick, 1 GiB standard, 4 GiB \
            thorough)"],
        saturates: true,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Blocks> {
        let profile = env.settings.profile;
        let file = if env.settings.file.is_some() { disk::users_bytes(env) } else { disk::file_bytes(env) };
        let mut points = Vec::new();
        for path in PATHS {
            for (nth, block_bytes) in BLOCKS.into_iter().enumerate() {
                let needed = stretch(profile, file, path, block_bytes);
                let fits = block_bytes <= env.memory_bytes / 2 && 2 * needed <= file;
                if nth < profile.of(TAKEN) && fits {
                    points.push(planned(profile, file, path, block_bytes, nth));
                }
            }
        }
        points.sort_by_key(|planned| planned.priority);
        let memory = curve::largest_block(&points);
        Plan::of(points).memory(memory).test_file(disk::file_bytes(env)).given(disk::support(env))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Blocks]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        curve::conclude(figures, |details| details, &PATHS, &[], &[DIRECT, COLD])
    }
}

#[cfg(test)]
mod tests;
