//! What the probes of the network share on Linux.

mod echo;
mod load;
mod middle;
mod reach;

use std::time::Duration;

use latlab_harness::ProbeError;
use latlab_net::NetError;

pub(crate) use echo::{Ask, Echo};
pub(crate) use load::{Ends, Load, Shape, serve};
pub(crate) use middle::{at_quantile, estimate, median};
pub(crate) use reach::{Reach, serve_sockets};

/// A process of ours that has not answered for so long hangs, however short a socket is waited for.
const ANSWERS: Duration = Duration::from_secs(4);

/// An error of the network's crate as one of a probe.
pub(crate) fn failed(error: NetError) -> ProbeError {
    match error {
        NetError::System { what, source } => ProbeError::System { what, source },
        NetError::Wrong { .. } | NetError::Length { .. } => ProbeError::Proof(error.to_string()),
        error => ProbeError::Other(error.to_string()),
    }
}
