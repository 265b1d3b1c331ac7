//! What the probes of the network share on Linux.

mod echo;
mod far;
mod load;
#[cfg(test)]
pub(crate) mod trial;
mod visits;

use std::net::IpAddr;

use latlab_harness::ProbeError;
use latlab_net::NetError;
use latlab_net::sockets::Address;

pub(crate) use echo::{Ask, Echo, Served, Sum};
use far::{Far, Runs};
pub(crate) use far::{run, serve_sockets};
pub(crate) use load::{Agreement, Ends, Load, Shape};
pub(crate) use visits::Visits;

/// An error of the network's crate as one of a probe.
pub(crate) fn failed(error: NetError) -> ProbeError {
    match error {
        NetError::System { what, source } => ProbeError::System { what, source },
        NetError::Wrong { .. } | NetError::Length { .. } => ProbeError::Proof(error.to_string()),
        error => ProbeError::Other(error.to_string()),
    }
}

/// What is told of an address: the name of a Unix socket is another one each time.
pub(crate) fn ip(address: &Address) -> Option<IpAddr> {
    match address {
        Address::Ip(address) => Some(address.ip()),
        Address::Unix(_) => None,
    }
}
