//! A client whose every phase ends at a known moment: HTTP/1.1 on a blocking socket, with TLS or without;
//! HTTP/2 ([`Streams`]); and many requests under way on connections of their own, by one thread (`Pool`).
//!
//! ```text
//! resolve ─► connect ─► TLS ─► request ─► first byte ─► last byte
//! └────── Connection::open ───┘└────── Connection::get ──────────┘ (again and again on a kept connection)
//! ```
//! Whoever measures is called at the end of each phase and takes the stamp itself: no clock is hidden here.
//! Every wait is bounded by one deadline for the whole of it, and every failure says what it was.

mod body;
mod challenge;
mod connection;
mod error;
mod exchange;
#[cfg(target_os = "linux")]
mod pool;
mod reach;
mod streams;
mod timed;
mod tls;
mod url;

pub use challenge::pass;
pub use connection::Connection;
pub use error::{FetchError, Phase};
pub use exchange::Answer;
#[cfg(target_os = "linux")]
pub use pool::{Expected, Pool};
pub use streams::{Ended, Streams};
pub use tls::Trust;
pub use url::Url;

#[cfg(test)]
mod tests;
