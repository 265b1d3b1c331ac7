//! What follows from a curve of bandwidth by block size: the affine fit, the best block, and the rules that
//! people hold of block sizes.

use std::collections::BTreeMap;

use super::words::{Access, COLD, Claim, DIRECT, DevicePart, Engine, FASTEST_DEVICE_NS, Holds, Sanity, WARM};
use latlab_probes_shared::prelude::*;

/// What a job of everyday size has to read, bytes.
const JOB_BYTES: f64 = 30e9;
/// A block counts as the best when no larger one is faster by more.
const AS_GOOD: f64 = 0.95;
/// Figures that differ by less decide nothing.
const UNDECIDED: f64 = 1.25;

/// Blocks of a size, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    pub(crate) block_bytes: u64,
    pub(crate) path: Access,
    engine: Engine,
}

impl Blocks {
    /// With one system call each.
    pub(crate) fn of(path: Access, block_bytes: u64) -> Self {
        Self { block_bytes, path, engine: Engine::Psync }
    }
}

/// How fast the blocks of a point were.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// All bytes over all time.
    pub(crate) bytes_per_s: f64,
    /// The same of the slowest and of the fastest block of samples.
    pub(crate) bytes_per_s_between_blocks: Option<[f64; 2]>,
    /// What the beginning of a stream takes more than as many bytes after it, ns: read-ahead begins small.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) start_ns: Option<f64>,
    /// Where each block is a request, or requests, of the device.
    pub(crate) device_time: Option<DevicePart>,
}

/// What one way through a file says of its disk.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Findings {
    fits: Vec<Fit>,
    best_block_bytes: Option<u64>,
    rules: [Claim; 1],
    sanity: Vec<Sanity>,
}

/// The blocks of one path, and the line through their times, `alpha + bytes / beta`, where they are one.
#[derive(Debug, Serialize, JsonSchema)]
struct Fit {
    path: Access,
    /// Whether the time of a block is its median or its share of everything.
    from: From,
    /// What reading or writing 30 GB would take, by block size.
    thirty_gb: Vec<Job>,
    #[serde(flatten)]
    line: Option<Line>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum From {
    Medians,
    Totals,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Job {
    block_bytes: u64,
    seconds: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    /// The price of a call, ns.
    alpha_ns: f64,
    /// The bandwidth of endless blocks.
    beta_bytes_per_s: f64,
    /// By block size, the measured time over the line's.
    residuals: BTreeMap<String, f64>,
    half_bandwidth_block_bytes: f64,
    ninety_percent_block_bytes: f64,
}

/// What a session of these points holds: one buffer for the largest block, bytes.
pub(crate) fn largest_block(points: &[Planned<Blocks>]) -> u64 {
    points.iter().map(|planned| planned.point.block_bytes).max().unwrap_or(0)
}

/// What one way through a file says of its disk: a fit for each of these paths, which for
/// `totals` is of whole stretches, and the best block on the first of the paths `best` that was measured.
/// Whether reading beats writing takes both ways, and is concluded by who reads both. `bandwidth` of a
/// point's details.
pub(crate) fn conclude<P: Probe<Point = Blocks>>(
    figures: &[Figure<P>],
    bandwidth: impl Fn(&P::Details) -> &Bandwidth,
    paths: &[Access],
    totals: &[Access],
    best: &[Access],
) -> Option<Findings> {
    let measured = |figure: &Figure<P>| {
        let bytes_per_s = bandwidth(figure.details.as_ref()?).bytes_per_s;
        let Blocks { path, block_bytes, .. } = figure.point;
        Some(Measured { path, block_bytes, p50_ns: figure.result.p50, bytes_per_s })
    };
    let mut all: Vec<Measured> = figures.iter().filter_map(measured).collect();
    all.sort_by_key(|point| point.block_bytes);
    (!all.is_empty()).then(|| Findings {
        fits: fits(&all, paths, totals),
        best_block_bytes: best_block(&all, best).map(|best| best.block_bytes),
        rules: [large_beat_small(&all)],
        sanity: sanity(&all),
    })
}

/// One point of the curve. Those of a path are in the order of their block sizes.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    path: Access,
    block_bytes: u64,
    p50_ns: f64,
    /// All bytes over all time.
    bytes_per_s: f64,
}

/// One fit a path. Where one flush at the end belongs to all blocks (`totals`), the time of a block is its
/// share of everything, else the median.
fn fits(all: &[Measured], paths: &[Access], totals: &[Access]) -> Vec<Fit> {
    let fit = |path: &Access| {
        let own: Vec<&Measured> = all.iter().filter(|point| point.path == *path).collect();
        let from = if totals.contains(path) { From::Totals } else { From::Medians };
        let time = |point: &&Measured| {
            let bytes = point.block_bytes as f64;
            let ns = match from {
                From::Totals => bytes * 1e9 / point.bytes_per_s,
                From::Medians => point.p50_ns,
            };
            (bytes, ns)
        };
        let job = |point: &&Measured| Job {
            block_bytes: point.block_bytes,
            seconds: rounded(JOB_BYTES / point.bytes_per_s),
        };
        let times: Vec<(f64, f64)> = own.iter().map(time).collect();
        // What the page cache reads ahead is no such line: its first blocks wait, the others do not.
        let line = if *path == COLD { None } else { latlab_stats::affine(&times) };
        let line = line.map(|line| Line {
            alpha_ns: rounded(line.alpha_ns),
            beta_bytes_per_s: rounded(line.beta_bytes_per_s()),
            residuals: times
                .iter()
                .map(|(bytes, ns)| (format!("{bytes:.0}"), rounded(ns / line.ns(*bytes))))
                .collect(),
            half_bandwidth_block_bytes: line.block_for_share(0.5).round(),
            ninety_percent_block_bytes: line.block_for_share(0.9).round(),
        });
        let thirty_gb = own.iter().map(job).collect();
        (!own.is_empty()).then_some(Fit { path: *path, from, thirty_gb, line })
    };
    paths.iter().filter_map(fit).collect()
}

/// The smallest block that no larger or smaller one beats by more than 5 %, on the first of these paths that
/// was measured.
fn best_block(all: &[Measured], paths: &[Access]) -> Option<Measured> {
    let own = paths
        .iter()
        .map(|path| all.iter().filter(|point| point.path == *path).collect::<Vec<_>>())
        .find(|own| !own.is_empty())?;
    let fastest = own.iter().map(|point| point.bytes_per_s).fold(0.0, f64::max);
    own.into_iter().find(|point| point.bytes_per_s >= AS_GOOD * fastest).cloned()
}

/// Large blocks beat small ones: 1 MiB and more against 4 KiB and less.
fn large_beat_small(all: &[Measured]) -> Claim {
    let fastest = |wanted: &dyn Fn(u64) -> bool| {
        all.iter()
            .filter(|point| point.path == DIRECT && wanted(point.block_bytes))
            .max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    };
    let (small, large) = (fastest(&|bytes| bytes <= 4096), fastest(&|bytes| bytes >= 1 << 20));
    let claim = |verdict, detail| Claim { rule: "large blocks beat small ones", verdict, detail };
    let (Some(small), Some(large)) = (small, large) else {
        return claim(Holds::Undecided, "small and large blocks were not both measured".to_owned());
    };
    let ratio = large.bytes_per_s / small.bytes_per_s;
    let verdict = if ratio > UNDECIDED {
        Holds::True
    } else if ratio < 1.0 / UNDECIDED {
        Holds::False
    } else {
        Holds::Undecided
    };
    let blocks =
        |own: &Measured| format!("{} in blocks of {}", rate(own.bytes_per_s), binary_size(own.block_bytes));
    claim(verdict, format!("direct: {}, {}: {ratio:.1} times", blocks(large), blocks(small)))
}

/// What cannot be, with what was seen.
fn sanity(all: &[Measured]) -> Vec<Sanity> {
    let mut rules = Vec::new();
    let mut rule =
        |rule: &'static str, holds, detail| rules.push(Sanity { rule: rule.into(), holds, detail });
    let direct: Vec<&Measured> = all.iter().filter(|point| point.path == DIRECT).collect();
    if let Some(fastest) = direct.iter().map(|point| point.p50_ns).reduce(f64::min) {
        let detail = format!("the fastest takes {:.1} µs", fastest / 1e3);
        rule("no direct median is below what a device needs", fastest >= FASTEST_DEVICE_NS, detail);
    }
    if let (Some(first), Some(last)) = (direct.first(), direct.last())
        && first.block_bytes < last.block_bytes
    {
        let [first_us, last_us] = [first, last].map(|own| own.p50_ns / 1e3);
        let detail = format!(
            "{first_us:.1} µs for {} bytes, {last_us:.1} µs for {}",
            first.block_bytes, last.block_bytes
        );
        rule("a transfer of more bytes does not take less time", first_us <= last_us, detail);
    }
    let cold_of = |warm: &Measured| {
        all.iter().find(|point| point.path == COLD && point.block_bytes == warm.block_bytes)
    };
    let pairs = all
        .iter()
        .filter(|point| point.path == WARM)
        .filter_map(|warm| Some((warm, cold_of(warm)?, warm.bytes_per_s / cold_of(warm)?.bytes_per_s)));
    if let Some((warm, cold, _)) = pairs.min_by(|a, b| a.2.total_cmp(&b.2)) {
        let [warm_rate, cold_rate] = [warm, cold].map(|own| rate(own.bytes_per_s));
        let size = binary_size(warm.block_bytes);
        let detail = format!("{warm_rate} warm, {cold_rate} cold in blocks of {size}");
        rule(
            "an empty page cache is not faster than a full one",
            warm.bytes_per_s >= cold.bytes_per_s,
            detail,
        );
    }
    rules
}

/// `1.25 GB/s`, `70 MB/s`, `0.49 MB/s`.
pub(crate) fn rate(bytes_per_s: f64) -> String {
    if bytes_per_s >= 1e9 {
        format!("{:.2} GB/s", bytes_per_s / 1e9)
    } else if bytes_per_s >= 1e7 {
        format!("{:.0} MB/s", bytes_per_s / 1e6)
    } else {
        format!("{:.2} MB/s", bytes_per_s / 1e6)
    }
}

/// Six digits: more are noise.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(5.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::words::FSYNC_END;
    use super::*;

    fn planted(path: Access, alpha_ns: f64, beta: f64) -> Vec<Measured> {
        [4096u64, 65_536, 1 << 20, 16 << 20]
            .map(|block_bytes| {
                let ns = alpha_ns + block_bytes as f64 * 1e9 / beta;
                Measured { path, block_bytes, p50_ns: ns, bytes_per_s: block_bytes as f64 * 1e9 / ns }
            })
            .to_vec()
    }

    #[test]
    fn a_planted_disk_is_described_as_planted() {
        let mut all = planted(DIRECT, 55_000.0, 1e9);
        all.extend(planted(WARM, 500.0, 8e9));
        all.extend(planted(COLD, 1_000.0, 0.9e9));
        let fits = json!(fits(&all, &[DIRECT, COLD, WARM], &[]));
        assert_eq!(fits.as_array().map(Vec::len), Some(3));
        let close =
            |value: &Value, expected: f64| (value.as_f64().expect("a number") / expected - 1.0).abs() < 1e-3;
        assert!(close(&fits[0]["half_bandwidth_block_bytes"], 55_000.0), "{}", fits[0]);
        assert!(close(&fits[0]["ninety_percent_block_bytes"], 9.0 * 55_000.0));
        assert!(close(&fits[0]["residuals"]["4096"], 1.0));
        assert!(fits[1].get("alpha_ns").is_none(), "read-ahead is no line");
        // 30 GB in blocks of 4 KiB: 7.3 million times 59 us.
        assert!(close(&fits[0]["thirty_gb"][0]["seconds"], 30e9 / 4096.0 * 59.096e-6));
        let best = best_block(&all, &[DIRECT]).expect("measured");
        assert_eq!(best.block_bytes, 1 << 20, "95.3 % of what 16 MiB reach");
        assert_eq!(large_beat_small(&all).verdict, Holds::True);
        assert!(sanity(&all).iter().all(|rule| rule.holds));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let all = planted(DIRECT, 600.0, 100e9);
        assert!(!sanity(&all)[0].holds);
        let mut all = planted(WARM, 55_000.0, 1e9);
        all.extend(planted(COLD, 1_000.0, 2e9));
        assert!(!sanity(&all)[0].holds);
        assert_eq!(large_beat_small(&all).verdict, Holds::Undecided);
        let flat: Vec<Measured> = planted(DIRECT, 1.0, 1e9);
        assert_eq!(large_beat_small(&flat).verdict, Holds::Undecided);
        assert!(best_block(&[], &[DIRECT]).is_none());
    }

    #[test]
    fn a_slow_disk_has_a_rate_too() {
        assert_eq!(rate(4096.0 / 8.3e-3), "0.49 MB/s");
        assert_eq!([2.5e6, 70e6, 1.25e9].map(rate), ["2.50 MB/s", "70 MB/s", "1.25 GB/s"]);
    }

    #[test]
    fn a_flush_at_the_end_belongs_to_all_blocks() {
        let mut all = planted(FSYNC_END, 2_000.0, 5e9);
        for point in &mut all {
            point.bytes_per_s /= 4.0;
        }
        let fits = json!(fits(&all, &[FSYNC_END], &[FSYNC_END]));
        let beta = fits[0]["beta_bytes_per_s"].as_f64().expect("a line");
        assert!((beta / 1.25e9 - 1.0).abs() < 1e-3, "{beta}");
    }
}
