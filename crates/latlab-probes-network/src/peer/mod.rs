//! The other side of a network probe, and the way to it.
//!
//! ```text
//! probe ─┬─► a client, in a process of its own ──┐
//!        ├─► a path's keeper, where one is asked ├── Route: the loopback, a path of known length, or a server that waits
//!        └─► a server, in a process of its own ──┘
//! ```
//! Probes that measure over a path have their client in a child process too: this process has threads and
//! cannot go elsewhere.

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
#[cfg(all(test, target_os = "linux"))]
pub(crate) use client::Fault;
pub(crate) use latlab_net::Transport;
pub(crate) use names::{Engine, PathKind, Protocol, RouteDetails};
#[cfg(target_os = "linux")]
pub(crate) use {
    away::{reported, secret},
    client::{Connects, fetch},
    pair::{Pair, Pairs},
    python::Interpreter,
    route::{Route, keep},
    side::{Place, Side, check},
    transfers::{Stamped, Transferred, Work},
    web::{WebServer, serve},
};

#[cfg(test)]
mod tests;
