//! What can be asked for, and why nothing can be said.

use std::ffi::OsString;

use crate::Calibration;

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
    /// The highest tracing level to use: 1 the most, 3 the least.
    pub level: u8,
    /// Share of the program's CPU time that recording may cost; infinite: all is recorded, whatever it costs.
    pub overhead: f64,
    /// Runs of the program, at least one. It does all that it does in each of them; only the first one's
    /// output is shown.
    pub runs: u32,
    /// What was measured of this machine before: that which holds for what may be recorded now is used again.
    pub kept: Vec<Calibration>,
}

impl Request {
    /// What recording may cost when nothing else is asked for.
    pub const USUAL_OVERHEAD: f64 = 0.05;
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
