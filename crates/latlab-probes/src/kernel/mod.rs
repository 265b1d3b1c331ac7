//! Probes of the kernel: calls, switches, sleeping and waking.

pub(crate) mod context_switch;
pub(crate) mod mutex;
pub(crate) mod noise;
pub(crate) mod spawn;
pub(crate) mod syscall;
pub(crate) mod timer;
pub(crate) mod wakeup;

/// What the probes ask of Linux.
#[cfg(target_os = "linux")]
pub(crate) mod linux;

use latlab_clock::Source;
use latlab_harness::Env;

/// Why none of these probes can run in these surroundings; `None` when they can. `here` is whether they were written for this system.
pub(crate) fn no_kernel(here: bool, env: &Env) -> Option<String> {
    if !here {
        return Some(format!(
            "measured on Linux only; this is {}",
            std::env::consts::OS
        ));
    }
    matches!(env.clock.source, Source::Simulated(_))
        .then(|| "simulated time does not pass in the kernel".to_owned())
}

/// The CPU for a partner: the next allowed one after the CPU that measures, where there is another.
pub(crate) fn other_cpu(env: &Env) -> Option<u32> {
    let after = env.cpus.iter().copied().find(|cpu| *cpu > env.home_cpu);
    after.or_else(|| env.cpus.iter().copied().find(|cpu| *cpu != env.home_cpu))
}
