//! What the probes of the network share on Linux.

mod echo;
mod far;
mod load;
#[cfg(test)]
pub(crate) mod trial;

use latlab_harness::ProbeError;
use latlab_net::NetError;

pub(crate) use echo::{Answers, Echo, Served, Sum};
use far::{Far, Runs};
pub(crate) use far::{run, serve_sockets};
pub(crate) use load::{Agreement, Ends, Load, Receives, Shape};

/// An error of the network's crate as one of a probe.
pub(crate) fn failed(error: NetError) -> ProbeError {
    match error {
        NetError::System { what, source } => ProbeError::System { what, source },
        NetError::Wrong { .. } | NetError::Length { .. } => ProbeError::Proof(error.to_string()),
        error => ProbeError::Other(error.to_string()),
    }
}
