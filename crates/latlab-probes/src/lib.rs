//! The probes, one a file in the folder of its tier, and the registry that lists them.

mod clock;
mod levels;
mod memory;
mod registry;
pub mod session;
mod vector;
mod walk;

pub use registry::{Entry, REGISTRY};
