//! The other side of a network probe, and the way to it.
//!
//! ```text
//! probe ─┬─► a client, in a process of its own ──┐
//!        ├─► a path's keeper, where one is asked ├── Route: the loopback, a path of known length, or a server that waits
//!        └─► a server, in a process of its own ──┘
//! ```
//! Probes that measure over a path have their client in a child process too: this process has threads and cannot go elsewhere.

mod asked;
#[cfg(target_os = "linux")]
mod away;
#[cfg(target_os = "linux")]
mod client;
mod names;
#[cfg(target_os = "linux")]
mod pair;
#[cfg(target_os = "linux")]
mod python;
#[cfg(target_os = "linux")]
mod route;
#[cfg(target_os = "linux")]
mod side;
#[cfg(target_os = "linux")]
mod transfers;
#[cfg(target_os = "linux")]
mod web;

#[cfg(test)]
pub(crate) use asked::NAMED_MOST_BLOCKS;
pub(crate) use asked::{
    NAMED_ONE_S, Seats, named_by_tls, named_count, path_asked, paths, politely, support, support_beside,
    whole_part,
};
#[cfg(target_os = "linux")]
pub(crate) use away::{secret, told};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use client::Fault;
#[cfg(target_os = "linux")]
pub(crate) use client::{Connects, fetch};
pub(crate) use latlab_net::Transport;
pub(crate) use names::{Engine, PathKind, Protocol, RouteDetails};
#[cfg(target_os = "linux")]
pub(crate) use pair::{Pair, Pairs};
#[cfg(target_os = "linux")]
pub(crate) use python::Interpreter;
#[cfg(target_os = "linux")]
pub(crate) use route::{Route, keep};
#[cfg(target_os = "linux")]
pub(crate) use side::{Place, Side, check};
#[cfg(target_os = "linux")]
pub(crate) use transfers::{Stamped, Transferred, Work};
#[cfg(target_os = "linux")]
pub(crate) use web::{WebServer, serve};

#[cfg(test)]
mod tests;
