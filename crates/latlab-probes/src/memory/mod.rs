//! Caches and RAM.

pub(crate) mod load_dependent;
pub(crate) mod poke;
