//! `storage.poke`: the course notebook's experiment with files, done right: single random bytes read and
//! written back.

use std::collections::BTreeSet;

use crate::disk::{self, Access, COLD, DIRECT, DevicePart, Sanity, WARM};
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "poke/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Poke;

/// A page, and the least that a poke makes the disk move, bytes.
const PAGE_BYTES: u64 = 4096;
/// The notebook's sizes below those that the test file serves, bytes: decimal, as it has them.
const SMALL: [u64; 2] = [1_000, 1_000_000];
/// Reading 1 GB to warm it takes longer than the whole quick share.
const QUICK_LARGEST: u64 = 100_000_000;
const LARGE: u64 = 1_000_000_000;
/// Blocks of a point at most in the short profiles: in the quick one little may be written, and in the
/// standard one warming the large file needs what the others leave.
const FEW_BLOCKS: usize = 12;
/// What the plan reckons, s: a poke into the page cache, a page or block from the disk and back to it, a
/// flushed page of many, an eviction.
const WARM_S: f64 = 3e-6;
const DEVICE_S: f64 = 70e-6;
const FLUSHED_S: f64 = 20e-6;
const EVICTION_S: f64 = 200e-6;
/// Reading the test file to warm it, bytes a second.
const WARMING: f64 = 1e9;

/// Pokes into a file of a size, reached in a way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pokes {
    operation: Operation,
    file_bytes: u64,
    path: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    ReadWrite,
}

/// What the pokes of a point took.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    pokes: u64,
    /// Median of the seek and the read, ns.
    read_p50_ns: Option<f64>,
    /// Median of the write, ns.
    write_p50_ns: Option<f64>,
    /// Bytes written.
    written_bytes: u64,
    /// Where a poke waits for the device.
    device_time: Option<DevicePart>,
}

/// What the page cache saves.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    sizes: Vec<OfSize>,
    sanity: Vec<Sanity>,
}

/// Ratios of medians at one size.
#[derive(Serialize, JsonSchema)]
struct OfSize {
    file_bytes: u64,
    cold_over_warm: Option<f64>,
    direct_over_warm: Option<f64>,
}

fn point(file_bytes: u64, path: Access) -> Pokes {
    Pokes { operation: Operation::ReadWrite, file_bytes, path }
}

/// The sizes that the test file is to serve.
fn wanted(env: &Env) -> Vec<u64> {
    match env.settings.profile {
        Profile::Quick => vec![QUICK_LARGEST],
        Profile::Standard => vec![LARGE],
        Profile::Thorough => vec![LARGE, u64::MAX],
    }
}

/// Of each size as much as there is: the test file's, and what may be kept in memory.
fn large(env: &Env, path: Access) -> Vec<u64> {
    let most = if path == WARM { env.memory_bytes } else { u64::MAX };
    let mut sizes: Vec<u64> = wanted(env)
        .into_iter()
        .map(|size| size.min(disk::file_bytes(env)).min(most))
        .filter(|size| *size > SMALL[1])
        .collect();
    sizes.dedup();
    sizes
}

fn pages(file_bytes: u64) -> u64 {
    file_bytes.div_ceil(PAGE_BYTES)
}

/// Pokes of one block.
fn pokes(profile: Profile, file_bytes: u64, path: Access) -> u64 {
    let row = profile.of([[1_000, 200, 60], [2_000, 1_000, 150], [10_000, 4_000, 1_000]]);
    match path {
        WARM if file_bytes <= SMALL[1] => row[0],
        // Each dirties another page, which must be written.
        WARM => row[1],
        // An eviction for each.
        COLD if file_bytes <= SMALL[0] => row[2] / 4,
        _ => row[2],
    }
}

/// Bytes that one block writes.
fn written(profile: Profile, file_bytes: u64, path: Access) -> u64 {
    let pokes = pokes(profile, file_bytes, path);
    match (file_bytes, path) {
        (0, _) => 0,
        // A page that is dirtied again before it is flushed is written once.
        (_, WARM) => pokes.min(pages(file_bytes)) * PAGE_BYTES,
        _ => pokes * PAGE_BYTES,
    }
}

fn planned(env: &Env, file_bytes: u64, path: Access) -> Planned<Pokes> {
    let profile = env.settings.profile;
    let planned = Planned::new(point(file_bytes, path));
    let most_blocks = if profile == Profile::Thorough { planned.most_blocks } else { FEW_BLOCKS };
    let count = pokes(profile, file_bytes, path) as f64;
    let flushed_s = written(profile, file_bytes, path) as f64 / PAGE_BYTES as f64 * FLUSHED_S;
    let evictions = (count / pages(file_bytes).max(1) as f64).ceil();
    let block_s = match path {
        _ if file_bytes == 0 => 2e-3,
        WARM => count * WARM_S + flushed_s,
        COLD => count * DEVICE_S + flushed_s + evictions * EVICTION_S,
        _ => count * 2.0 * DEVICE_S,
    };
    // Warming the test file and evicting it would be done over and over if they took turns.
    let shared = file_bytes > SMALL[1];
    // Files that the page cache holds and that cost nothing to have; warming 10 GB takes most of a round.
    let rank = if file_bytes > LARGE {
        Rank::Once
    } else if path == WARM && [0, SMALL[1]].contains(&file_bytes) {
        env.headline_but_quick(Rank::Detail)
    } else {
        Rank::Detail
    };
    Planned {
        rank,
        // Laying the test file out, where it is not there yet, must not cost the small files their time.
        group: match (shared, path) {
            (false, _) => 0,
            (true, COLD | DIRECT) => 1,
            (true, _) => 2,
        },
        // Warming all of the test file takes as long as the rest: first the size that everybody knows.
        priority: u8::from(path == WARM && file_bytes > LARGE),
        setup_s: 1e-4,
        first_s: if shared && path == WARM { file_bytes as f64 / WARMING } else { 0.0 },
        block_s,
        most_blocks,
        written_bytes: written(profile, file_bytes, path),
        cache_scope: if path == WARM { CacheScope::Shared } else { CacheScope::Private },
        ..planned
    }
}

fn points(env: &Env) -> Vec<Planned<Pokes>> {
    let mut points = vec![planned(env, 0, WARM)];
    for path in [DIRECT, COLD, WARM] {
        points.extend(large(env, path).into_iter().map(|size| planned(env, size, path)));
    }
    for size in SMALL.into_iter().rev() {
        for path in [WARM, COLD, DIRECT] {
            points.push(planned(env, size, path));
        }
    }
    super::announce_laid_out(&mut points, |point| {
        let size = point.file_bytes;
        SMALL.contains(&size).then_some((size, pages(size) * PAGE_BYTES))
    });
    points
}

impl Probe for Poke {
    type Point = Pokes;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.poke",
        tier: Tier::Storage,
        title: "single random bytes of files, one by one",
        question: "How long does it take to read and write one byte at a random place of a file, and how \
            long does the slowest take?",
        method: "A poke seeks to a random byte, reads it and writes it back: three system calls, timed \
            together and the read (with its seek) and the write apart. The place is drawn before the first \
            stamp. Writing back what was read leaves the contents as they were.

buffered-warm: the whole range was read before, so the page cache answers: this is the cost of system \
calls, not of a disk; no byte may be fetched from storage meanwhile. \
A kernel may reclaim pages (DAMON, another program's need): before each block of samples those that are \
missing (mincore) are read again, a block is taken in eight portions, and a portion in which more than one \
poke in a hundred was answered by storage \
does not count; the record says how many. \
The range is brought in without read-ahead, as single pages. Where a file was read from front to back, or \
written in large blocks, it is in the cache in pieces of up to 2 MiB, and a file system that keeps a list \
of the blocks of each piece (ext4, Linux 6.16 and later) goes through all 512 to write one byte: 10 to 50 \
µs here, against 0.7 µs in a single page. \
That cost comes from how the file was cached, not from the poke. \
buffered-cold: the file was flushed and evicted, the kernel was asked what is left (nothing may be), and \
read-ahead is off (FADV_RANDOM, on a descriptor of the probe's own). No page is poked twice between two \
evictions, so each poke waits for the disk; \
of a small file, which has few pages, fewer pokes are made before it is evicted again. Otherwise a megabyte \
is in the cache after 245 misses, and the median is the cache's. \
direct: past the page cache; the aligned block that holds the byte is read and written back.

Pages that were dirtied are flushed after each block of samples, untimed: the write of a poke into the page \
cache ends when the cache has it. storage.sync measures what making it durable costs.

The file of 0 bytes is the experiment's zero: there is nothing to read or write, and no system call is \
made. It is timer overhead, shown beside the others and never subtracted.

Files of 1 KB and 1 MB are the probe's own, filled up to whole blocks. Larger ones are the beginning of the \
common test file: 100 MB in the quick profile, 1 GB in the others where the test file is so large, and all \
of it in the thorough one. \
What is warm is at most a quarter of the memory that may be used. The point says the size that was really \
poked into.

Proof: the bytes read are those that were laid out, whole blocks are compared after the flush, evictions \
are checked, and the kernel and the device under the file counted at least a page fetched for each cold or \
direct poke.",
        method_version: 3,
        unit: Unit::Ns,
        convention: "one poke: seek, read and write back one byte",
        needs: &["Linux", "a directory on a disk"],
        touches: &[
            "the common test file and two files of 4 KiB and 1 MB without a name",
            "the page cache up to a quarter of the memory that may be used",
            "writes tens to hundreds of MB",
        ],
        saturates: false,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Pokes> {
        // What is warm can be evicted at any time and is nobody's.
        let plan = Plan::of(points(env)).memory(1 << 20).test_file(disk::file_bytes(env));
        plan.given(disk::support_writing(env))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Pokes]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let p50 = |size: u64, path| Some(result_at(figures, &point(size, path))?.p50);
        let known: BTreeSet<u64> = figures.iter().map(|figure| figure.point.file_bytes).collect();
        let (mut sizes, mut sanity) = (Vec::new(), Vec::new());
        for file_bytes in known.into_iter().filter(|size| *size > 0) {
            let Some(warm) = p50(file_bytes, WARM) else { continue };
            let (cold, direct) = (p50(file_bytes, COLD), p50(file_bytes, DIRECT));
            sizes.push(OfSize {
                file_bytes,
                cold_over_warm: cold.map(|cold| cold / warm),
                direct_over_warm: direct.map(|direct| direct / warm),
            });
            for (path, other) in [(COLD, cold), (DIRECT, direct)] {
                let Some(other) = other else { continue };
                sanity.push(Sanity {
                    rule: format!("{} pokes are slower than warm ones ({file_bytes} bytes)", path.name())
                        .into(),
                    holds: other > warm,
                    detail: format!("{:.1} µs against {:.1} µs", other / 1e3, warm / 1e3),
                });
            }
        }
        (!sizes.is_empty()).then_some(Findings { sizes, sanity })
    }
}

#[cfg(test)]
mod tests;
