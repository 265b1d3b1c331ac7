//! `storage.rate`: how long reads take when they come at a fixed rate, counted from when they were due.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Spec, Support, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::json;

use super::random::{self, KIB_4};
use crate::disk::DIRECT;
use latlab_probes_shared::open_loop::curve;

#[cfg_attr(target_os = "linux", path = "rate/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "rate/elsewhere.rs")]
mod work;

/// The probe.
pub struct Rate;

static SPEC: Spec = Spec {
    id: "storage.rate",
    tier: Tier::Storage,
    title: "random reads at a fixed rate",
    question: "When requests come at their own rate, how long does each wait for its block, counted from when it was due?",
    method: "Random 4 KiB blocks of the run's test file are read past the page cache at a rate: the times at which reads are due are drawn before (a Poisson process, as of many independent users), and nothing moves them. A value is one read from its due time until this program learnt that it had ended; \
the channel service holds the same reads from their submission. Up to 64 are under way at once; a read that finds 64 of them waits, and its wait counts.

A loop that waits for its answers asks less while the disk stalls, and its quantiles hide the stall (coordinated omission): at the same 14,000 reads a second the p99 was 123 us asked that way and 741 us asked in time. fio's lat begins when a request is built, not when it was due.

Low rates are slower for each read than high ones, because devices, hosts and cores fall asleep in between: that is found here and not corrected. The last 120 us before a due time are spun, because a sleeping thread is woken up to 60 us late. \
A read that was handed over more than 50 us late although there was room, and although no other was just being handed over, is late by the fault of this program's thread, which slept too long or lost its CPU. Such reads are counted (late) and are no samples; where they are more than one in a hundred, the figure is flagged. \
held_back counts reads that came while 64 were under way: their wait is the disk's and stays in their time.

Rates above what the disk reads one at a time (a short trial before) are not asked for. A block has a fixed number of reads, so none is empty at low rates; those that are due before all of them have ended are read as well, so that no stall is cut off by a block's end. The proof is that of storage.read.random: contents, extents, the kernel's and the device's count of bytes.",
    method_version: 3,
    unit: Unit::Ns,
    convention: "one 4 KiB block, from its due time to its end",
    needs: &["a disk with direct I/O", "room for the test file"],
    touches: &["the run's test file, read"],
    saturates: false,
    operations: Operations::Disk,
};

/// Most reads under way: a second's tenth of stall at 10,000 a second would be a thousand, and is told as held back.
const DEPTH: u32 = 64;

/// A rate, its priority, and the reads of one block in the quick, standard and thorough profile; none where it is left out. Blocks of fewer than
/// six that were not late give no interval.
const GRID: [(u64, u8, [u64; 3]); 6] = [
    (1_000, 0, [20, 80, 300]),
    (100, 0, [7, 12, 40]),
    (10_000, 1, [0, 500, 2_000]),
    (5_000, 1, [0, 250, 1_000]),
    (10, 2, [0, 0, 7]),
    (1, 3, [0, 0, 1]),
];

/// Reads of one block at a rate.
fn reads(profile: Profile, rate_per_s: u64) -> u64 {
    GRID.iter().find(|(rate, ..)| *rate == rate_per_s).map_or(1, |(.., reads)| profile.of(*reads).max(1))
}

impl AnyProbe for Rate {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        crate::disk::support(env)
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let profile = env.settings.profile;
        let engine = random::work::deep_engine();
        GRID.into_iter()
            .filter(|(.., reads)| profile.of(*reads) > 0)
            .map(|(rate_per_s, priority, reads)| Planned {
                rank: Rank::Curve,
                reach: Reach::Disturbances,
                priority,
                setup_s: 1e-4,
                block_s: profile.of(reads) as f64 / rate_per_s as f64 + 2e-4,
                ..Planned::new(Point {
                    rate_per_s: Some(rate_per_s),
                    block_bytes: Some(KIB_4),
                    path: Some(DIRECT.to_owned()),
                    engine: Some(engine.to_owned()),
                    ..Point::default()
                })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        KIB_4 * u64::from(DEPTH + 1)
    }

    fn test_file_bytes(&self, env: &Env) -> u64 {
        crate::disk::file_bytes(env)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        if results.is_empty() {
            return Vec::new();
        }
        let findings = json!({ "curve": curve(results), "sanity": [random::fast_enough(results)] });
        vec![SPEC.derived(findings)]
    }
}

#[cfg(test)]
mod tests;
