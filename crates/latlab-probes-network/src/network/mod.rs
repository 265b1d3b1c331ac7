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

#[cfg(all(test, target_os = "linux"))]
use linux::trial;
#[cfg(target_os = "linux")]
pub(crate) use linux::{serve_echoes, serve_sockets, serve_streams};
