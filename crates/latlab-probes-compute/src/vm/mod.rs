//! Virtual memory: faults and mappings.

pub mod fault;
pub mod map;
pub mod zero;

use latlab_harness::{Plan, Support};

/// This plan with what this system loses of it, or with nothing where it cannot do it.
fn on_this_system<P>(support: Support, plan: Plan<P>) -> Plan<P> {
    match support {
        Support::No(reason) => Plan::no(reason),
        support => Plan { support, ..plan },
    }
}
