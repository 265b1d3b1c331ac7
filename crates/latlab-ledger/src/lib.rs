//! Where a program's wall time goes: the engine of `latlab explain`.
//!
//! Each instant of wall time is given to exactly one [`Category`]: while threads of the program run, to what they do (a sample weighs its period
//! over the threads that run); else, while one is ready, to waiting for a CPU; else to the reason for which they wait. The books close by
//! construction, and [`Closure`](model::Closure) says so of every run.
//!
//! How much can be seen depends on permission. Level 1: samples of user code and kernel, with the kernel's stack at each switch. Level 2:
//! samples of user code, exact switches, reasons read in /proc. Level 3: /proc and the kernel's counters alone.
//!
//! What is pure (`sweep`, `estimate`, `rules`) knows no operating system and is tested with synthetic ledgers.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "what explains asks Linux"))]

mod busy;
mod by_place;
mod by_stage;
mod calibration;
mod category;
mod costs;
mod counted;
mod discards;
mod estimate;
mod files;
mod first_run;
mod governor;
mod grain;
mod interval;
mod io;
mod lanes;
mod locks;
mod marks;
mod mix;
pub mod model;
mod python;
pub mod records;
mod request;
mod rules;
mod sampled;
#[cfg(test)]
mod simulated;
mod stream;
mod sweep;
mod tally;
mod tcp;
mod time;
mod timeline;
mod unread;
mod weights;
mod woken;

#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod system;

pub use calibration::Calibration;
pub use category::Category;
pub(crate) use counted::Counted;
pub use model::Explained;
pub use request::{ExplainError, Request, Subject};
pub use system::explain;
