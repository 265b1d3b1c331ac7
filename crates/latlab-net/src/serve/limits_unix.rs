//! Limits of the process: Unix.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to the most that is allowed; the usual 1,024 is less than the connections of a sweep.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused there are fewer connections, and the others wait.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Whether something failed because this process, or the system, can open no more files.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
