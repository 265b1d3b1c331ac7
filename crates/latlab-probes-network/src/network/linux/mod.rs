//! What the probes of the network share on Linux.

mod echo;
mod load;
mod middle;
mod reach;

use latlab_harness::ProbeError;
use latlab_net::NetError;

pub(crate) use echo::{Ask, Echo};
pub(crate) use load::{Ends, Load, Shape, serve};
pub(crate) use middle::{at_quantile, interval, median};
pub(crate) use reach::{Reach, serve_sockets};

/// An error of the network's crate as one of a probe.
pub(crate) fn failed(error: NetError) -> ProbeError {
    match error {
        NetError::System { what, source } => ProbeError::System { what, source },
        NetError::Wrong { .. } | NetError::Length { .. } => ProbeError::Proof(error.to_string()),
        error => ProbeError::Other(error.to_string()),
    }
}
