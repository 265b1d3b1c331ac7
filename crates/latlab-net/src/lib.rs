//! What the network probes measure against: servers in processes of their own.
//!
//! ```text
//! serve ◄── GET /bytes/N, POST /sink ── HTTP/1.1, HTTP/2, with TLS or without
//! ```
//! Nothing here is timed. A server never shares a thread with the client that measures it.

pub mod serve;
