//! What the probes of the disk say alike: how a file is reached and by what, and what is found of it.

use std::borrow::Cow;

use latlab_harness::{Env, ProbeError, Stamps};
use latlab_record::Check;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a file is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Access {
    /// Past the page cache.
    Direct,
    /// Through the page cache, which holds nothing of the file.
    BufferedCold,
    /// Through the page cache, which holds what is read.
    BufferedWarm,
    /// Into the page cache.
    Buffered,
    /// Into the page cache, and flushed after each block.
    BufferedFsyncEach,
    /// Into the page cache, and flushed once after all blocks.
    BufferedFsyncEnd,
}

impl Access {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

pub(crate) const DIRECT: Access = Access::Direct;
pub(crate) const COLD: Access = Access::BufferedCold;
pub(crate) const WARM: Access = Access::BufferedWarm;
pub(crate) const BUFFERED: Access = Access::Buffered;
pub(crate) const FSYNC_EACH: Access = Access::BufferedFsyncEach;
pub(crate) const FSYNC_END: Access = Access::BufferedFsyncEnd;

/// Which way the blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// What carries transfers out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// One system call after the other.
    Psync,
    /// Several at once, by one ring.
    IoUring,
    /// A thread for each.
    Threads,
}

/// A rule of which one knows beforehand that it holds where figures are sound, and what was seen.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sanity {
    pub(crate) rule: Cow<'static, str>,
    pub(crate) holds: bool,
    pub(crate) detail: String,
}

/// A rule that people hold of disks, and what is seen of it here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    pub(crate) rule: &'static str,
    pub(crate) verdict: Holds,
    pub(crate) detail: String,
}

/// Whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Holds {
    True,
    False,
    Undecided,
}

/// How much of the mean time of an operation its requests were with the device and its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DevicePart {
    /// Means of all operations.
    Reported {
        /// The whole operation, ns.
        operation_mean_ns: f64,
        /// Its requests, ns.
        device_mean_ns: f64,
        /// What the steps of the device's counter may add to that or take from it, ns.
        error_ns: f64,
        /// How many they were.
        requests_per_operation: f64,
    },
    /// The system does not say.
    NotReported {
        /// For this reason, a sentence.
        #[serde(rename = "not_told")]
        not_reported: String,
    },
}

/// Why there is nothing to measure without a real clock.
pub(crate) const SIMULATED: &str = "simulated time does not pass on a disk";

pub(crate) fn stamps(env: &Env) -> Result<Stamps, ProbeError> {
    Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other(SIMULATED.to_owned()))
}

/// Puts what was asked for before what the system answered.
pub(crate) fn system<E: Into<std::io::Error>>(what: &str) -> impl FnOnce(E) -> ProbeError {
    move |error| ProbeError::System { what: what.to_owned(), source: error.into() }
}

pub(crate) fn check(name: &str, ok: bool, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), ok, detail: detail.into() }
}

/// One that says what was found, or why it does not hold.
pub(crate) fn reported(name: &str, found: Result<String, String>) -> Check {
    check(name, found.is_ok(), found.unwrap_or_else(|text| text))
}

/// What was verified, and the first of it that was wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verified {
    pub(crate) all: u64,
    wrong: Option<String>,
}

impl Verified {
    pub(crate) fn note(&mut self, found: Result<(), String>) {
        self.join(Self { all: 1, wrong: found.err() });
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.all += other.all;
        self.wrong = self.wrong.take().or(other.wrong);
    }

    /// That there was something and nothing of it was wrong.
    pub(crate) fn check(&self, name: &str, held: String) -> Check {
        check(name, self.all > 0 && self.wrong.is_none(), self.wrong.clone().unwrap_or(held))
    }
}

/// A quantile of values in any order; `None` of nothing.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| latlab_stats::quantile(&sorted, q))
}

/// Where the nth block of samples of a point begins: stretches of so many bytes follow each other, round and
/// round, from one that the seed decides.
pub(crate) fn nth_stretch(file_bytes: u64, stretch_bytes: u64, seed: u64, nth: u64) -> u64 {
    let stretches = (file_bytes / stretch_bytes).max(1);
    (seed % stretches + nth) % stretches * stretch_bytes
}

/// No device answers a direct transfer faster, ns: the fastest storage attached to a bus needs several us,
/// unwritten extents 0.6.
pub(crate) const FASTEST_DEVICE_NS: f64 = 2_000.0;

/// The sanity rule for direct transfers: their median is not below what any device needs.
pub(crate) fn answered_by_a_device(median_ns: f64) -> Check {
    let [median, fastest] = [median_ns, FASTEST_DEVICE_NS].map(|ns| ns / 1e3);
    let detail = format!("median {median:.1} µs; below {fastest:.0} µs only memory answers");
    check("answered by a device", median_ns >= FASTEST_DEVICE_NS, detail)
}

/// The same of the fastest of several medians.
pub(crate) fn fastest_answered_by_a_device(medians: impl Iterator<Item = f64>) -> Sanity {
    let check = answered_by_a_device(medians.fold(f64::INFINITY, f64::min));
    Sanity { rule: check.name.into(), holds: check.ok, detail: check.detail }
}
