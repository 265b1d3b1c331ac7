//! Every probe in the order of a run, and the measuring session that takes them.

mod children;
mod deal;
mod fold;
mod registry;
pub mod session;

pub use children::run_child;
pub use fold::fold;
pub use registry::{Entry, REGISTRY};

#[cfg(test)]
latlab_probes_testing::as_a_child!(run_child);
