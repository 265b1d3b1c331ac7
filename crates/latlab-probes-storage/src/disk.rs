//! What the probes of the disk share: the test file and its size, whether there is a disk to measure, the way to its blocks, and the
//! evidence that they were read from there.
//!
//! ```text
//! support ──► Target (test file, or the user's) ──► Flow: Engine + Places ──► Block::in_flight
//!                │ chill: evicted, looked at           │ each block's header
//!                └────────────── Evidence ◄────────────┘ bytes that the kernel counted ──► checks
//! ```

#[cfg(target_os = "linux")]
mod blocks;
pub(crate) mod curve;
mod size;
#[cfg_attr(target_os = "linux", path = "disk/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "disk/elsewhere.rs")]
mod system;
mod words;

#[cfg(target_os = "linux")]
pub(crate) use blocks::*;
pub(crate) use size::{file_bytes, support, support_writing};
pub use system::lay_out;
pub(crate) use system::{deep_engine, room, users_bytes};
pub use words::*;

#[cfg(test)]
mod tests;
