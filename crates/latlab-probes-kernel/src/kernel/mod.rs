//! Probes of the kernel: calls, switches, sleeping and waking.

pub mod context_switch;
pub mod mutex;
pub mod noise;
pub mod spawn;
pub mod syscall;
pub mod timer;
pub mod wakeup;

use latlab_record::Check;
use serde::{Deserialize, Serialize};

/// Where the two sides of an exchange run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Placement {
    SameCpu,
    AcrossBlocking,
}

/// How many sleeps of so many seconds with their ends fill a block: never so few that its median is one sleep's.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn sleeps_of_a_block(block_s: f64, each_s: f64) -> u64 {
    ((block_s / each_s) as u64).max(3)
}

/// Questions to the kernel or a partner, and how many were answered as they must be.
#[derive(Debug, Default)]
pub struct Answers {
    asked: u64,
    right: u64,
}

impl Answers {
    /// That all were.
    #[must_use]
    pub fn check(&self, name: &str) -> Check {
        Check {
            name: name.to_owned(),
            ok: self.asked > 0 && self.asked == self.right,
            detail: format!("{} of {} answers were right", self.right, self.asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_were_not_asked_prove_nothing() {
        for (asked, right, ok) in [(0, 0, false), (2, 1, false), (2, 3, false), (2, 2, true)] {
            assert_eq!(Answers { asked, right }.check("answers").ok, ok, "{right} of {asked}");
        }
    }
}
