//! A path with a known round trip and rate between two network namespaces of our own: distance, on one
//! machine.
//!
//! ```text
//! keep ─► client namespace ══ netem, or else the delay line ══ server namespace
//!              ▲                                                     ▲
//!            enter                                                 enter        (children, before they start a thread)
//! ```
//! A proxy that waits is no path: it leaves out the round trips of the handshake and of slow start, seven
//! times too fast for 1 MB over 20 ms. So the delay is put under the sockets, to every packet, in both
//! directions. Where the kernel has netem it delays; where it has not, frames go from one `AF_PACKET` socket
//! to another and wait in between. An ordinary user does this inside a user namespace. Everything is gone
//! with the keeper's process: no interface, no rule and no name is left, because none was made outside.

mod line;
mod namespace;
mod netlink;
mod offloads;
mod ping;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::NetError;
pub use crate::spec::PathSpec;
use line::{Line, Wire};
use namespace::Namespaces;
pub use namespace::{Entry, enter};

/// One end of the path; documentation addresses (RFC 5737), which nothing real has.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The other end.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// What the interface of each end is called in its namespace.
const INTERFACE: &str = "path";
/// How far a kernel's own delay may be off before ours is preferred; beside it, what a loopback's wake-ups
/// cost.
const CREDIBLE: f64 = 0.03;
const WAKE_UPS_NS: u64 = 300_000;

/// What delays the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The kernel's network emulator, at both ends.
    Netem,
    /// Our forwarder of frames.
    DelayLine,
}

impl Kind {
    /// As records have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Netem => "netem",
            Self::DelayLine => "delay-line",
        }
    }
}

/// A path as it came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Established {
    /// What delays.
    pub kind: Kind,
    /// The client's end.
    pub client: Entry,
    /// The server's end.
    pub server: Entry,
    /// The shortest of some round trips of a datagram, nanoseconds: measured, not asked for.
    pub least_rtt_ns: u64,
    /// Why nothing better delays.
    pub why_not_better: Vec<String>,
}

/// Makes a path, tells `ready`, and keeps it until `stop` can be read or is closed at its other end. To be
/// called in a process of its own with one thread: it moves into other namespaces and stays there. Fails when
/// namespaces are not allowed, or a step is refused; nothing is left then.
pub fn keep(
    spec: &PathSpec,
    stop: BorrowedFd<'_>,
    ready: &mut dyn FnMut(&Established) -> io::Result<()>,
) -> Result<(), NetError> {
    let mut why_not_better = Vec::new();
    let namespaces = Namespaces::make()?;
    let (kind, least_rtt_ns, namespaces, _line) = match by_netem(spec, &namespaces) {
        Ok(least_rtt_ns) => (Kind::Netem, least_rtt_ns, namespaces, None),
        Err(error) => {
            why_not_better.push(format!("netem: {error}"));
            // New ones: what an emulator that was no good has left in the others is gone with them.
            let namespaces = namespaces.again()?;
            let wires = by_line(&namespaces)?;
            let line = Line::start(spec, wires).map_err(NetError::system("starting the delay line"))?;
            (Kind::DelayLine, least_rtt(spec, &namespaces)?, namespaces, Some(line))
        }
    };
    let [client, server] = [&namespaces.client, &namespaces.server].map(|end| namespaces.entry(end));
    ready(&Established { kind, client, server, least_rtt_ns, why_not_better })
        .map_err(NetError::system("reporting the path"))?;
    line::wait_for(&[stop], None).map(drop).map_err(NetError::system("waiting"))
}

/// The kernel's emulator at both ends of one pair of interfaces.
fn by_netem(spec: &PathSpec, namespaces: &Namespaces) -> Result<u64, NetError> {
    namespaces.inside(&namespaces.client, || {
        netlink::add_pair(INTERFACE, INTERFACE, &namespaces.server, CLIENT_MAC, SERVER_MAC)
    })?;
    address(namespaces)?;
    for end in [&namespaces.client, &namespaces.server] {
        namespaces.inside(end, || {
            netlink::add_netem(
                INTERFACE,
                spec.one_way_ns(),
                spec.rate_bit_per_s,
                spec.queue_bytes.map(|_| spec.queue()),
            )
        })?;
    }
    let least = least_rtt(spec, namespaces)?;
    let wanted = spec.rtt_us * 1000;
    let most = wanted as f64 * (1.0 + CREDIBLE) + WAKE_UPS_NS as f64;
    if least < wanted || least as f64 > most {
        return Err(NetError::System {
            what: "the kernel's delay".to_owned(),
            source: io::Error::other(format!("{least} ns were measured instead of {wanted}")),
        });
    }
    Ok(least)
}

/// Two pairs of interfaces, whose inner ends stay here for the line.
fn by_line(namespaces: &Namespaces) -> Result<[Wire; 2], NetError> {
    let ends = [
        ("to-client", &namespaces.client, CLIENT_MAC, 0x11),
        ("to-server", &namespaces.server, SERVER_MAC, 0x12),
    ];
    for (name, end, mac, own) in ends {
        let own = [2, 0, 0, 0, 0, own];
        namespaces.inside(&namespaces.between, || {
            netlink::add_pair(name, INTERFACE, end, own, mac)?;
            netlink::up(name)
        })?;
        namespaces.inside(end, || offloads::off(INTERFACE))?;
    }
    address(namespaces)?;
    let mut wires = Vec::new();
    for (name, ..) in ends {
        wires.push(namespaces.inside(&namespaces.between, || Wire::open(name))?);
    }
    <[Wire; 2]>::try_from(wires).map_err(|_| NetError::NoNamespaces("a path has two ends".to_owned()))
}

/// Gives both ends an address each and tells them of the other, so that no round trip is spent on asking who
/// that is.
fn address(namespaces: &Namespaces) -> Result<(), NetError> {
    let ends =
        [(&namespaces.client, CLIENT, SERVER, SERVER_MAC), (&namespaces.server, SERVER, CLIENT, CLIENT_MAC)];
    for (end, own, other, mac) in ends {
        namespaces.inside(end, || {
            netlink::up("lo")?;
            netlink::add_address(INTERFACE, own, 24)?;
            netlink::up(INTERFACE)?;
            netlink::add_neighbour(INTERFACE, other, mac)
        })?;
    }
    Ok(())
}

fn least_rtt(spec: &PathSpec, namespaces: &Namespaces) -> Result<u64, NetError> {
    let server = namespaces.inside(&namespaces.server, || ping::socket(SERVER))?;
    let client = namespaces.inside(&namespaces.client, || ping::socket(CLIENT))?;
    ping::least(&client, &server, spec.rtt_us).map_err(NetError::system("a round trip over the path"))
}

#[cfg(test)]
mod tests;
