//! Systems without `clock_gettime`: the standard library's monotonic clock.

#[path = "silent.rs"]
mod silent;

use std::sync::OnceLock;
use std::time::Instant;

pub(crate) use silent::*;

/// There is one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawId;

pub(crate) const MONOTONIC: RawId = RawId;
pub(crate) const MONOTONIC_RAW: RawId = RawId;
pub(crate) const CLOCKS: &[(&str, RawId)] = &[("Instant", RawId)];

/// `Instant` stands on the system's performance counter, which is not steered.
pub(crate) const MONOTONIC_SLEW_PPM: f64 = 0.0;

/// Nanoseconds since the first reading of the process.
#[inline]
pub(crate) fn read(_: RawId) -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn readable(_: RawId) -> bool {
    true
}
