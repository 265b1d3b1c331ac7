//! What probes of several tiers share: walks through memory, threads on CPUs of choice, what they ask of Linux.

mod compared;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod open_loop;
pub mod rig;
pub mod walk;

use std::io::{BufRead, Write};

use latlab_clock::Source;
use latlab_harness::Env;

pub use compared::Compared;

/// A program that runs in a child process: answers requests from `input` on `output` until there are none.
pub type Program = fn(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()>;

/// Runs the program of this name. Returns false when there is none.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub fn run_program(
    programs: &[(&str, Program)],
    name: &str,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> std::io::Result<bool> {
    let Some((_, run)) = programs.iter().find(|(own, _)| *own == name) else {
        return Ok(false);
    };
    run(input, output)?;
    Ok(true)
}

/// Why a probe of the kernel or the network cannot run in these surroundings; `None` when it can. `here` is whether it was written for this system.
pub fn no_kernel(here: bool, env: &Env) -> Option<String> {
    if !here {
        return Some(format!("measured on Linux only; this is {}", std::env::consts::OS));
    }
    matches!(env.clock.source, Source::Simulated(_))
        .then(|| "simulated time does not pass in the kernel".to_owned())
}

/// The median; `None` of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| latlab_stats::quantile(&values, 0.5))
}

/// The CPU for a partner: the next allowed one after the CPU that measures, where there is another.
pub fn other_cpu(env: &Env) -> Option<u32> {
    let after = env.cpus.iter().copied().find(|cpu| *cpu > env.home_cpu);
    after.or_else(|| env.cpus.iter().copied().find(|cpu| *cpu != env.home_cpu))
}
