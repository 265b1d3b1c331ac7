//! Simulated memory: a planted hierarchy whose latencies are known, for tests that must not depend on timing.

use latlab_clock::SimulatedClock;

/// One level of a planted hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedLevel {
    /// Bytes that it holds; the last level holds everything (`u64::MAX`).
    pub capacity_bytes: u64,
    /// Latency of a dependent load that it answers, ns.
    pub latency_ns: f64,
}

/// A planted hierarchy. A working set is answered by the smallest level that holds all of it, which is what a
/// cyclic walk over a least-recently-used cache does.
#[derive(Clone, Debug)]
pub struct SimulatedMemory {
    /// Levels, smallest first.
    pub levels: Vec<SimulatedLevel>,
    /// Pages that translations are kept for, and what a miss adds, ns; smallest first.
    pub translation: Vec<(u64, f64)>,
    /// Whether huge pages are effective, or 4 KiB in hardware.
    pub huge_pages_effective: bool,
    /// The clock that accesses advance.
    pub clock: SimulatedClock,
}

/// Bytes of a base page and of a huge page in the planted machine.
const PAGE_BYTES: [u64; 2] = [4 << 10, 2 << 20];

impl SimulatedMemory {
    /// Latency of one dependent load in a walk over `lines` lines that lie on `pages` pages, `huge` or not,
    /// ns.
    pub fn latency_ns(&self, lines: u64, pages_4k: u64, huge: bool) -> f64 {
        let bytes = lines * 64;
        let level = self
            .levels
            .iter()
            .find(|level| bytes <= level.capacity_bytes)
            .or(self.levels.last())
            .map_or(0.0, |level| level.latency_ns);
        let pages = if huge && self.huge_pages_effective {
            pages_4k.div_ceil(PAGE_BYTES[1] / PAGE_BYTES[0])
        } else {
            pages_4k
        };
        let translation =
            self.translation.iter().filter(|(reach, _)| pages > *reach).map(|(_, cost)| cost).sum::<f64>();
        level + translation
    }
}
