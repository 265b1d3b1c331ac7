//! Caches and RAM.

pub mod alignment;
pub mod bandwidth;
pub(crate) mod common;
pub mod core_to_core;
pub mod false_sharing;
pub mod load_dependent;
pub mod loaded;
pub mod parallelism;
pub mod poke;
pub mod prefetch;
pub mod stride;
