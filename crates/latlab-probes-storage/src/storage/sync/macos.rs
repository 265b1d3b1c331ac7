//! macOS: fsync hands the bytes to the drive and stops there; `F_FULLFSYNC` has the drive flush its cache as well.

use std::os::fd::BorrowedFd;

use latlab_harness::{Env, ProbeError};
use rustix::fs::{fcntl_fullfsync, fsync};
use rustix::io::retry_on_intr;

use super::{Operation, Way, Write};

#[path = "posix.rs"]
mod posix;

pub(super) use posix::Syncing as Session;

pub(super) type Counted = ();

/// Files with names would need a folder that somebody sweeps after a crash: creating is not measured.
pub(super) const OPERATIONS: &[Operation] = &[Operation::Overwrite, Operation::Append];
pub(super) const WAYS: &[Way] = &[Way::Fsync, Way::FullFsync];

pub(super) fn room(env: &Env) -> Result<u64, String> {
    match crate::storage::not_asked_for(env) {
        Some(reason) => Err(reason),
        None => posix::room(env.disk.directory()).map(|room| room.largest_file()),
    }
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Write]) -> Result<Session<'env>, ProbeError> {
    Session::new(env, env.disk.directory(), flush)
}

fn flush(way: Way, file: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    match way {
        Way::FullFsync => retry_on_intr(|| fcntl_fullfsync(file))?,
        _ => retry_on_intr(|| fsync(file))?,
    }
    Ok(true)
}
