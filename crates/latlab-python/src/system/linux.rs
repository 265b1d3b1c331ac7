//! Linux.

#[path = "posix.rs"]
mod posix;

use std::path::Path;

use latlab_storage::{Place, Purpose};

pub(crate) use posix::{Termination, inherited, open};

/// Asks for SIGKILL when the parent ends.
pub(crate) fn die_with_parent() -> bool {
    // SAFETY: PR_SET_PDEATHSIG takes one integer, a signal, and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 }
}

/// Removes abandoned scratch folders of this user's in a directory; 0 where that cannot be looked at.
pub(crate) fn sweep(directory: &Path) -> usize {
    Place::open(directory, Purpose::Any).and_then(|place| latlab_storage::sweep(&place)).unwrap_or_default()
}
