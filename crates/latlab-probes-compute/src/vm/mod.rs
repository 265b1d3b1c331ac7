//! Virtual memory: faults and mappings.

pub mod fault;
pub mod map;
pub mod zero;
