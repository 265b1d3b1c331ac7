//! Probes of the network: sockets, and what is behind them.

pub(crate) mod roundtrip;
