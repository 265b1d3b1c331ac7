//! What the network probes measure against: servers, a client, and the path between them, in processes and namespaces of their own.
//!
//! ```text
//! serve ◄── GET /bytes/N, POST /sink ── HTTP/1.1, HTTP/2, with TLS or without ── fetch
//!                      delay: what lies between them, on one machine
//! ```
//! Nothing here is timed: whoever measures takes the stamps. A server never shares a thread with the client that measures it.

#[cfg(target_os = "linux")]
pub mod delay;
pub mod fetch;
pub mod serve;
