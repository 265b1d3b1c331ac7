//! Probes of the kernel: calls, switches, sleeping and waking.

pub mod context_switch;
pub mod mutex;
pub mod noise;
pub mod spawn;
pub mod syscall;
pub mod timer;
pub mod wakeup;
