//! Allocators.

pub(crate) mod malloc;
pub(crate) mod nodes;
pub(crate) mod reuse;
