//! Whether there is a disk to measure, and how large its test file is.

use std::time::Duration;

use latlab_clock::Source;
use latlab_probes_shared::prelude::*;

use super::words::{Engine, SIMULATED};

/// The test file in the quick, standard and thorough profile.
const FILE_BYTES: [u64; 3] = [96 << 20, 1 << 30, 4 << 30];
/// A smaller file is no disk's figure: its 64 KiB blocks would be 128 different ones.
pub(super) const SMALLEST_FILE: u64 = 8 << 20;

/// Size of the test file: the profile's, or what 3/8 of the bytes that may be written (the rest is for what
/// is written into it) and half of the room leave. Once it is laid out it keeps its size. 0 where there is no
/// disk, or only a file of the user's to be read.
pub(crate) fn file_bytes(env: &Env) -> u64 {
    if env.settings.file.is_some() {
        return 0;
    }
    env.disk.laid_out_bytes().unwrap_or_else(|| {
        let bytes = wanted_bytes(env).min(of_budget(env)).min(room(env).map_or(0, |bytes| bytes / 2));
        bytes / (1 << 20) * (1 << 20)
    })
}

/// Bytes that a test file may take; any number where a file of the user's is read.
#[cfg(target_os = "linux")]
pub(crate) fn room(env: &Env) -> Result<u64, String> {
    let room = match &env.settings.file {
        Some(path) => latlab_storage::open_existing(path.as_ref()).map(|_| u64::MAX),
        None => env.disk.place().and_then(|place| place.room()).map(|room| room.largest_file()),
    };
    room.map_err(|error| error.to_string())
}

/// Why there is no room where the probes of the disk were not written.
#[cfg(not(target_os = "linux"))]
pub(crate) fn room(_env: &Env) -> Result<u64, String> {
    Err(format!("measured on Linux only; this is {}", std::env::consts::OS))
}

/// Lays the test file out, in this time; smaller on a slow disk. A disk that fails says so to each point that
/// asks for the file.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "nothing is written"))]
pub fn lay_out(env: &Env, bytes: u64, within: Duration) {
    #[cfg(target_os = "linux")]
    let _said_later = env.disk.lay_out(bytes, within);
}

/// What carries out more than one transfer at a time here.
pub(crate) fn deep_engine() -> Engine {
    #[cfg(target_os = "linux")]
    if latlab_storage::uring_allowed() {
        return Engine::IoUring;
    }
    Engine::Threads
}

/// Size of the file that the user wants measured, bytes.
pub(crate) fn users_bytes(env: &Env) -> u64 {
    let facts = env.settings.file.as_ref().and_then(|path| std::fs::symlink_metadata(path).ok());
    facts.map_or(0, |facts| facts.len())
}

/// The rest is for what is written into it.
fn of_budget(env: &Env) -> u64 {
    env.disk.budget().limit_bytes() / 8 * 3
}

fn wanted_bytes(env: &Env) -> u64 {
    env.settings.profile.of(FILE_BYTES)
}

/// Whether there is a disk to measure. Makes no file.
pub(crate) fn support(env: &Env) -> Support {
    if matches!(env.clock.source, Source::Simulated(_)) {
        return Support::No(SIMULATED.to_owned());
    }
    if let Err(reason) = room(env) {
        return Support::No(reason);
    }
    if env.settings.file.is_some() {
        return Support::Yes;
    }
    let (bytes, wanted) = (file_bytes(env), wanted_bytes(env));
    if let Some(cut) = env.disk.cut_short() {
        let text = format!(
            "the test file has {} instead of {}: the disk was too slow to write it in {:.1} s",
            binary_size(bytes),
            binary_size(cut.wanted_bytes),
            cut.within.as_secs_f64()
        );
        return if bytes < SMALLEST_FILE {
            Support::No(format!("{text}; use a longer --profile or --budget"))
        } else {
            Support::Degraded(text)
        };
    }
    if bytes < SMALLEST_FILE {
        let least = binary_size(SMALLEST_FILE);
        let left = binary_size(bytes);
        return Support::No(if of_budget(env) < SMALLEST_FILE {
            format!("the test file needs at least {least}, and --max-bytes leaves {left}: raise it")
        } else {
            format!(
                "the test file needs at least {least}, and {left} are left: 5 % of the file system, at \
                    least 1 GiB, stay free for others, and ulimit -f limits a file; free some space, or \
                    name another directory with --dir"
            )
        });
    }
    if bytes < wanted {
        return Support::Degraded(format!(
            "the test file has {} instead of {}: the limit on writes or the free space allows no more",
            binary_size(bytes),
            binary_size(wanted)
        ));
    }
    Support::Yes
}

/// [`support`] for a probe that writes: a user's file is only read.
pub(crate) fn support_writing(env: &Env) -> Support {
    if env.settings.file.is_some() {
        return Support::No("a user's file (--file) is only read".to_owned());
    }
    support(env)
}
