//! Where a program's wall time goes: the engine of `latlab explain`.
//!
//! Each instant of wall time is given to exactly one [`Category`]: while threads of the program run, to what
//! they do (a sample weighs its period over the threads that run); else, while one is ready, to waiting for a
//! CPU; else to the reason for which they wait. The sums agree by construction, and
//! [`Closure`](model::Closure) says so of every run.
//!
//! How much can be seen depends on permission. Level 1: samples of user code and kernel, with the kernel's
//! stack at each switch. Level 2: samples of user code, exact switches, reasons read in /proc. Level 3: /proc
//! and the kernel's counters alone.
//!
//! `watch` runs the program, or attaches to it, and brings back what was recorded, sampled and counted.
//! `account` makes the ledger of that: pure, it knows no operating system and is tested with made-up records.
//! `present` writes the ledger down as [`model`] publishes it.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "what explains asks Linux"))]

mod account;
mod calibration;
mod category;
mod costs;
mod counted;
mod governor;
pub mod model;
#[cfg(target_os = "linux")]
mod present;
mod request;
mod rules;
mod time;
#[cfg(target_os = "linux")]
mod watch;

#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod explain;

pub use calibration::Calibration;
pub use category::Category;
pub(crate) use counted::Counted;
pub use explain::explain;
pub use model::Explained;
pub use request::{ExplainError, Request, Subject};
