//! Probes of the network: sockets, and what is behind them.

pub(crate) mod connect;
pub(crate) mod http;
#[cfg(target_os = "linux")]
mod linux;
pub(crate) mod loaded;
pub(crate) mod roundtrip;
pub(crate) mod throughput;
pub(crate) mod transfer;

#[cfg(target_os = "linux")]
pub(crate) use linux::serve_sockets;
