//! Virtual memory: faults and mappings.

pub(crate) mod fault;
