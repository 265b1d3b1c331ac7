//! What is asked of this operating system and this CPU: one file each.

#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod system;

pub(crate) use system::{DelayFile, InterruptFlag, RseqFlag, Sources, ThreadCounters, disturb};
pub use system::{is_pinned_to, pin_to};
