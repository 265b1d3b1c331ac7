//! The operating system's clocks: the fallback, and what `clock.read` compares.

use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Instant;

use crate::platform;
use crate::{TimeSource, arch};

/// One of the clocks that this operating system offers. Obtained from [`os_clocks`], so it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsClockId(pub(crate) platform::RawId);

impl OsClockId {
    /// The clock's reading in nanoseconds, from an origin of its own.
    #[inline(always)]
    pub fn read(self) -> u64 {
        platform::read(self.0)
    }
}

/// A clock read with nothing around it: what a program pays that calls `clock_gettime` itself.
impl TimeSource for OsClockId {
    #[inline(always)]
    fn begin(&self) -> u64 {
        self.read()
    }
}

/// Every clock of this system that can be read here, with its usual name. Those that a kernel or sandbox
/// refuses are left out.
pub fn os_clocks() -> Vec<(&'static str, OsClockId)> {
    platform::CLOCKS
        .iter()
        .filter(|(_, id)| platform::readable(*id))
        .map(|&(name, id)| (name, OsClockId(id)))
        .collect()
}

/// The clock of this name, where it can be read.
pub fn os_clock(name: &str) -> Option<OsClockId> {
    os_clocks().into_iter().find_map(|(own, id)| (own == name).then_some(id))
}

/// The system's monotonic clock, ns: what other processes of this machine read too.
pub fn monotonic_ns() -> u64 {
    platform::read(platform::MONOTONIC)
}

/// The operating system's monotonic clock as a time source; ticks are nanoseconds.
///
/// The raw clock (not steered by NTP) where it can be read without a system call, else the ordinary monotonic
/// one.
#[derive(Clone, Copy, Debug)]
pub struct OsClock {
    id: OsClockId,
    raw: bool,
}

impl OsClock {
    /// Chooses the clock; takes well under a millisecond.
    pub fn open() -> Self {
        let monotonic = OsClockId(platform::MONOTONIC);
        let raw = OsClockId(platform::MONOTONIC_RAW);
        // Kernels before 5.3 (x86) serve the raw clock by a system call, several times the price of the vDSO.
        let raw_is_cheap = platform::readable(raw.0) && price(raw) <= 2.0 * price(monotonic) + 5.0;
        Self { id: if raw_is_cheap { raw } else { monotonic }, raw: raw_is_cheap }
    }

    /// Whether readings are free of NTP's steering.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// The clock that is read.
    pub fn id(&self) -> OsClockId {
        self.id
    }
}

impl TimeSource for OsClock {
    // The vDSO orders its counter read after earlier loads but lets later ones start early, and a system call
    // promises nothing: the loads are fenced on both sides.
    #[inline(always)]
    fn begin(&self) -> u64 {
        fenced(self.id)
    }
}

#[inline(always)]
fn fenced(id: OsClockId) -> u64 {
    compiler_fence(Ordering::SeqCst);
    arch::fence_loads();
    let now = id.read();
    arch::fence_loads();
    compiler_fence(Ordering::SeqCst);
    now
}

/// The clock that calibrations refer to: the raw one wherever it exists, whatever a reading costs.
pub(crate) fn reference() -> OsClockId {
    let raw = OsClockId(platform::MONOTONIC_RAW);
    if platform::readable(raw.0) { raw } else { OsClockId(platform::MONOTONIC) }
}

/// Nanoseconds per reading: the least over a few batches, since only the order of two prices matters.
fn price(id: OsClockId) -> f64 {
    const READS: u32 = 200;
    (0..5)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READS {
                std::hint::black_box(id.read());
            }
            start.elapsed().as_nanos() as f64 / f64::from(READS)
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_clock_can_be_read_and_has_its_own_name() {
        let clocks = os_clocks();
        assert!(!clocks.is_empty());
        let mut names: Vec<_> = clocks.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), clocks.len());
        for (_, id) in clocks {
            let _ = id.read();
        }
    }

    #[test]
    fn the_monotonic_clock_never_runs_back() {
        let clock = OsClock::open();
        let mut last = clock.begin();
        for _ in 0..10_000 {
            let now = clock.end();
            assert!(now >= last);
            last = now;
        }
    }
}
