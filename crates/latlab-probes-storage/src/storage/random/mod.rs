//! What random reads and random writes share: block sizes and depths, how much of each, and what follows from
//! them.

use std::collections::BTreeMap;

use crate::disk::{self, Access, Claim, DIRECT, DevicePart, Engine, Holds, Sanity, Way};
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere/mod.rs")]
pub(super) mod work;

pub(super) const KIB_4: u64 = 4 << 10;
const KIB_64: u64 = 64 << 10;
const MIB: u64 = 1 << 20;

/// Blocks of a size at a depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    block_bytes: u64,
    queue_depth: u32,
    path: Access,
    engine: Engine,
}

/// How fast the blocks of a point were.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Blocks a second.
    rate_per_s: f64,
    bytes_per_s: f64,
    /// Blocks that were under way on average.
    achieved_depth: f64,
    /// Median of the first reads of the visits, where one at a time is under way, ns.
    first_reads_ns: Option<f64>,
    /// Rate of the second half of the blocks of samples over that of the first.
    second_half_to_first: Option<f64>,
    device_time: Option<DevicePart>,
    /// Near and far reads, at one of the points.
    seek: Option<Seek>,
}

/// What near and far reads took, and what the disk is by them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Seek {
    /// `solid state`, `spinning` or `undecided`.
    medium: String,
    /// Why, a clause.
    reason: String,
    /// Median far away less the median near by, ns.
    difference_ns: f64,
    /// Its 95 % interval, ns.
    interval_ns: [f64; 2],
    near_ns: f64,
    far_ns: f64,
    /// What the kernel says.
    rotational_flag: Option<bool>,
    by_distance: Vec<AtDistance>,
}

/// Reads at a distance from the one before.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct AtDistance {
    distance: String,
    p50_ns: f64,
    p90_ns: f64,
    reads: usize,
}

/// Where more depth gives no more, and whether the figures can be a disk's.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    saturation: Vec<Saturation>,
    sanity: Vec<OfPoint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Claim>,
}

/// The least depth that has nine tenths of the best rate of a block size.
#[derive(Serialize, JsonSchema)]
struct Saturation {
    block_bytes: u64,
    depth: u32,
    rate_per_s: f64,
    /// Saturated at the deepest queue that was tried is not known to be saturated.
    reached: bool,
}

/// A rule, and the point that it is about where it is about one.
#[derive(Serialize, JsonSchema)]
struct OfPoint {
    #[serde(flatten)]
    rule: Sanity,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<latlab_record::Point>")]
    point: Option<Blocks>,
}

impl From<Sanity> for OfPoint {
    fn from(rule: Sanity) -> Self {
        Self { rule, point: None }
    }
}

/// The probe of either way.
pub struct Random<M>(pub M);

/// What tells the two probes apart.
pub trait Marker: Sync + 'static {
    /// Which way its blocks go.
    const WAY: Way;
    /// Its description.
    const SPEC: Spec;
}

impl<M: Marker> Probe for Random<M> {
    type Point = Blocks;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = M::SPEC;

    fn plan(&self, env: &Env) -> Plan<Blocks> {
        let support = match M::WAY {
            Way::Read => disk::support(env),
            Way::Write => disk::support_writing(env),
        };
        if let Support::No(reason) = support {
            return Plan::no(reason);
        }
        let points = plan(env, M::WAY, disk::deep_engine());
        let memory = memory_bytes(env, M::WAY, &points);
        Plan::of(points).memory(memory).test_file(disk::file_bytes(env)).given(support)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Blocks]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, M::WAY)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        (!figures.is_empty()).then(|| conclude(figures))
    }
}

/// Block size, depth, priority, and writes of a block of samples in the quick profile (about fifteen times
/// the depth, as much as ten milliseconds take on a disk behind a fast bus); in the order in which they are
/// given up last.
const GRID: [(u64, u32, u8, u64); 21] = [
    (KIB_4, 1, 0, 150),
    (KIB_4, 32, 0, 560),
    (KIB_4, 4, 0, 250),
    (KIB_4, 16, 1, 420),
    (KIB_4, 64, 1, 800),
    (KIB_4, 2, 1, 200),
    (KIB_4, 8, 1, 320),
    (KIB_64, 1, 2, 40),
    (MIB, 1, 2, 8),
    (KIB_64, 16, 2, 100),
    (KIB_64, 4, 2, 60),
    (MIB, 4, 2, 16),
    (KIB_64, 64, 3, 200),
    (MIB, 16, 4, 32),
    (KIB_64, 2, 4, 50),
    (KIB_64, 8, 4, 80),
    (KIB_64, 32, 4, 140),
    (MIB, 2, 4, 12),
    (MIB, 8, 4, 24),
    (MIB, 32, 5, 64),
    (MIB, 64, 5, 128),
];

/// Up to which priority a profile plans: quick has 4 KiB alone.
fn deepest_priority(profile: Profile, way: Way) -> u8 {
    match way {
        Way::Read => profile.of([1, 3, 5]),
        // What is written wears the disk: no more than the budget of the profile.
        Way::Write => profile.of([1, 2, 4]),
    }
}

/// Seconds in which the reads of a block are begun. With less than eight rounds of the queue there is little
/// to be said of it.
fn read_s(profile: Profile, block_bytes: u64, depth: u32) -> f64 {
    let least = profile.of([0.012, 0.02, 0.06]);
    // ns at 1 GB/s.
    f64::max(least, 8.0 * (block_bytes * u64::from(depth)) as f64 / 1e9)
}

/// Seconds of reads before those that count, where one at a time is under way: a CPU that mostly sleeps, and
/// a disk that rests, answer otherwise for the first tens of milliseconds. Writes are not warmed up: they
/// wear the disk.
const WARM_UP_S: f64 = 0.1;

/// Whether each visit of this point begins with such reads.
fn is_warmed(way: Way, point: &Blocks) -> bool {
    way == Way::Read && point.queue_depth == 1
}

/// A read so far behind the last one is near: farther than the platter turns while a program asks again, and
/// on the same track.
const NEAR_BYTES: u64 = 128 << 10;
/// On another track.
const MIDDLE_BYTES: u64 = 4 << 20;
/// From this share of the file on a read is far away.
const FAR: f64 = 0.25;

/// Whether near and far reads are compared when this point is visited.
fn seeks_at(way: Way, point: &Blocks) -> bool {
    way == Way::Read && (point.block_bytes, point.queue_depth) == (KIB_4, 1)
}

/// Seconds of near and far reads in one visit.
fn seek_s(profile: Profile) -> f64 {
    profile.of([0.004, 0.008, 0.02])
}

/// Writes of one block of samples, as planned.
fn writes(profile: Profile, block_bytes: u64, depth: u32) -> u64 {
    let own = GRID.iter().find(|(bytes, own, ..)| (*bytes, *own) == (block_bytes, depth));
    let times = if block_bytes > KIB_4 { [1, 1, 2] } else { [1, 2, 8] };
    own.map_or(0, |(.., quick)| profile.of(times) * quick)
}

/// Blocks of samples in a round at most, where each wears the disk: none is taken again because it was
/// disturbed.
const WRITE_BLOCKS: [usize; 3] = [3, 3, 2];

/// Buffers of one point at most: half of the memory.
fn buffers(env: &Env, block_bytes: u64, wanted: u64) -> u64 {
    wanted.min(env.memory_bytes / 2 / block_bytes)
}

/// The points; `deep` is the engine of all depths but 1. Blocks that are alone under way come first, apart
/// from the others: between deep queues they took 56 us on a disk that needs 64 for them otherwise, as if
/// something below were still awake.
fn plan(env: &Env, way: Way, deep: Engine) -> Vec<Planned<Blocks>> {
    let profile = env.settings.profile;
    let mut planned: Vec<Planned<Blocks>> = GRID
        .into_iter()
        .filter(|(block_bytes, depth, priority, _)| {
            *priority <= deepest_priority(profile, way)
                && buffers(env, *block_bytes, u64::from(*depth)) == u64::from(*depth)
        })
        .map(|(block_bytes, depth, priority, _)| {
            let engine = if depth == 1 { Engine::Psync } else { deep };
            let point = Blocks { block_bytes, queue_depth: depth, path: DIRECT, engine };
            let rank = match (block_bytes, depth, way) {
                (KIB_4, 1, Way::Read) => Rank::Headline,
                (KIB_4, 1 | 32, _) => env.headline_but_quick(Rank::Curve),
                _ => Rank::Curve,
            };
            Planned {
                rank,
                priority,
                group: u16::from(depth > 1),
                // Buffers whose every page is touched, and a ring.
                setup_s: 3e-4
                    + (block_bytes * u64::from(depth)) as f64 / 4e9
                    + if is_warmed(way, &point) { WARM_UP_S } else { 0.0 }
                    + if seeks_at(way, &point) { seek_s(profile) } else { 0.0 },
                block_s: 1.1 * read_s(profile, block_bytes, depth),
                ..Planned::new(point)
            }
        })
        .collect();
    if way == Way::Write {
        for planned in &mut planned {
            let Blocks { block_bytes, queue_depth: depth, .. } = planned.point;
            let bytes = writes(profile, block_bytes, depth) * block_bytes;
            planned.most_blocks = profile.of(WRITE_BLOCKS);
            planned.written_bytes = bytes;
            // At a GB/s, or as fast as requests are answered.
            let each_s = 12e-6 + 110e-6 / f64::from(depth);
            planned.block_s = (bytes as f64 / 1e9).max(writes(profile, block_bytes, depth) as f64 * each_s);
            planned.setup_s = 3e-4 + bytes as f64 / 2e9;
        }
    }
    planned
}

/// Most bytes of buffers that a session of these points holds: those of one point.
fn memory_bytes(env: &Env, way: Way, points: &[Planned<Blocks>]) -> u64 {
    let of_point = |planned: &Planned<Blocks>| {
        let Blocks { block_bytes, queue_depth, .. } = planned.point;
        let wanted = match way {
            Way::Read => u64::from(queue_depth),
            Way::Write => writes(env.settings.profile, block_bytes, queue_depth),
        };
        buffers(env, block_bytes, wanted) * block_bytes
    };
    points.iter().map(of_point).max().unwrap_or(0)
}

/// The first and the second half of a point's blocks may differ so much; repeats on a shared machine spread
/// by up to 80 % of the least.
const HALVES: f64 = 2.0;
/// Rates that agree so well are one rate.
const SAME: f64 = 1e-3;
/// From this share of the best rate on a queue is saturated.
const SATURATED: f64 = 0.9;

fn conclude<M: Marker>(figures: &[Figure<Random<M>>]) -> Findings {
    // A point that is not like itself says nothing of the others, and nothing is concluded from it.
    let like = figures.iter().filter(|figure| unlike(figure).is_none());
    let rates: Vec<(Blocks, f64)> =
        like.filter_map(|figure| Some((figure.point, figure.details.as_ref()?.rate_per_s))).collect();
    let best = best_rates(&rates);
    let fast_enough = disk::fastest_answered_by_a_device(figures.iter().map(|figure| figure.result.p50));
    let mut sanity = vec![OfPoint::from(fast_enough)];
    sanity.extend(own_rates(&best).map(OfPoint::from));
    sanity.extend(halves(figures));
    Findings {
        saturation: best.iter().filter_map(|(bytes, best)| saturation(&rates, *bytes, *best)).collect(),
        sanity,
        rules: solid_state_beats_spinning(figures).into_iter().collect(),
    }
}

/// For each block size, ascending, its highest rate.
fn best_rates(rates: &[(Blocks, f64)]) -> Vec<(u64, f64)> {
    let mut best = BTreeMap::new();
    for (point, rate) in rates {
        let most: &mut f64 = best.entry(point.block_bytes).or_insert(*rate);
        *most = most.max(*rate);
    }
    best.into_iter().collect()
}

/// None where one depth was measured.
fn saturation(rates: &[(Blocks, f64)], block_bytes: u64, best: f64) -> Option<Saturation> {
    let own = rates.iter().filter(|(point, _)| point.block_bytes == block_bytes);
    let mut rates: Vec<(u32, f64)> = own.map(|(point, rate)| (point.queue_depth, *rate)).collect();
    rates.sort_by_key(|(depth, _)| *depth);
    let deepest = rates.last()?.0;
    let (depth, rate_per_s) = *rates.iter().find(|(_, rate)| *rate >= SATURATED * best)?;
    (rates.len() > 1).then_some(Saturation { block_bytes, depth, rate_per_s, reached: depth < deepest })
}

/// Rates that are the same for all block sizes, that is bandwidth over rate equal to the block size
/// everywhere, are a limiter's, or one figure under two names.
fn own_rates(best: &[(u64, f64)]) -> Option<Sanity> {
    let (first, others) = best.split_first()?;
    if others.is_empty() {
        return None;
    }
    let same = others.iter().all(|(_, rate)| (rate / first.1 - 1.0).abs() <= SAME);
    let reported = |(bytes, rate): &(u64, f64)| format!("{} {rate:.0} a second", binary_size(*bytes));
    let reported: Vec<String> = best.iter().map(reported).collect();
    let detail = format!("{}; one rate for all would point to a limiter", reported.join(", "));
    Some(Sanity { rule: "each block size has its own rate".into(), holds: !same, detail })
}

/// How many times the rate of the first half of its blocks the second half had, where that is beyond what a
/// busy machine does.
fn unlike<M: Marker>(figure: &Figure<Random<M>>) -> Option<f64> {
    let times = figure.details.as_ref()?.second_half_to_first?;
    (!(HALVES.recip()..=HALVES).contains(&times)).then_some(times)
}

/// A first half unlike the second is a cache that filled, or a first touch. Each point for itself: a noise at
/// one depth is none of the others'.
fn halves<M: Marker>(figures: &[Figure<Random<M>>]) -> Vec<OfPoint> {
    let rule = |holds, detail| Sanity { rule: "the first run is like the second".into(), holds, detail };
    let broken = |figure: &Figure<Random<M>>| {
        let times = unlike(figure)?;
        let detail = format!("the second half of its blocks had {times:.2} times the rate of the first");
        Some(OfPoint { rule: rule(false, detail), point: Some(figure.point) })
    };
    let broken: Vec<OfPoint> = figures.iter().filter_map(broken).collect();
    let known = figures.iter().filter_map(|figure| figure.details.as_ref()?.second_half_to_first).count();
    if broken.is_empty() && known > 0 {
        let detail = format!("the halves of {known} points differ by less than {HALVES} times");
        return vec![OfPoint::from(rule(true, detail))];
    }
    broken
}

/// What random reads of 4 KiB, one at a time, take on either kind, ms: flash on its bus 0.01 to 0.2; a
/// platter half a rotation (4.2 at 7,200 a minute) and more, to 14.6 with an arm's average way at 5,400.
const SOLID_MS: [f64; 2] = [0.01, 0.2];
const SPINNING_MS: [f64; 2] = [4.0, 15.0];

/// The third rule that is said of disks. One disk cannot decide it; what it is, and what its kind and the
/// other take elsewhere, is reported.
fn solid_state_beats_spinning<M: Marker>(figures: &[Figure<Random<M>>]) -> Option<Claim> {
    let alone = figures.iter().find(|own| (own.point.block_bytes, own.point.queue_depth) == (KIB_4, 1))?;
    let seek = alone.details.as_ref()?.seek.as_ref()?;
    // What rounds to nothing has no sign.
    let us = |ns: f64| format!("{:.0} µs", (ns / 1e3).round() + 0.0);
    let kind = match seek.medium.as_str() {
        "undecided" => "not known what it is",
        known => known,
    };
    let [low, high] = seek.interval_ns.map(us);
    let [near, far, more] = [seek.near_ns, seek.far_ns, seek.difference_ns].map(us);
    let reported = format!(
        ": a read {} behind the last one takes {near}, one far away {far} ({more} more, 95 % interval {low} \
            to {high}); {}",
        binary_size(NEAR_BYTES),
        seek.reason,
    );
    let flag = seek.rotational_flag.map_or_else(String::new, |flag| {
        format!("; the kernel's flag \"rotational\" is {} and is ignored", u8::from(flag))
    });
    let ([solid, solid_most], [spinning, spinning_most]) = (SOLID_MS, SPINNING_MS);
    let detail = format!(
        "undecided here, where there is one disk. By its seeks it is {kind}{reported}. A random 4 KiB block \
            takes {:.2} ms here, \
{solid} to {solid_most} ms from solid state elsewhere and {spinning} to {spinning_most} ms from spinning \
disks{flag}",
        alone.result.p50 / 1e6,
    );
    Some(Claim { rule: "solid state beats spinning", verdict: Holds::Undecided, detail })
}

#[cfg(test)]
mod tests;
