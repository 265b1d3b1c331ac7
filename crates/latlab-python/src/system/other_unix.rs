//! macOS and the other Unix systems: no death signal; the broken pipe ends the worker.

#[path = "posix.rs"]
mod posix;

pub(crate) use posix::{Termination, inherited, open};

pub(crate) fn die_with_parent() -> bool {
    false
}

/// No scratch folders are made here.
pub(crate) fn sweep(_directory: &std::path::Path) -> usize {
    0
}
