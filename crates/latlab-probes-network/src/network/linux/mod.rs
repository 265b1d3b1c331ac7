//! What the probes of the network share on Linux.

mod echo;
mod load;
mod reach;
#[cfg(test)]
pub(crate) mod trial;
mod visits;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use latlab_harness::ProbeError;
use latlab_net::NetError;
use latlab_net::sockets::{Address, Transport as Carrier};

use crate::peer::Transport;
pub(crate) use echo::{Ask, Echo, Served, Sum, serve_echoes};
pub(crate) use load::{Agreement, Ends, Load, Shape, serve_streams};
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

/// Does something at the loopback's address of IPv4, or else of IPv6; returns which one it was. `is_gone` says whether the process at the other end
/// has ended, for which no address is to blame.
pub(crate) fn by_loopback<S, T>(
    side: &mut S,
    mut at: impl FnMut(&mut S, IpAddr) -> Result<T, ProbeError>,
    is_gone: fn(&S) -> bool,
) -> Result<(IpAddr, T), ProbeError> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let refused = match at(side, v4) {
        Ok(done) => return Ok((v4, done)),
        Err(refused) if is_gone(side) => return Err(refused),
        Err(refused) => refused,
    };
    at(side, v6).map(|done| (v6, done)).map_err(|also| {
        ProbeError::Other(format!("there is no loopback address that answers: {refused}; {also}"))
    })
}
