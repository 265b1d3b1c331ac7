//! Virtual memory: faults and mappings.

pub(crate) mod fault;
pub(crate) mod map;
pub(crate) mod zero;
