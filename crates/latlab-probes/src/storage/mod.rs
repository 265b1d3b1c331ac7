//! Disks and file systems.

pub(crate) mod read_sequential;
pub(crate) mod write_sequential;
