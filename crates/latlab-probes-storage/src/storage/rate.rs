//! `storage.rate`: how long reads take when they come at a fixed rate, counted from when they were due.

use latlab_probes_shared::open_loop::{AtRate, Offered};
use latlab_probes_shared::prelude::*;

use super::random::KIB_4;
use crate::disk::{self, Access, DIRECT, DevicePart, Engine, Sanity};

#[cfg_attr(target_os = "linux", path = "rate/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Rate;

/// Most reads under way: a second's tenth of stall at 10,000 a second would be a thousand, and is reported as
/// held back.
const DEPTH: u32 = 64;

/// A rate, its priority, and the reads of one block in the quick, standard and thorough profile; none where
/// it is left out. Blocks of fewer than six that were not late give no interval.
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

/// Reads of 4 KiB at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reads {
    rate_per_s: u64,
    block_bytes: u64,
    path: Access,
    engine: Engine,
}

/// How the reads of a point came and ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    #[serde(flatten)]
    offered: Offered,
    /// Reads that were handed over too late by this program; they are no samples.
    late: Option<u64>,
    device_time: Option<DevicePart>,
    /// What the disk reads in a second when one read waits for the other.
    one_at_a_time_per_s: Option<f64>,
}

/// All rates together.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// Ascending.
    curve: Vec<AtRate>,
    sanity: [Sanity; 1],
}

impl Probe for Rate {
    type Point = Reads;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.rate",
        tier: Tier::Storage,
        title: "random reads at a fixed rate",
        question: "When requests come at their own rate, how long does each wait for its block, counted \
            from when it was due?",
        method: "Random 4 KiB blocks of the run's test file are read past the page cache at a rate: the due \
            times are drawn in advance (a Poisson process, as of many independent users) and never change. \
            A value is one read from its due time until this program learnt that it had ended; \
the channel service holds the same reads from their submission. Up to 64 are in flight; a read that finds \
64 in flight waits, and its wait counts.

A loop that waits for its answers asks less while the disk stalls, and its quantiles hide the stall \
(coordinated omission): at the same 14,000 reads a second the p99 was 123 µs asked that way and 741 µs \
asked in time. fio's lat begins when a request is built, not when it was due.

Low rates are slower for each read than high ones, because devices, hosts and cores go to sleep in between: \
that is measured here and not corrected. The last 120 µs before a due time are spun, because a sleeping \
thread is woken up to 60 µs late. \
A read that was handed over more than 50 µs late although there was room, and although no other was just \
being handed over, is late because of this program's thread, which slept too long or lost its CPU. Such \
reads are counted (late) and are not samples; where they are more than one in a hundred, the figure is \
flagged. \
held_back counts reads that came while 64 were under way: their wait is the disk's and stays in their time.

Rates above what the disk reads one at a time (a short trial before) are not asked for. A block has a fixed \
number of reads, so none is empty at low rates; those that are due before all of them have ended are read \
as well, so that no stall is cut off by a block's end. The proof is that of storage.read.random: contents, \
extents, the kernel's and the device's count of bytes.",
        method_version: 4,
        unit: Unit::Ns,
        convention: "one 4 KiB block, from its due time to its end",
        needs: &["a disk with direct I/O", "room for the test file"],
        touches: &["the run's test file, read"],
        saturates: false,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Reads> {
        let support = disk::support(env);
        if let Support::No(reason) = support {
            return Plan::no(reason);
        }
        let (profile, engine) = (env.settings.profile, disk::deep_engine());
        let rates = GRID.into_iter().filter(|(.., reads)| profile.of(*reads) > 0);
        let planned = |(rate_per_s, priority, reads)| Planned {
            rank: Rank::Curve,
            cache_scope: CacheScope::Disturbances,
            priority,
            setup_s: 1e-4,
            block_s: profile.of(reads) as f64 / rate_per_s as f64 + 2e-4,
            ..Planned::new(Reads { rate_per_s, block_bytes: KIB_4, path: DIRECT, engine })
        };
        let plan = Plan::of(rates.map(planned).collect()).memory(KIB_4 * u64::from(DEPTH + 1));
        plan.test_file(disk::file_bytes(env)).given(support)
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Reads]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let at_rate = |figure: &Figure<Self>| AtRate {
            rate_per_s: figure.point.rate_per_s,
            p50_ns: figure.result.p50,
            offered: figure.details.clone().unwrap_or_default().offered,
        };
        let mut curve: Vec<AtRate> = figures.iter().map(at_rate).collect();
        curve.sort_by_key(|own| own.rate_per_s);
        let medians = figures.iter().map(|figure| figure.result.p50);
        let sanity = [disk::fastest_answered_by_a_device(medians)];
        (!curve.is_empty()).then_some(Findings { curve, sanity })
    }
}

#[cfg(test)]
mod tests;
