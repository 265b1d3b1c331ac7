//! What else happened while something was measured.
//!
//! Two kinds of answer. **Counters** ([`Observer`], [`CpuCounters`]) need no privilege and are read before and after a block, never inside a
//! timed region: a read costs microseconds. What cannot be read is `None`, never zero.
//!
//! **Causes** are found for time-stamped samples: the gaps of a loop that only looks at the clock ([`noise`]), or the slow operations of any
//! probe. On the thread that is timed:
//!
//! ```no_run
//! use latlab_clock::Clock;
//! use latlab_observe::{Context, Evidence, Flag as _, Level, Sample, Span, attribute};
//!
//! let clock = Clock::open();
//! let mut evidence = Evidence::of_this_thread(&clock, Some(3), Level::Tracepoints);
//! evidence.start(&clock);
//! let (mut slow, mut happened, mut listened) = (Vec::new(), Vec::new(), Vec::new());
//! for _block in 0..6 {
//!     let from_ns = clock.now_ns();
//!     evidence.flag().taken(); // raised anew
//!     // ... timed operations; no system call of ours among them. After one that was slow:
//!     let (at_ns, ns) = (clock.now_ns(), 20_000.0);
//!     slow.push(Sample { at_ns, ns, taken: evidence.flag().taken() });
//!     listened.push(Span { from_ns, to_ns: clock.now_ns() });
//!     let (events, _lost) = evidence.drain(&clock); // between blocks
//!     happened.extend(events);
//! }
//! let context = Context {
//!     listened: &listened,
//!     switches_are_recorded: evidence.records_switches(),
//!     ..Context::default()
//! };
//! let found = attribute(&slow, &happened, &context);
//! for (sample, one) in slow.iter().zip(&found.each) {
//!     println!("{} ns: {} ({} ns of it)", sample.ns, one.cause, one.explained_ns);
//! }
//! ```
//!
//! How much can be seen depends on permission: [`Level`] names the rungs, [`Evidence::rungs`] says why one is missing. What is pure
//! ([`find_combs`], [`attribute`], [`summary`]) knows no operating system and is tested on synthetic recordings with known causes; what
//! asks the system is in `live/`, one file an operating system and architecture. [`self_test()`] checks the whole on the machine at hand.

mod attribute;
mod cause;
mod comb;
mod counters;
mod delay;
mod evidence;
pub mod gaps;
mod level;
mod live;
pub mod noise;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only Linux has such records yet; their decoding is tested everywhere")
)]
mod records;
mod requests;
pub mod self_test;
pub mod summary;
pub mod survey;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

use latlab_record::Observed;

pub use attribute::{
    Agreement, Attributed, Attribution, Context, NamedComb, Part, agreement, attribute, split,
};
pub use cause::{Cause, Event, Proof, Sample};
pub use comb::{Comb, Span, find_combs};
pub use counters::{Count, Counted, CpuCounters, CpuReading, Tally};
pub use delay::RunDelay;
pub use evidence::{Evidence, ThreadFlag, Wanted};
pub use gaps::{Flag, NoFlag, Taken};
pub use level::{Level, Rung};
#[cfg(target_os = "linux")]
pub use live::perf;
pub use self_test::self_test;

/// Reads the counters of one thread; the files stay open between readings.
#[derive(Debug)]
pub struct Observer {
    sources: system::Sources,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading(Observed);

impl Observer {
    /// Observes the calling thread, which must stay on CPU `cpu` for the steal figure to mean anything.
    #[must_use]
    pub fn of_this_thread(cpu: Option<u32>) -> Self {
        Self { sources: system::Sources::open(cpu) }
    }

    /// The counters now.
    #[must_use]
    pub fn read(&self) -> Reading {
        Reading(self.sources.read())
    }
}

impl Reading {
    /// What happened between `earlier` and this reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Observed {
        self.0.combined(&earlier.0, u64::saturating_sub)
    }
}

/// Sum of two observations; a counter that either lacks is unknown.
#[must_use]
pub fn sum(a: &Observed, b: &Observed) -> Observed {
    a.combined(b, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_could_not_be_read_stays_unknown() {
        let known = Observed { minor_faults: Some(3), ..Observed::default() };
        let total = sum(&known, &known);
        assert_eq!(total.minor_faults, Some(6));
        assert_eq!(total.steal_ns, None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touching_fresh_pages_is_seen_as_minor_faults() {
        let observer = Observer::of_this_thread(None);
        let before = observer.read();
        // Beyond what any allocator keeps of what another test gave back: the C library maps blocks of 32 MiB and more by themselves.
        let pages = 640usize;
        let mut fresh = vec![0u8; (pages + 1) * 65_536];
        for page in 0..pages {
            fresh[page * 65_536] = 1;
        }
        std::hint::black_box(&fresh);
        let seen = observer.read().since(&before);
        assert!(seen.minor_faults.expect("getrusage works on Linux") >= 1);
    }
}
