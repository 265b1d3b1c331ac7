//! Pointer chases: memory, the order of a walk through it, and the walk.
//!
//! ```text
//! Arena (pages asked for, populated, verified) + Cycle (a single cycle by construction) ──► Chain ──► walk
//! ```

mod arena;
mod chain;
mod cycle;
mod reference;

#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "portable.rs")]
mod chase;

pub use arena::Arena;
pub use chain::{Chain, Layout, SPARSE_BYTES};
pub use cycle::Cycle;
pub use reference::ReferenceChase;

/// Bytes of a cache line on every CPU that latlab measures; machines with 128-byte lines (Apple) fetch pairs and
/// are said so by the machine's description.
pub const LINE_BYTES: u64 = 64;
/// Bytes of the page that chains are laid out by.
pub const PAGE_BYTES: u64 = 4096;
