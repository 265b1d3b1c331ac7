//! What the probes of the disk share: the test file and its size, whether there is a disk to measure, the way
//! to its blocks, and the evidence that they were read from there.
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
mod words;

#[cfg(target_os = "linux")]
pub(crate) use blocks::*;
pub use size::lay_out;
pub(crate) use size::{deep_engine, file_bytes, room, support, support_writing, users_bytes};
pub use words::*;

#[cfg(test)]
mod tests;
