//! What else happened while something was measured.
//!
//! Two kinds of answer. **Counters** ([`Observer`], [`CpuCounters`]) need no privilege and are read before
//! and after a block, never inside a timed region: a read costs microseconds. What cannot be read is `None`,
//! never zero.
//!
//! **Causes** are found for time-stamped samples: the gaps of a loop that only reads the clock ([`noise`]),
//! or the slow operations of any probe. On the thread that is timed:
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
//!     evidence.flag().interruption(); // raised anew
//!     // ... timed operations; no system call of ours among them. After one that was slow:
//!     let (at_ns, ns) = (clock.now_ns(), 20_000.0);
//!     slow.push(Sample { at_ns, ns, interruption: evidence.flag().interruption() });
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
//! How much can be seen depends on permission: [`Level`] names the rungs, [`Evidence::rungs`] says why one is
//! missing. What is pure ([`find_interference`], [`attribute`], [`summary`]) knows no operating system and is
//! tested on synthetic recordings with known causes; what asks the system is in `live/`, one file an
//! operating system and architecture. [`self_test()`] checks the whole on the machine at hand.

mod attribute;
mod cause;
mod counters;
mod evidence;
pub mod gaps;
mod level;
mod live;
pub mod noise;
mod observer;
mod periodic;
pub mod self_test;
pub mod summary;
pub mod survey;

pub use attribute::{
    Agreement, Attributed, Attribution, Context, NamedInterference, Part, agreement, attribute, split,
};
pub use cause::{Cause, Event, Proof, Sample};
pub use counters::{Count, Counted, CpuCounters, CpuReading, Tally};
pub use evidence::{Evidence, ThreadFlag};
pub use gaps::{Flag, Interruption, NoFlag};
pub use level::{Level, Rung, Wanted};
pub use live::{is_pinned_to, pin_to};
pub use observer::{Observer, Reading, RunDelay, sum};
pub use periodic::{Interference, Span, find_interference};
pub use self_test::self_test;
