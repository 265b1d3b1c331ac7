//! What the probes of the network share on Linux.

mod echo;
mod load;
mod middle;
mod reach;
#[cfg(test)]
pub(crate) mod trial;
mod visits;

use std::net::IpAddr;
use std::time::Duration;

use latlab_harness::ProbeError;
use latlab_net::NetError;
use latlab_net::echo::{Address, Transport as Carrier};

use super::Transport;
pub(crate) use echo::{Ask, Echo, Served, Sum, serve_echoes};
pub(crate) use load::{Agreement, Ends, Load, Shape, serve_streams};
pub(crate) use middle::{at_quantile, estimate, median};
pub(crate) use reach::{Reach, serve_sockets};
pub(crate) use visits::Visits;

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

impl From<Transport> for Carrier {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Tcp => Self::Tcp,
            Transport::Udp => Self::Udp,
            Transport::Unix => Self::Unix,
        }
    }
}

/// What is told of an address: the name of a Unix socket is another one each time.
pub(crate) fn ip(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
