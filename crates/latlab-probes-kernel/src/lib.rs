//! Probes of the kernel: calls, switches, sleeping and waking.

pub mod kernel;
