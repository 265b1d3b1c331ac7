//! What is asked of the system before anything is measured.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use latlab_harness::Env;
use latlab_storage::{CutShort, open_existing, uring_allowed};

use super::words::Engine;

/// What carries out more than one transfer at a time here.
pub(crate) fn deep_engine() -> Engine {
    let allowed = File::open("/dev/null").map(|file| uring_allowed(&Arc::new(OwnedFd::from(file))));
    if matches!(allowed, Ok(Ok(()))) { Engine::IoUring } else { Engine::Threads }
}

/// Bytes that a test file may take; any number where a file of the user's is read.
pub(crate) fn room(env: &Env) -> Result<u64, String> {
    if let Some(path) = &env.settings.file {
        return open_existing(Path::new(path)).map(|_| u64::MAX).map_err(|error| error.to_string());
    }
    env.disk
        .place()
        .and_then(|place| place.room())
        .map(|room| room.largest_file())
        .map_err(|error| error.to_string())
}

/// Size of the file that the user wants measured, bytes.
pub(crate) fn users_bytes(env: &Env) -> u64 {
    env.settings
        .file
        .as_ref()
        .and_then(|path| std::fs::symlink_metadata(path).ok())
        .map_or(0, |facts| facts.len())
}

pub(crate) fn laid_out(env: &Env) -> Option<u64> {
    env.disk.laid_out_bytes()
}

/// Lays the test file out, in this time; smaller on a slow disk. A disk that fails says so to each point that asks for the file.
pub fn lay_out(env: &Env, bytes: u64, within: Duration) {
    let _said_later = env.disk.lay_out(bytes, within);
}

pub(crate) fn cut_short(env: &Env) -> Option<CutShort> {
    env.disk.cut_short()
}
