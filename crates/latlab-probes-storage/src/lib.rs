//! Probes of disks and file systems.

#[allow(dead_code, reason = "each probe of the disk uses a part of it")]
pub mod disk;
#[cfg(test)]
mod planted;
pub mod storage;
