//! Allocators.

pub mod malloc;
pub mod nodes;
pub mod reuse;
