//! Probes of the network: sockets, and what is behind them.

pub mod connect;
pub mod http;
#[cfg(target_os = "linux")]
mod linux;
pub mod loaded;
pub mod roundtrip;
pub mod throughput;
pub mod transfer;

#[cfg(target_os = "linux")]
pub(crate) use linux::serve_sockets;
