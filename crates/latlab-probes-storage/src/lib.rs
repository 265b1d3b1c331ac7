//! Probes of disks and file systems.

pub mod disk;
#[cfg(test)]
mod planted;
pub mod storage;
