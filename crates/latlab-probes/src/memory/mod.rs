//! Caches and RAM.

pub(crate) mod alignment;
pub(crate) mod bandwidth;
pub(crate) mod core_to_core;
pub(crate) mod false_sharing;
pub(crate) mod load_dependent;
pub(crate) mod loaded;
pub(crate) mod parallelism;
pub(crate) mod poke;
pub(crate) mod prefetch;
pub(crate) mod stride;
