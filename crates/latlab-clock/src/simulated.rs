//! A clock that tests move by hand, with a planted cost and quantum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_stats::count::nearest;

use crate::TimeSource;

/// Picoseconds per nanosecond: the resolution of simulated time.
const PS_PER_NS: f64 = 1e3;

/// Time that passes only when [`advance_ns`](Self::advance_ns) or a reading says so. Clones share the time,
/// so a simulated memory can hold one and advance it by its planted latency.
///
/// Ticks are picoseconds, rounded down to the planted quantum.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct SimulatedClock {
    now_ps: Arc<AtomicU64>,
    cost_ps: u64,
    quantum_ps: u64,
}

impl SimulatedClock {
    /// Ticks per nanosecond of every simulated clock.
    pub const TICKS_PER_NS: f64 = PS_PER_NS;

    /// A clock at time zero of which each reading takes `cost_ns` and whose readings advance in steps of
    /// `quantum_ns`. Both are rounded to picoseconds; a quantum below one picosecond means none.
    pub fn new(cost_ns: f64, quantum_ns: f64) -> Self {
        Self {
            now_ps: Arc::new(AtomicU64::new(0)),
            cost_ps: picoseconds(cost_ns),
            quantum_ps: picoseconds(quantum_ns).max(1),
        }
    }

    /// A clock with free readings of picosecond resolution.
    pub fn ideal() -> Self {
        Self::new(0.0, 0.0)
    }

    /// Lets `ns` nanoseconds pass (rounded to picoseconds; negative spans are ignored: time never runs back).
    #[inline]
    pub fn advance_ns(&self, ns: f64) {
        self.now_ps.fetch_add(picoseconds(ns), Ordering::Relaxed);
    }

    /// The true simulated time in nanoseconds, not rounded to the quantum and without cost.
    pub fn true_ns(&self) -> f64 {
        self.now_ps.load(Ordering::Relaxed) as f64 / PS_PER_NS
    }

    /// Samples the time, then lets the reading's cost pass.
    #[inline]
    fn read(&self) -> u64 {
        let now = self.now_ps.fetch_add(self.cost_ps, Ordering::Relaxed);
        now - now % self.quantum_ps
    }
}

impl TimeSource for SimulatedClock {
    #[inline(always)]
    fn begin(&self) -> u64 {
        self.read()
    }
}

fn picoseconds(ns: f64) -> u64 {
    nearest(ns * PS_PER_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_region_reads_the_planted_cost() {
        let clock = SimulatedClock::new(22.5, 0.0);
        assert_eq!(clock.begin().abs_diff(clock.end()), 22_500);
    }

    #[test]
    fn readings_are_rounded_down_to_the_quantum() {
        let clock = SimulatedClock::new(0.0, 10.0);
        clock.advance_ns(19.9);
        assert_eq!(clock.begin(), 10_000);
        clock.advance_ns(0.1);
        assert_eq!(clock.end(), 20_000);
    }

    #[test]
    fn clones_share_the_time() {
        let clock = SimulatedClock::ideal();
        clock.clone().advance_ns(7.0);
        assert!((clock.true_ns() - 7.0).abs() < 1e-9);
    }

    #[test]
    fn negative_and_unknown_spans_do_not_move_time() {
        let clock = SimulatedClock::ideal();
        clock.advance_ns(-5.0);
        clock.advance_ns(f64::NAN);
        assert_eq!(clock.begin(), 0);
    }
}
