//! Every probe in the order of a run, and the measuring session that takes them.

mod children;
mod deal;
mod fold;
mod registry;
mod schema;
pub mod session;

pub use children::run_child;
pub use fold::fold;
pub use registry::{Entry, REGISTRY};
pub use schema::schema_json;

#[cfg(test)]
latlab_probes_testing::as_a_child!(run_child);
