//! The probe contract and the one scheduler.
//!
//! ```text
//! Probe ──points──► schedule ──select, block──► Session ──times through──► Block ──samples──► Record ──► Sink
//!                      │ deadline, ranks, random order, references
//! ```
//!
//! A probe says what it can measure and does the work; the harness makes every time stamp, decides
//! what is measured when, and turns samples into records. The timed loops are monomorphised over
//! the kernel and the time source: a virtual call for each operation raised an L1 access's p99.9
//! from 40 to 160 ns when it was tried.

mod block;
mod causes;
mod child;
mod contract;
mod env;
mod erased;
mod error;
mod in_flight;
mod joined;
mod pin;
mod planned;
mod quota;
mod ramp;
mod reference;
mod result;
mod rounds;
mod samples;
mod schedule;
mod simulated;
mod slow;
mod stamps;
mod summary;
mod work;
mod workers;

pub use block::{Block, Picoseconds, RemoteBlock};
pub use causes::{KnownCause, KnownCauses};
pub use child::{Child, answer_parent, serve_child};
pub use contract::{
    Figure, Needs, NoSession, Nothing, Plan, PointFields, Probe, Proof, Session, Spec, Support, Tier, Touches,
};
pub use env::{Env, Interpreter, MemorySource, seed, usable_cpus};
pub use erased::{AnyProbe, AnySession, Erased, Schemas};
pub use error::{ProbeError, Result};
pub use in_flight::{Arrivals, Flight, Limits, Queue, Wait};
pub use joined::Joined;
pub use latlab_observe::is_pinned_to;
pub use latlab_record::{CacheScope, Rank};
pub use pin::{give_way_to_others, pin_this_thread};
pub use planned::Planned;
pub use quota::{Share, give_the_rest, left_to_measure, pass_seconds, passes, plan_shares, seconds};
pub use reference::{NoReference, Reference, ReferenceReading};
pub use result::{PointResult, RoundResult};
pub use rounds::{OfRounds, Rounds, product, ratio, ratios};
pub use samples::{BlockData, Sampled, without};
pub use schedule::{Outcome, Progress, Sink, measure_once, run_probe};
pub use simulated::{SimulatedLevel, SimulatedMemory};
pub use stamps::Stamps;
pub use work::{Batch, Kernel, Operations};
pub use workers::{Workers, WorkersError};
