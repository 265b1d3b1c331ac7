//! What probes ask of Linux: CPUs of threads, futexes, counters of switches.

mod affinity;
mod futex;
mod mapping;
mod usage;

pub use affinity::{Pinned, run_on, runs_only_on};
pub use futex::{Scope, wait_while, wake_one};
pub use mapping::{Region, page_bytes, resident};
pub use usage::{Task, switches, thread_id, usage};
