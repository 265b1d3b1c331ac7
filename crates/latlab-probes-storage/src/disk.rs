//! What the probes of the disk share: the test file and its size, whether there is a disk to measure, the way to its blocks, and the
//! evidence that they were read from there.
//!
//! ```text
//! support ──► Target (test file, or the user's) ──► Flow: Engine + Places ──► Block::in_flight
//!                │ chill: evicted, looked at           │ each block's header
//!                └────────────── Evidence ◄────────────┘ bytes that the kernel counted ──► checks
//! ```

#[cfg_attr(target_os = "linux", path = "disk/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "disk/elsewhere.rs")]
mod system;

pub(crate) mod curve;

use std::borrow::Cow;

use latlab_clock::Source;
use latlab_harness::{Env, ProbeError, Stamps, Support};
use latlab_record::{Check, binary_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use system::lay_out;
pub(crate) use system::*;

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
    /// As points have it.
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
    Told {
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
    NotTold {
        /// For this reason, a sentence.
        not_told: String,
    },
}

/// Why there is nothing to measure without a real clock.
pub(crate) const SIMULATED: &str = "simulated time does not pass on a disk";

/// The time source of a session.
///
/// # Errors
/// Where time is simulated.
pub(crate) fn stamps(env: &Env) -> Result<Stamps, ProbeError> {
    Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other(SIMULATED.to_owned()))
}

/// Puts what was asked for before what the system answered.
pub(crate) fn system<E: Into<std::io::Error>>(what: &str) -> impl FnOnce(E) -> ProbeError {
    move |error| ProbeError::System { what: what.to_owned(), source: error.into() }
}

/// A check of a record.
pub(crate) fn check(name: &str, ok: bool, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), ok, detail: detail.into() }
}

/// One that says what was found, or why it does not hold.
pub(crate) fn told(name: &str, found: Result<String, String>) -> Check {
    check(name, found.is_ok(), found.unwrap_or_else(|text| text))
}

/// A quantile of values in any order; `None` of nothing.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| latlab_stats::quantile(&sorted, q))
}

/// The test file in the quick, standard and thorough profile.
const FILE_BYTES: [u64; 3] = [96 << 20, 1 << 30, 4 << 30];
/// A smaller file is no disk's figure: its 64 KiB blocks would be 128 different ones.
const SMALLEST_FILE: u64 = 8 << 20;

/// Size of the test file: the profile's, or what 3/8 of the bytes that may be written (the rest is for what is written into
/// it) and half of the room leave. Once it is laid out it keeps its size. 0 where there is no disk, or only a file of the user's to be read.
pub(crate) fn file_bytes(env: &Env) -> u64 {
    if env.settings.file.is_some() {
        return 0;
    }
    laid_out(env).unwrap_or_else(|| {
        let bytes = wanted_bytes(env).min(of_budget(env)).min(room(env).map_or(0, |bytes| bytes / 2));
        bytes / (1 << 20) * (1 << 20)
    })
}

/// The rest is for what is written into it.
fn of_budget(env: &Env) -> u64 {
    env.disk.budget().limit_bytes() / 8 * 3
}

fn wanted_bytes(env: &Env) -> u64 {
    env.settings.profile.of(FILE_BYTES)
}

/// Where the nth block of samples of a point begins: stretches of so many bytes follow each other, round and round, from one that the seed decides.
pub(crate) fn nth_stretch(file_bytes: u64, stretch_bytes: u64, seed: u64, nth: u64) -> u64 {
    let stretches = (file_bytes / stretch_bytes).max(1);
    (seed % stretches + nth) % stretches * stretch_bytes
}

/// Whether there is a disk to measure. Makes no file.
pub(crate) fn support(env: &Env) -> Support {
    if matches!(env.clock.source, Source::Simulated(_)) {
        return Support::No(SIMULATED.to_owned());
    }
    if let Err(reason) = room(env) {
        return Support::No(reason);
    }
    if env.settings.file.is_some() {
        return Support::Yes;
    }
    let (bytes, wanted) = (file_bytes(env), wanted_bytes(env));
    if let Some(cut) = cut_short(env) {
        let text = format!(
            "the test file has {} and not {}: writing it was given {:.1} s, and the disk was slower",
            binary_size(bytes),
            binary_size(cut.wanted_bytes),
            cut.within.as_secs_f64()
        );
        return if bytes < SMALLEST_FILE {
            Support::No(format!("{text}; a longer profile or --budget gives it more"))
        } else {
            Support::Degraded(text)
        };
    }
    if bytes < SMALLEST_FILE {
        let least = binary_size(SMALLEST_FILE);
        let left = binary_size(bytes);
        return Support::No(if of_budget(env) < SMALLEST_FILE {
            format!("a test file of {least} is the least, and --max-bytes leaves {left} for one: raise it")
        } else {
            format!(
                "a test file of {least} is the least, and {left} are left for one: 5 % of the file system, at least 1 GiB, stay free for others, and no file may be larger than ulimit -f says; free some space, or name another directory with --dir"
            )
        });
    }
    if bytes < wanted {
        return Support::Degraded(format!(
            "the test file has {} and not {}: no more may be written, or there is no room",
            binary_size(bytes),
            binary_size(wanted)
        ));
    }
    Support::Yes
}

/// [`support`] for a probe that writes: a file of the user's is only read.
pub(crate) fn support_writing(env: &Env) -> Support {
    if env.settings.file.is_some() {
        return Support::No("a file of the user's (--file) is only read".to_owned());
    }
    support(env)
}

/// No device answers a direct transfer faster, ns: the fastest storage attached to a bus needs several us, unwritten extents 0.6.
pub(crate) const FASTEST_DEVICE_NS: f64 = 2_000.0;

/// The sanity rule for direct transfers: their median is not below what any device needs.
pub(crate) fn answered_by_a_device(median_ns: f64) -> Check {
    let (median_us, fastest_us) = (median_ns / 1e3, FASTEST_DEVICE_NS / 1e3);
    let detail = format!("median {median_us:.1} us; below {fastest_us:.0} us nothing but memory answers");
    check("answered by a device", median_ns >= FASTEST_DEVICE_NS, detail)
}

/// The same of the fastest of several medians.
pub(crate) fn fastest_answered_by_a_device(medians: impl Iterator<Item = f64>) -> Sanity {
    let check = answered_by_a_device(medians.fold(f64::INFINITY, f64::min));
    Sanity { rule: check.name.into(), holds: check.ok, detail: check.detail }
}

#[cfg(test)]
mod tests;
