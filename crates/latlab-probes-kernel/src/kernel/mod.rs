//! Probes of the kernel: calls, switches, sleeping and waking.

pub mod context_switch;
pub mod mutex;
pub mod noise;
pub mod spawn;
pub mod syscall;
pub mod timer;
pub mod wakeup;

use latlab_stats::count::whole;
use serde::{Deserialize, Serialize};

/// Where the two sides of an exchange run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Placement {
    SameCpu,
    AcrossBlocking,
}

/// How many sleeps of so many seconds with their ends fill a block: never so few that its median is one
/// sleep's.
fn sleeps_of_a_block(block_s: f64, each_s: f64) -> u64 {
    whole(block_s / each_s).max(3)
}
