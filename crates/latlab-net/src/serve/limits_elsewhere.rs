//! Limits of the process: where there is none for open files.

/// Nothing is in the way.
pub(super) fn raise_open_files() {}
