//! Disks and file systems.

pub mod files;
pub mod first_touch;
pub mod poke;
pub mod random;
pub mod rate;
pub mod read_random;
pub mod read_sequential;
pub mod reread;
pub mod steady;
pub mod sync;
pub mod write_random;
pub mod write_sequential;

/// What the probes that make files with names share on Linux.
#[cfg(target_os = "linux")]
mod linux;

use latlab_clock::Source;
use latlab_harness::{Env, Planned};
use latlab_record::Settings;

/// Why a probe that makes files with names cannot run here; `None` when it can. Makes nothing.
fn refusal(env: &Env) -> Option<String> {
    not_asked_for(env).or_else(|| crate::disk::room(env).err())
}

/// Why nothing may be written in this run, wherever it is.
fn not_asked_for(env: &Env) -> Option<String> {
    if matches!(env.clock.source, Source::Simulated(_)) {
        return Some(crate::disk::SIMULATED.to_owned());
    }
    if env.settings.file.is_some() {
        return Some(
            "a file of the user's (--file) is only read, and this makes files of its own".to_owned(),
        );
    }
    None
}

/// Whether the user named this probe, and not only a glob that it matches.
fn asked_for(settings: &Settings, id: &str) -> bool {
    settings.only.iter().any(|glob| glob == id)
}

/// Announces the files that a session lays out once for all of its points: `files_of` says of a point the bytes of one, and of all together. Points
/// of one rank and group are measured in the same rounds, and the first of them stands for the others.
fn announce_laid_out<P>(points: &mut [Planned<P>], files_of: impl Fn(&P) -> Option<(u64, u64)>) {
    let mut known = Vec::new();
    for planned in points {
        let Some(files) = files_of(&planned.point) else {
            continue;
        };
        let own = (planned.rank, planned.group, files);
        if !known.contains(&own) {
            planned.laid_out_bytes = files.1;
            known.push(own);
        }
    }
}

/// Takes one block of a point. Only the work matters: a block of single operations has no window means, so it does not come back.
#[cfg(test)]
fn take_once<P: latlab_harness::Probe>(
    session: &mut impl latlab_harness::Session<P>,
    env: &Env,
    point: &P::Point,
    evidence: &mut P::Evidence,
) -> Result<(), latlab_harness::ProbeError> {
    session.select(point)?;
    let mut taken = Ok(());
    let _no_windows = latlab_harness::RemoteBlock::take(&env.clock, None, |block| {
        taken = session.block(point, evidence, block);
        Ok(())
    });
    taken
}

/// The names of the checks that did not hold.
#[cfg(test)]
fn failed<D>(proof: &latlab_harness::Proof<D>) -> Vec<&str> {
    proof.checks.iter().filter(|check| !check.ok).map(|check| check.name.as_str()).collect()
}
