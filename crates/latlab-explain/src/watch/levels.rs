//! Which tracing level is available here, why not a higher one, and what would raise it.

use latlab_perf::this_thread;

use super::price;
use super::proc_file::text;
use super::recorder::{LEAST_PERIOD_NS, Recorder};
use super::run::Tracing;
use super::symbols::{self, Symbols};
use crate::Calibration;
use crate::model::Rung;

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    pub(crate) level: u8,
    pub(crate) rungs: Vec<Rung>,
    pub(crate) raise: Option<String>,
    pub(crate) tracing: Tracing,
    /// What was measured before at this tracing level.
    pub(crate) kept: Option<Calibration>,
}

const NAMES: [&str; 3] = [
    "samples of user code and kernel, the kernel's stack at each switch",
    "samples of user code, exact switches, reasons read in /proc",
    "scans of /proc, and the kernel's counters",
];

fn rung(level: u8, missing: Option<String>) -> Rung {
    Rung {
        level,
        name: NAMES[usize::from(level) - 1].to_owned(),
        available: missing.is_none(),
        reason: missing,
    }
}

/// Tries them from the most to the least, from `most` on. Prices are measured where none of `kept` hold.
/// `overhead`: what recording may cost.
pub(crate) fn find(most: u8, overhead: f64, kept: &[Calibration]) -> Levels {
    let mut rungs = Vec::new();
    let mut level = 3;
    for candidate in 1..=2 {
        if candidate < most {
            rungs.push(rung(candidate, Some("not asked for".to_owned())));
            continue;
        }
        if level < 3 {
            rungs.push(rung(candidate, None));
            continue;
        }
        let missing = try_out(candidate == 1).err();
        if missing.is_none() {
            level = candidate;
        }
        rungs.push(rung(candidate, missing));
    }
    rungs.push(rung(3, None));
    let recording = (level < 3).then_some(level == 1);
    let kept = Calibration::kept(kept, recording);
    let price = std::thread::scope(|scope| {
        let price =
            scope.spawn(move || kept.map(|kept| kept.price).or_else(|| recording.map(price::measure)));
        if level == 1 {
            // Both take some tens of milliseconds, which the program's start waits for.
            Symbols::default().know_the_kernel();
        }
        price.join().ok().flatten()
    });
    let tracing = Tracing { recording, price: price.unwrap_or_default(), overhead };
    Levels { level, raise: (level > most).then(|| raise(level)), rungs, tracing, kept }
}

fn try_out(sees_kernel: bool) -> Result<(), String> {
    Recorder::of(sees_kernel, LEAST_PERIOD_NS).start(&[this_thread()], true)?;
    if sees_kernel && !symbols::shows_the_kernel() {
        return Err("the kernel hides where its functions are (kernel.kptr_restrict)".to_owned());
    }
    Ok(())
}

/// The one command that would raise the level.
fn raise(level: u8) -> String {
    let in_container = std::path::Path::new("/.dockerenv").exists()
        || std::path::Path::new("/run/.containerenv").exists()
        || text("/proc/self/status").lines().any(|line| line.trim_start_matches("Seccomp:").trim() == "2");
    if in_container && level == 3 {
        return "run the container with --security-opt seccomp=unconfined --cap-add PERFMON".to_owned();
    }
    let hidden = text("/proc/sys/kernel/kptr_restrict").trim() != "0";
    let show = if hidden { " kernel.kptr_restrict=0" } else { "" };
    format!("sudo sysctl kernel.perf_event_paranoid=1{show}")
}
