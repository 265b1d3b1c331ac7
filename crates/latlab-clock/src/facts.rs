//! What is known about the clock of a run; stored in every run file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the ticks come from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// x86 time stamp counter.
    Tsc,
    /// Virtual counter of the ARM generic timer.
    Cntvct,
    /// `clock_gettime` or what the system has instead.
    Os,
    /// Moved by a test, not by time.
    Simulated,
}

/// What an empty timed region reads, in nanoseconds: the instrument's own share of every single reading.
///
/// Percentiles are quantised to [`ClockFacts::quantum_ns`]; subtracting them from percentiles of other
/// regions is wrong. Subtracting `mean` from a mean is right, since the random phase of the quantum averages
/// out.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct Overhead {
    /// Median over blocks of the block's mean, ns: one interrupt cannot move it.
    pub mean: f64,
    /// Median, ns.
    pub p50: f64,
    /// 99th percentile, ns.
    pub p99: f64,
    /// Smallest, ns.
    pub min: f64,
    /// Empty regions timed.
    pub samples: u64,
}

/// The clock's measured properties.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct ClockFacts {
    /// Where the ticks come from.
    pub kind: ClockKind,
    /// What brackets a timed region and why, for the reader of a report.
    pub fences: String,
    /// Ticks per nanosecond, calibrated against the system's raw monotonic clock.
    pub ticks_per_ns: f64,
    /// Bound of the error of `ticks_per_ns` against that clock, parts per million. How far the system's clock
    /// itself is from true seconds is not known here.
    pub rate_error_ppm: f64,
    /// The step in which readings advance, ns: greatest common divisor of the differences seen.
    pub quantum_ns: f64,
    /// An empty timed region.
    pub overhead_ns: Overhead,
    /// Whether the CPU promises a counter of constant rate in all power states; absent where nobody says.
    pub invariant: Option<bool>,
    /// Why the CPU's counter is not used, where it is not.
    pub why_not_hardware: Option<String>,
    /// Readings that were smaller than the one before them, seen while opening.
    pub backwards: u64,
}
