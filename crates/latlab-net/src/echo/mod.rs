//! Messages there and back over TCP, UDP or a Unix stream socket.
//!
//! ```text
//! Client::prepare  writes marks that only this request has          (untimed)
//! Client::exchange ──request──► Server: its answer changes each mark
//!                  ◄──answer───                                     (timed by the caller)
//! Client::check    every mark is the changed one of this request    (untimed)
//! ```
//! An answer that was lost, doubled, given too early or to another request fails the check: the marks come from a seed that the server
//! never learns. While a side blocks, no timer is set in its calls, because that would be in the figure; a [`Watch`] breaks the
//! connection off instead. A side that polls looks at the clock once in a while.

mod client;
mod marks;
mod server;
mod watch;
mod wire;

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

pub use client::{Client, connect};
pub use marks::answer;
pub use server::{Counts, Reply, Server};
pub use watch::Watch;

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP without Nagle's algorithm.
    Tcp,
    /// UDP, a message a datagram.
    Udp,
    /// A Unix stream socket with a name that is no file.
    Unix,
}

/// How both sides wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// Asleep in the call.
    Blocking,
    /// By asking again and again.
    Polling,
}

/// A server to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Service {
    /// What carries the messages.
    pub transport: Transport,
    /// Where it listens, at any free port; a Unix socket has no such address.
    pub ip: IpAddr,
    /// Size of every message, 16 bytes at least.
    pub bytes: usize,
    /// How it waits.
    pub waiting: Waiting,
    /// The CPU that its thread is kept on.
    pub cpu: Option<u32>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Address {
    /// TCP or UDP.
    Ip(SocketAddr),
    /// The name of a Unix socket in the abstract namespace.
    Unix(String),
}
