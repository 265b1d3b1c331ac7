//! Caches and RAM.

pub mod alignment;
pub mod bandwidth;
pub mod core_to_core;
pub mod false_sharing;
pub mod load_dependent;
pub mod loaded;
pub mod parallelism;
pub mod poke;
pub mod prefetch;
pub mod stride;

use latlab_harness::Proof;
use latlab_record::Check;

/// With the check of the pages that were asked for, or a flag where other ones were there: the figure is true
/// of what was read, and only the label would be wrong, but a check that fails would refuse it.
fn with_pages<D>(mut proof: Proof<D>, pages: &Check) -> Proof<D> {
    if pages.ok {
        proof.checks.push(pages.clone());
    } else {
        proof.flags.push(format!("degraded: {} not, {}", pages.name, pages.detail));
    }
    proof
}
