//! Pointer chases: memory, the order of a walk through it, and the walk.
//!
//! ```text
//! Arena (pages asked for, populated, verified) + Cycle (a single cycle by construction) ──► Chain ──► walk
//! ```

mod arena;
mod chain;
mod cycle;
mod reference;

#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), path = "assembly.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "portable.rs")]
mod chase;

pub use arena::Arena;
pub use chain::{Chain, Layout, SPARSE_BYTES};
pub use chase::follow_strided;
pub use cycle::Cycle;
pub use reference::ReferenceChase;

/// Bytes of a cache line on every CPU that latlab measures; machines with 128-byte lines (Apple) fetch pairs
/// and are said so by the machine's description.
pub const LINE_BYTES: u64 = 64;
/// Bytes of the page that chains are laid out by.
pub const PAGE_BYTES: u64 = 4096;

/// The pointer at a node: arenas begin on a page, and nodes lie multiples of a line apart.
#[inline]
pub fn link(node: *const u8) -> *const *const u8 {
    node.cast()
}

/// A distance within memory that exists, which fits the address space that the memory lies in.
#[expect(clippy::inline_always, reason = "a timed loop must hold no call, whatever the profile")]
#[inline(always)]
pub fn to_usize(bytes: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the size of a mapping that exists")]
    {
        bytes as usize
    }
}

/// The next state of Knuth's MMIX generator; modulo a power of two its cycle is full (Hull and Dobell 1962:
/// odd increment, multiplier 1 modulo 4).
#[expect(clippy::inline_always, reason = "a timed loop must hold no call, whatever the profile")]
#[inline(always)]
pub const fn mmix(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}
