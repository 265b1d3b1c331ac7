//! What probes of several tiers share: walks through memory, threads on CPUs of choice, what they ask of
//! Linux.

mod compared;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod open_loop;
pub mod prelude;
pub mod rig;
pub mod walk;

use std::io::{BufRead, Write};
use std::thread::JoinHandle;

use latlab_clock::Source;
use latlab_harness::{Env, Figure, PointResult, Probe, ProbeError, Rank, Spec};

pub use compared::Compared;
pub use latlab_harness::{Joined, Result};
pub use latlab_stats::median_of as median;

/// Bytes of a huge page on x86-64 and on aarch64 with 4 KiB base pages.
const HUGE_BYTES: usize = 2 << 20;

/// See [`Spec::USUAL`].
pub const USUAL: Spec = Spec::USUAL;

/// Headline where it is one, but in a quick run.
pub fn rank(env: &Env, is_headline: bool, otherwise: Rank) -> Rank {
    if is_headline { env.headline_but_quick(otherwise) } else { otherwise }
}

/// A program that runs in a child process: answers requests from `input` on `output` until there are none.
pub type Program = fn(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()>;

/// Runs the program of this name. Returns false when there is none. Fails when a pipe fails: the parent is
/// gone.
pub fn run_program(
    programs: &[(&str, Program)],
    name: &str,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> std::io::Result<bool> {
    let Some((_, run)) = programs.iter().find(|(own, _)| *own == name) else { return Ok(false) };
    run(input, output)?;
    Ok(true)
}

/// Why a probe of the kernel or the network cannot run in these surroundings; `None` when it can. `here` is
/// whether it was written for this system.
pub fn no_kernel(here: bool, env: &Env) -> Option<String> {
    if !here {
        return Some(format!("measured on Linux only; this is {}", std::env::consts::OS));
    }
    matches!(env.clock.source, Source::Simulated(_))
        .then(|| "simulated time does not pass in the kernel".to_owned())
}

/// A refusal by the system, with what was asked for.
pub fn refused(what: impl Into<String>, error: impl Into<std::io::Error>) -> ProbeError {
    ProbeError::System { what: what.into(), source: error.into() }
}

/// Starts a thread of this name; `what` says it to the user where the system refuses. Fails when it does.
pub fn start_thread<T: Send + 'static>(
    name: impl Into<String>,
    what: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| refused(what, error))
}

/// What is kept under this key, made where there is nothing yet. Fails when it cannot be made.
pub fn kept<K: PartialEq, V>(
    all: &mut Vec<(K, V)>,
    key: K,
    make: impl FnOnce() -> Result<V>,
) -> Result<&mut V> {
    let known = all.iter().position(|(own, _)| *own == key);
    let place = known.unwrap_or(all.len());
    if known.is_none() {
        all.push((key, make()?));
    }
    Ok(&mut all[place].1)
}

/// What is kept under this key, if something is.
pub fn known<'a, K: PartialEq, V>(all: &'a [(K, V)], key: &K) -> Option<&'a V> {
    all.iter().find(|(own, _)| own == key).map(|(_, value)| value)
}

/// What was measured at a point, if it was.
pub fn result_at<'a, P: Probe>(figures: &'a [Figure<P>], point: &P::Point) -> Option<&'a PointResult> {
    figures.iter().find(|figure| figure.point == *point).map(|figure| &figure.result)
}

/// The CPUs that may be used beside the one that measures.
pub fn other_cpus(env: &Env) -> impl Iterator<Item = u32> + '_ {
    env.cpus.iter().copied().filter(|cpu| *cpu != env.home_cpu)
}

/// The CPU for a partner: the next allowed one after the CPU that measures, where there is another.
pub fn other_cpu(env: &Env) -> Option<u32> {
    other_cpus(env).find(|cpu| *cpu > env.home_cpu).or_else(|| other_cpus(env).next())
}
