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
use latlab_record::{Settings, binary_size};

/// Why a probe that makes files with names cannot run here; `None` when it can. Makes nothing.
fn refusal(env: &Env) -> Option<String> {
    not_asked_for(env).or_else(|| crate::disk::room(env).err())
}

/// Why nothing may be written in this run, wherever it is.
fn not_asked_for(env: &Env) -> Option<String> {
    if matches!(env.clock.source, Source::Simulated(_)) {
        return Some(crate::disk::SIMULATED.to_owned());
    }
    let only_read = "a user's file (--file) is only read, and this probe writes its own files";
    env.settings.file.as_ref().map(|_| only_read.to_owned())
}

/// Why a probe that holds so many bytes cannot run here; `None` when it can.
fn too_little_memory(env: &Env, bytes: u64) -> Option<String> {
    let (needed, usable) = (binary_size(bytes), binary_size(env.memory_bytes));
    (env.memory_bytes < bytes).then(|| format!("needs {needed} of memory; {usable} may be used here"))
}

/// Whether the user named this probe, and not only a glob that it matches.
fn asked_for(settings: &Settings, id: &str) -> bool {
    settings.only.iter().any(|glob| glob == id)
}

/// Announces the files that a session lays out once for all of its points: `files_of` says of a point the
/// bytes of one, and of all together. Points of one rank and group are measured in the same rounds, and the
/// first of them stands for the others.
fn announce_laid_out<P>(points: &mut [Planned<P>], files_of: impl Fn(&P) -> Option<(u64, u64)>) {
    let mut known = Vec::new();
    for planned in points {
        let Some(files) = files_of(&planned.point) else { continue };
        let own = (planned.rank, planned.group, files);
        if !known.contains(&own) {
            planned.laid_out_bytes = files.1;
            known.push(own);
        }
    }
}

/// The proof after one block of a point. Only the work matters: a block of single operations has no window
/// means, so it does not come back.
#[cfg(test)]
fn proved_once<P: latlab_harness::Probe>(
    session: &mut impl latlab_harness::Session<P>,
    env: &Env,
    point: &P::Point,
) -> Result<latlab_harness::Proof<P::Details>, latlab_harness::ProbeError> {
    let mut evidence = P::Evidence::default();
    session.select(point)?;
    let mut taken = Ok(());
    let _no_windows = latlab_harness::RemoteBlock::take(&env.clock, None, |block| {
        taken = session.block(point, &mut evidence, block);
        Ok(())
    });
    taken.map(|()| session.proof(point, &evidence))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use latlab_harness::{AnyProbe, Erased, Support};
    use latlab_probes_testing as testing;
    use latlab_record::StoppedBy;
    use latlab_storage::Disk;

    use super::*;
    use crate::planted::{Own, on_a_disk};

    /// Those that write, then those that only read.
    const PROBES: [&[&dyn AnyProbe]; 2] = [
        &[
            &Erased(files::Files),
            &Erased(poke::Poke),
            &Erased(random::Random(write_random::Write)),
            &Erased(reread::Reread),
            &Erased(sync::Durable),
            &Erased(write_sequential::WriteSequential),
        ],
        &[
            &Erased(random::Random(read_random::Read)),
            &Erased(rate::Rate),
            &Erased(read_sequential::ReadSequential),
        ],
    ];

    #[test]
    fn a_file_of_the_users_is_never_written() {
        let mut env = testing::env(64 << 20);
        env.settings.file = Some("Cargo.toml".to_owned());
        assert_eq!(crate::disk::file_bytes(&env), 0);
        let is_refused = |probe: &&dyn AnyProbe| matches!(probe.supports(&env), Support::No(_));
        assert!(PROBES[0].iter().all(is_refused));
        assert!(!PROBES[1].iter().any(is_refused));
    }

    #[test]
    fn a_spent_budget_is_the_reason_and_not_a_byte_more_is_written_and_no_file_is_left() {
        for (probe, budget_bytes) in
            [(&Erased(files::Files) as &dyn AnyProbe, 4_000_000), (&Erased(sync::Durable), 20 * 4096)]
        {
            let own = Own::new("budget");
            let mut env = testing::env(64 << 20);
            env.disk = Disk::new(&own.0, budget_bytes, 3);
            let Some(env) = on_a_disk(probe, env) else { return };
            let records = testing::one_run(probe, &env, 5.0);
            let failed = records.iter().filter(|record| record.stopped_by == StoppedBy::Failed);
            let texts: Vec<&str> =
                failed.filter_map(|record| Some(record.error.as_ref()?.text.as_str())).collect();
            assert!(!texts.is_empty() && texts.iter().all(|text| text.contains("--max-bytes")), "{texts:?}");
            assert!(env.disk.budget().spent_bytes() <= budget_bytes);
            assert_eq!(own.entries(), 0);
        }
    }

    #[test]
    fn memory_is_no_disk() {
        let shared = std::path::Path::new("/dev/shm");
        if !shared.is_dir() {
            return;
        }
        let mut env = testing::env(64 << 20);
        env.disk = Disk::new(shared, 1 << 30, 3);
        for probe in PROBES.concat() {
            let Support::No(reason) = probe.supports(&env) else {
                panic!("{}: tmpfs passes for a disk", probe.spec().id);
            };
            assert!(reason.contains("tmpfs"), "{reason}");
        }
    }
}
