//! Linux.

#[path = "posix.rs"]
mod posix;

pub(crate) use posix::{Termination, open};

/// Asks for SIGKILL when the parent ends.
pub(crate) fn die_with_parent() -> bool {
    // SAFETY: PR_SET_PDEATHSIG takes one integer, a signal, and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 }
}
