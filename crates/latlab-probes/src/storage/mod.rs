//! Disks and file systems.

pub(crate) mod poke;
pub(crate) mod rate;
pub(crate) mod read_random;
pub(crate) mod read_sequential;
pub(crate) mod sync;
pub(crate) mod write_random;
pub(crate) mod write_sequential;

mod random;
