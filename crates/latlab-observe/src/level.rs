//! How much can be seen here: the ladder of evidence, and why a rung is missing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What evidence there is; each has all those before it where they are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// The gaps themselves: their times, and the periods in them.
    #[serde(rename = "time stamps")]
    TimeStamps,
    /// The selector that the processor clears on the way back from an interrupt.
    #[serde(rename = "interrupt flag")]
    InterruptFlag,
    /// The flag that the kernel takes back from a preempted thread.
    #[serde(rename = "rseq")]
    Rseq,
    /// The kernel's records of this thread's switches and page faults.
    #[serde(rename = "perf records")]
    PerfRecords,
    /// The kernel's tracepoints of interrupts, deferred work and the scheduler on this CPU.
    #[serde(rename = "tracepoints")]
    Tracepoints,
}

impl Level {
    /// All of them, least first.
    pub const ALL: [Self; 5] =
        [Self::TimeStamps, Self::InterruptFlag, Self::Rseq, Self::PerfRecords, Self::Tracepoints];

    /// The name as it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TimeStamps => "time stamps",
            Self::InterruptFlag => "interrupt flag",
            Self::Rseq => "rseq",
            Self::PerfRecords => "perf records",
            Self::Tracepoints => "tracepoints",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One rung: whether it is there, and if not, why not and what would give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// Which one.
    pub level: Level,
    /// Whether its evidence is used.
    pub available: bool,
    /// Why it is not there, or what of it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Rung {
    /// A rung that is there.
    #[must_use]
    pub fn there(level: Level) -> Self {
        Self { level, available: true, reason: None }
    }

    /// A rung that is not there.
    #[must_use]
    pub fn missing(level: Level, reason: impl Into<String>) -> Self {
        Self { level, available: false, reason: Some(reason.into()) }
    }
}

/// The highest rung that is there.
pub(crate) fn highest(rungs: &[Rung]) -> Level {
    rungs.iter().filter(|rung| rung.available).map(|rung| rung.level).max().unwrap_or(Level::TimeStamps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_the_highest_rung_even_if_one_below_is_missing() {
        let rungs = [
            Rung::there(Level::TimeStamps),
            Rung::missing(Level::Rseq, "switched off"),
            Rung::there(Level::PerfRecords),
            Rung::missing(Level::Tracepoints, "needs root"),
        ];
        assert_eq!(highest(&rungs), Level::PerfRecords);
        assert_eq!(highest(&[]), Level::TimeStamps);
    }

    #[test]
    fn a_level_is_written_as_it_is_printed() {
        for level in Level::ALL {
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
            assert_eq!(Level::named(level.name()), Some(level));
        }
    }
}
