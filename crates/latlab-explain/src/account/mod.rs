//! From what was recorded, sampled and counted of a program to its ledger. Nothing here asks an operating
//! system.

pub(crate) mod busy;
pub(crate) mod by_place;
pub(crate) mod by_stage;
pub(crate) mod calls;
pub(crate) mod calls_on;
pub(crate) mod discards;
pub(crate) mod estimate;
pub(crate) mod files;
pub(crate) mod first_run;
pub(crate) mod grain;
pub(crate) mod interval;
pub(crate) mod io;
pub(crate) mod lanes;
pub(crate) mod locks;
pub(crate) mod mappings;
pub(crate) mod marks;
pub(crate) mod mix;
pub(crate) mod path;
pub(crate) mod python;
pub(crate) mod records;
pub(crate) mod sampled;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod stream;
pub(crate) mod sweep;
pub(crate) mod tally;
pub(crate) mod tcp;
pub(crate) mod timeline;
pub(crate) mod unread;
pub(crate) mod weights;
pub(crate) mod woken;
