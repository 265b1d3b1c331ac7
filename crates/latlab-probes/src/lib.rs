//! The probes, one a file in the folder of its tier, and the registry that lists them.

mod again;
mod alloc;
mod children;
mod clock;
#[allow(dead_code, reason = "each probe of the disk uses a part of it")]
mod disk;
mod heap;
mod kernel;
mod levels;
mod memory;
mod network;
mod open_loop;
#[allow(
    dead_code,
    unused_imports,
    reason = "each probe of the network uses a part of it"
)]
mod peer;
mod python;
#[cfg(target_os = "linux")]
mod region;
mod registry;
mod rig;
pub mod session;
mod storage;
#[cfg(test)]
mod testing;
mod vector;
mod vm;
mod walk;

pub use children::run_child;
pub use registry::{Entry, REGISTRY};
