//! The reference chases: 256 KiB and 4 MiB, the same memory all the time.

use latlab_clock::Clock;
use latlab_harness::{Batch, MemorySource, ProbeError, Reference, ReferenceReading};
use latlab_record::Pages;

use super::{Arena, Chain, Cycle, LINE_BYTES, Layout};
use crate::{Result, median};

/// Fits every second-level cache that latlab has met.
const PRIVATE_BYTES: u64 = 256 << 10;
/// Larger than a private cache, smaller than a fair share of a shared one.
const SHARED_BYTES: u64 = 4 << 20;
/// Windows a reading; their median is the reading.
const WINDOWS: usize = 9;
/// Loads a window: 10 us in the second level, 30 us in the third.
const LOADS: u64 = 2_000;

/// Two chains in one arena of their own.
pub struct ReferenceChase<'a> {
    clock: &'a Clock,
    private: Chain,
    shared: Chain,
    /// Of this run, across its probes, with their times, ns.
    readings: Vec<(f64, ReferenceReading)>,
    /// Keeps the chains' memory.
    _arena: Arena,
}

impl<'a> ReferenceChase<'a> {
    /// Fails when there are not even 4.25 MiB of memory, or time is simulated.
    pub fn new(clock: &'a Clock, memory: &MemorySource) -> Result<Self> {
        if let MemorySource::Simulated(_) = memory {
            return Err(ProbeError::Other("simulated memory has no neighbours".to_owned()));
        }
        let arena = Arena::new(PRIVATE_BYTES + SHARED_BYTES, Pages::Base, &[])?;
        let chain = |offset: u64, bytes: u64, seed| {
            let base = arena.base().wrapping_add(usize::try_from(offset).unwrap_or(0));
            // SAFETY: both spans lie in the arena, apart from each other; the arena is kept beside the
            // chains.
            unsafe { Chain::build(base, Layout::Lines, Cycle::random(bytes / LINE_BYTES, seed)) }
        };
        let private = chain(0, PRIVATE_BYTES, 11);
        let shared = chain(PRIVATE_BYTES, SHARED_BYTES, 12);
        let mut reference = Self { clock, private, shared, readings: Vec::new(), _arena: arena };
        // Two moments to judge the first probe by: one alone may have been a boosted one.
        reference.read();
        reference.read();
        Ok(reference)
    }
}

impl Reference for ReferenceChase<'_> {
    fn read(&mut self) -> Option<ReferenceReading> {
        let at_ns = self.clock.now_ns();
        let reading = ReferenceReading {
            private_ns: median_ns(self.clock, &mut self.private, PRIVATE_BYTES),
            shared_ns: median_ns(self.clock, &mut self.shared, SHARED_BYTES),
        };
        self.readings.push((at_ns, reading));
        Some(reading)
    }

    fn earlier(&self) -> Vec<(f64, ReferenceReading)> {
        self.readings.clone()
    }
}

fn median_ns(clock: &Clock, chain: &mut Chain, bytes: u64) -> f64 {
    chain.warm(bytes / LINE_BYTES);
    chain.run(LOADS);
    let costs = (0..WINDOWS).map(|_| {
        let begin = clock.source.now();
        std::hint::black_box(chain.run(LOADS));
        clock.ns(clock.source.now().saturating_sub(begin)) / LOADS as f64
    });
    median(costs).unwrap_or(f64::NAN)
}
