//! Memory for probes of virtual memory: mappings whose pages are touched by the probe alone, what the kernel
//! says of them, and a file that is gone when the probe is.

mod scratch;
mod trust;

pub(crate) use latlab_probes_shared::linux::{Region, page_bytes, resident};
pub(crate) use scratch::Scratch;
pub(crate) use trust::{Faults, Trust, faults_of_this_thread, map_populate_works, populate_write_works};
