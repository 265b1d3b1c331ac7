//! How much can be seen here: the ladder of evidence, and why a rung is missing.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What evidence there is; each has all those before it where they are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
pub enum Level {
    /// The gaps themselves: their times, and the periods in them.
    #[strum(serialize = "time stamps")]
    TimeStamps,
    /// The selector that the processor clears on the way back from an interrupt.
    #[strum(serialize = "interrupt flag")]
    InterruptFlag,
    /// The flag that the kernel takes back from a preempted thread.
    #[strum(serialize = "rseq")]
    Rseq,
    /// The kernel's records of this thread's switches and page faults.
    #[strum(serialize = "perf records")]
    PerfRecords,
    /// The kernel's tracepoints of interrupts, deferred work and the scheduler on this CPU.
    #[strum(serialize = "tracepoints")]
    Tracepoints,
}

impl Level {
    /// All of them, least first.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name as it is printed.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// One rung: whether it is there, and if not, why not and what would give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rung {
    /// Which one.
    pub level: Level,
    /// Whether its evidence is used.
    pub available: bool,
    /// Why it is not there, or what of it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Rung {
    /// A rung that is there.
    pub fn there(level: Level) -> Self {
        Self { level, available: true, reason: None }
    }

    /// A rung that is not there.
    pub fn missing(level: Level, reason: impl Into<String>) -> Self {
        Self { level, available: false, reason: Some(reason.into()) }
    }
}

pub(crate) fn highest(rungs: &[Rung]) -> Level {
    rungs.iter().filter(|rung| rung.available).map(|rung| rung.level).max().unwrap_or(Level::TimeStamps)
}

/// What is looked for, where permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Nothing above this rung is opened.
    pub highest: Level,
    /// The thread's page faults; each recorded one takes some 0.2 us longer.
    pub faults: bool,
    /// Sleeping is part of the work: an absence that the thread asked for is
    /// [`Cause::Waiting`](crate::Cause::Waiting), and only one that it did not ask for a context switch.
    pub sleeps: bool,
    /// When block devices were handed the thread's requests and had done them; needs root.
    pub requests: bool,
}

impl Wanted {
    /// All that there is up to this rung, for work that never sleeps.
    pub fn up_to(highest: Level) -> Self {
        Self { highest, faults: true, sleeps: false, requests: false }
    }
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
        for &level in Level::ALL {
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
            assert_eq!(Level::named(level.name()), Some(level));
        }
    }
}
