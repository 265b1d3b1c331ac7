//! What random reads and random writes share: block sizes and depths, how much of each, and what follows from them.

use latlab_harness::{AnyProbe, AnySession, Env, Planned, PointResult, ProbeError, Rank, Spec, Support};
use latlab_record::{Header, Point, Profile, Record};
use serde_json::{Value, json};

use crate::disk::{self, DIRECT};

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
pub(super) mod work;

pub(super) const KIB_4: u64 = 4 << 10;
const KIB_64: u64 = 64 << 10;
const MIB: u64 = 1 << 20;

/// Which way the blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

/// The probe of either way.
pub struct Random {
    pub(super) way: Way,
    pub(super) spec: &'static Spec,
}

impl AnyProbe for Random {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn supports(&self, env: &Env) -> Support {
        match self.way {
            Way::Read => disk::support(env),
            Way::Write => disk::support_writing(env),
        }
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        plan(env, self.way, work::deep_engine())
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        memory_bytes(env, self.way)
    }

    fn test_file_bytes(&self, env: &Env) -> u64 {
        disk::file_bytes(env)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env, self.way)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        conclude(self.spec, results)
    }
}

/// Block size, depth, priority, and writes of a block of samples in the quick profile (about fifteen times the depth, as much as ten
/// milliseconds take on a disk behind a fast bus); in the order in which they are given up last.
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
    match (profile, way) {
        (Profile::Quick, _) => 1,
        // What is written wears the disk: no more than the budget of the profile.
        (Profile::Standard, Way::Write) => 2,
        (Profile::Standard, Way::Read) => 3,
        (Profile::Thorough, Way::Write) => 4,
        (Profile::Thorough, Way::Read) => 5,
    }
}

/// Seconds in which the reads of a block are begun. With less than eight rounds of the queue there is little to be said of it.
fn read_s(profile: Profile, block_bytes: u64, depth: u32) -> f64 {
    let least = profile.of([0.012, 0.02, 0.06]);
    // ns at 1 GB/s.
    f64::max(least, 8.0 * (block_bytes * u64::from(depth)) as f64 / 1e9)
}

/// Seconds of reads before those that count, where one at a time is under way: a CPU that mostly sleeps, and a disk that rests, answer
/// otherwise for the first tens of milliseconds. Writes are not warmed up: they wear the disk.
const WARM_UP_S: f64 = 0.1;

/// Whether each visit of this point begins with such reads.
fn is_warmed(way: Way, point: &Point) -> bool {
    way == Way::Read && sizes(point).1 == 1
}

/// A read so far behind the last one is near: farther than the platter turns while a program asks again, and on the same track.
const NEAR_BYTES: u64 = 128 << 10;
/// On another track.
const MIDDLE_BYTES: u64 = 4 << 20;
/// From this share of the file on a read is far away.
const FAR: f64 = 0.25;

/// Whether near and far reads are compared when this point is visited.
fn seeks_at(way: Way, point: &Point) -> bool {
    way == Way::Read && sizes(point) == (KIB_4, 1)
}

/// Seconds of near and far reads in one visit.
fn seek_s(profile: Profile) -> f64 {
    profile.of([0.004, 0.008, 0.02])
}

/// Writes of one block of samples, as planned.
fn writes(profile: Profile, block_bytes: u64, depth: u32) -> u64 {
    let quick = GRID
        .iter()
        .find(|(bytes, own, ..)| (*bytes, *own) == (block_bytes, depth))
        .map_or(0, |(.., writes)| *writes);
    match profile {
        Profile::Quick => quick,
        Profile::Standard if block_bytes > KIB_4 => quick,
        Profile::Standard => 2 * quick,
        Profile::Thorough if block_bytes > KIB_4 => 2 * quick,
        Profile::Thorough => 8 * quick,
    }
}

/// Blocks of samples in a round at most, where each wears the disk: none is taken again because it was disturbed.
const WRITE_BLOCKS: [usize; 3] = [3, 3, 2];

/// Buffers of one point at most: half of the memory.
fn buffers(env: &Env, block_bytes: u64, wanted: u64) -> u64 {
    wanted.min(env.memory_bytes / 2 / block_bytes)
}

/// The points; `deep` is the engine of all depths but 1. Blocks that are alone under way come first, apart from the others: between deep
/// queues they took 56 us on a disk that needs 64 for them otherwise, as if something below were still awake.
fn plan(env: &Env, way: Way, deep: &str) -> Vec<Planned> {
    let profile = env.settings.profile;
    let mut planned: Vec<Planned> = GRID
        .into_iter()
        .filter(|(block_bytes, depth, priority, _)| {
            *priority <= deepest_priority(profile, way)
                && buffers(env, *block_bytes, u64::from(*depth)) == u64::from(*depth)
        })
        .map(|(block_bytes, depth, priority, _)| {
            let engine = if depth == 1 { "psync" } else { deep };
            let point = Point {
                block_bytes: Some(block_bytes),
                queue_depth: Some(depth),
                path: Some(DIRECT.to_owned()),
                engine: Some(engine.to_owned()),
                ..Point::default()
            };
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
            let (block_bytes, depth) = sizes(&planned.point);
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

/// Block size and depth of a point of this plan.
fn sizes(point: &Point) -> (u64, u32) {
    (point.block_bytes.unwrap_or(KIB_4), point.queue_depth.unwrap_or(1))
}

/// Most bytes of buffers that a session holds: those of one point.
fn memory_bytes(env: &Env, way: Way) -> u64 {
    plan(env, way, "io_uring")
        .iter()
        .map(|planned| {
            let (block_bytes, depth) = sizes(&planned.point);
            let wanted = match way {
                Way::Read => u64::from(depth),
                Way::Write => writes(env.settings.profile, block_bytes, depth),
            };
            buffers(env, block_bytes, wanted) * block_bytes
        })
        .max()
        .unwrap_or(0)
}

/// The first and the second half of a point's blocks may differ so much; repeats on a shared machine spread by up to 80 % of the least.
const HALVES: f64 = 2.0;
/// Rates that agree so well are one rate.
const SAME: f64 = 1e-3;
/// From this share of the best rate on a queue is saturated.
const SATURATED: f64 = 0.9;

/// Where more depth gives no more, and whether the figures can be a disk's.
fn conclude(spec: &Spec, results: &[PointResult]) -> Vec<Record> {
    if results.is_empty() {
        return Vec::new();
    }
    // A point that is not like itself says nothing of the others, and nothing is concluded from it.
    let like: Vec<PointResult> = results.iter().filter(|result| unlike(result).is_none()).cloned().collect();
    let best = best_rates(&like);
    let saturation: Vec<Value> =
        best.iter().filter_map(|(block_bytes, best)| saturation(&like, *block_bytes, *best)).collect();
    let mut sanity = vec![fast_enough(results)];
    sanity.extend(own_rates(&best));
    sanity.extend(halves(results));
    let mut findings = json!({ "saturation": saturation, "sanity": sanity });
    if let Some(rule) = solid_state_beats_spinning(results) {
        findings["rules"] = json!([rule]);
    }
    vec![spec.derived(findings)]
}

pub(super) fn finding(result: &PointResult, name: &str) -> Option<f64> {
    result.findings.as_ref()?.get(name)?.as_f64()
}

/// For each block size, ascending, its highest rate.
fn best_rates(results: &[PointResult]) -> Vec<(u64, f64)> {
    let mut best: Vec<(u64, f64)> = Vec::new();
    for result in results {
        let (block_bytes, _) = sizes(&result.point);
        let Some(rate) = finding(result, "rate_per_s") else {
            continue;
        };
        match best.iter_mut().find(|(own, _)| *own == block_bytes) {
            Some((_, most)) => *most = most.max(rate),
            None => best.push((block_bytes, rate)),
        }
    }
    best.sort_by_key(|(block_bytes, _)| *block_bytes);
    best
}

/// The least depth that has nine tenths of the best rate; none where one depth was measured.
fn saturation(results: &[PointResult], block_bytes: u64, best: f64) -> Option<Value> {
    let mut rates: Vec<(u32, f64)> = results
        .iter()
        .filter(|result| sizes(&result.point).0 == block_bytes)
        .filter_map(|result| Some((sizes(&result.point).1, finding(result, "rate_per_s")?)))
        .collect();
    rates.sort_by_key(|(depth, _)| *depth);
    let deepest = rates.last()?.0;
    let (depth, rate) = rates.iter().find(|(_, rate)| *rate >= SATURATED * best)?;
    (rates.len() > 1).then(|| {
        json!({
            "block_bytes": block_bytes,
            "depth": depth,
            "rate_per_s": rate,
            // Saturated at the deepest queue that was tried is not known to be saturated.
            "reached": *depth < deepest,
        })
    })
}

fn rule(rule: &str, holds: bool, detail: &str) -> Value {
    json!({ "rule": rule, "holds": holds, "detail": detail })
}

pub(super) fn fast_enough(results: &[PointResult]) -> Value {
    let least = results.iter().map(|result| result.p50).fold(f64::INFINITY, f64::min);
    let check = disk::answered_by_a_device(least);
    rule("answered by a device", check.ok, &check.detail)
}

/// Rates that are the same for all block sizes, that is bandwidth over rate equal to the block size everywhere, are a limiter's, or one figure
/// under two names.
fn own_rates(best: &[(u64, f64)]) -> Option<Value> {
    let (first, others) = best.split_first()?;
    if others.is_empty() {
        return None;
    }
    let same = others.iter().all(|(_, rate)| (rate / first.1 - 1.0).abs() <= SAME);
    let told: Vec<String> = best
        .iter()
        .map(|(block_bytes, rate)| format!("{} {rate:.0} a second", latlab_record::binary_size(*block_bytes)))
        .collect();
    Some(rule(
        "each block size has its own rate",
        !same,
        &format!("{}; one rate for all would be a limiter's", told.join(", ")),
    ))
}

/// How many times the rate of the first half of its blocks the second half had, where that is beyond what a busy machine does.
fn unlike(result: &PointResult) -> Option<f64> {
    finding(result, "second_half_to_first").filter(|times| !(HALVES.recip()..=HALVES).contains(times))
}

const LIKE: &str = "the first run is like the second";

/// A first half unlike the second is a cache that filled, or a first touch. Each point for itself: a noise at one depth is none of the others'.
fn halves(results: &[PointResult]) -> Vec<Value> {
    let broken: Vec<Value> = results
        .iter()
        .filter_map(|result| {
            let times = unlike(result)?;
            let detail = format!("the second half of its blocks had {times:.2} times the rate of the first");
            let mut rule = rule(LIKE, false, &detail);
            rule["point"] = json!(result.point);
            Some(rule)
        })
        .collect();
    let known = results.iter().filter(|result| finding(result, "second_half_to_first").is_some()).count();
    if broken.is_empty() && known > 0 {
        return vec![rule(
            LIKE,
            true,
            &format!("the halves of {known} points differ by less than {HALVES} times"),
        )];
    }
    broken
}

/// What random reads of 4 KiB, one at a time, take on either kind, ms: flash on its bus 0.01 to 0.2; a platter half a rotation (4.2 at 7,200 a
/// minute) and more, to 14.6 with an arm's average way at 5,400.
const SOLID_MS: [f64; 2] = [0.01, 0.2];
const SPINNING_MS: [f64; 2] = [4.0, 15.0];

/// The third rule that is said of disks. One disk cannot decide it; what it is, and what its kind and the other take elsewhere, is told.
fn solid_state_beats_spinning(results: &[PointResult]) -> Option<Value> {
    let alone = results.iter().find(|result| sizes(&result.point) == (KIB_4, 1))?;
    let seek = alone.findings.as_ref()?.get("seek")?;
    let number = |name: &str| seek.get(name).and_then(Value::as_f64);
    let text = |name: &str| seek.get(name).and_then(Value::as_str);
    // What rounds to nothing has no sign.
    let us = |ns: f64| format!("{:.0} us", (ns / 1e3).round() + 0.0);
    let kind = match text("medium")? {
        "undecided" => "not known what it is",
        known => known,
    };
    let interval = seek["interval_ns"].as_array().and_then(|ends| ends.first_chunk());
    let told = match (number("near_ns"), number("far_ns"), number("difference_ns"), interval) {
        (Some(near), Some(far), Some(difference), Some([low, high])) => format!(
            ": a read {} behind the last one takes {}, one far away {} ({} more, 95 % interval {} to {}); {}",
            latlab_record::binary_size(NEAR_BYTES),
            us(near),
            us(far),
            us(difference),
            us(low.as_f64().unwrap_or(0.0)),
            us(high.as_f64().unwrap_or(0.0)),
            text("reason").unwrap_or_default(),
        ),
        _ => String::new(),
    };
    let flag = match seek.get("rotational_flag").and_then(Value::as_bool) {
        Some(flag) => {
            format!("; the kernel's flag \"rotational\" is {} and counts for nothing", u8::from(flag))
        }
        None => String::new(),
    };
    let detail = format!(
        "undecided here, where there is one disk. By its seeks it is {kind}{told}. A random 4 KiB block takes {:.2} ms here, \
{} to {} ms from solid state elsewhere and {} to {} ms from spinning disks{flag}",
        alone.p50 / 1e6,
        SOLID_MS[0],
        SOLID_MS[1],
        SPINNING_MS[0],
        SPINNING_MS[1],
    );
    Some(json!({
        "rule": "solid state beats spinning",
        "verdict": "undecided",
        "detail": detail,
    }))
}

#[cfg(test)]
mod tests;
