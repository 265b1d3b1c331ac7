//! Where a program's wall time goes: the engine of `latlab explain`.
//!
//! Each instant of wall time is given to exactly one [`Category`]: while threads of the program run, to what they do (a sample weighs its period
//! over the threads that run); else, while one is ready, to waiting for a CPU; else to the reason for which they wait. The books close by
//! construction, and [`Closure`](model::Closure) says so of every run.
//!
//! How much can be seen depends on permission. Level 1: samples of user code and kernel, with the kernel's stack at each switch. Level 2:
//! samples of user code, exact switches, reasons read in /proc. Level 3: /proc and the kernel's counters alone.
//!
//! What is pure ([`sweep`], [`estimate`], [`rules`]) knows no operating system and is tested with synthetic ledgers.

pub mod by_place;
pub mod by_stage;
mod category;
pub mod costs;
mod counted;
pub mod discards;
pub mod estimate;
pub mod files;
pub mod governor;
mod grain;
pub mod interval;
pub mod lanes;
pub mod marks;
pub mod mix;
pub mod model;
pub mod python;
pub mod records;
pub mod rules;
pub mod sampled;
pub mod stream;
pub mod sweep;
pub mod tally;
pub mod timeline;
pub mod unread;
pub mod weights;
pub mod whole;
pub mod woken;

#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod system;

use std::ffi::OsString;

pub use category::Category;
pub use counted::Counted;
pub use model::Explained;
pub use system::explain;

/// What to explain.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program that is started for it: its name and arguments.
    Program(Vec<OsString>),
    /// A process that runs already, for this long.
    Running {
        /// Its id.
        pid: u32,
        /// Nanoseconds.
        for_ns: u64,
    },
}

/// How to explain it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What.
    pub subject: Subject,
    /// At most this level of sight: 1 the most, 3 the least.
    pub level: u8,
    /// Runs of the program, at least one. It does all that it does in each of them; only the first one's output is shown.
    pub runs: u32,
}

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The program could not be started; the code is a shell's.
    #[error("{name}: {reason}")]
    NotStarted {
        /// The program's name.
        name: String,
        /// In words.
        reason: String,
        /// 127: there is none; 126: it cannot be executed.
        exit_code: i32,
    },
    /// There is no such process, or it may not be looked at.
    #[error("process {pid}: {reason}")]
    NoProcess {
        /// Its id.
        pid: u32,
        /// In words.
        reason: String,
    },
    /// The system refused something that is needed.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Not on this system.
    #[error("explain needs Linux: it reads /proc and, where allowed, perf events")]
    Unsupported,
}
