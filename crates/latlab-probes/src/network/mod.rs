//! Probes of the network: sockets, and what is behind them.

pub(crate) mod connect;
pub(crate) mod http;
pub(crate) mod roundtrip;
pub(crate) mod transfer;
