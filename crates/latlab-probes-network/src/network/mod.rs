//! Probes of the network: sockets, and what is behind them.

pub mod connect;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod http;
#[cfg(target_os = "linux")]
mod linux;
pub mod loaded;
pub mod roundtrip;
pub mod throughput;
pub mod transfer;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(all(test, target_os = "linux"))]
use linux::trial;
#[cfg(target_os = "linux")]
pub(crate) use linux::{serve_echoes, serve_sockets, serve_streams};

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// A Unix stream socket.
    Unix,
}
