//! What the network probes measure against: servers, clients, and the path between them, in processes and
//! namespaces of their own.
//!
//! ```text
//! echo   ◄── messages, answered each ── TCP, UDP, Unix sockets; timed by the caller
//! stream ◄── bytes one way ── TCP, Unix sockets; counted where they arrive
//! serve  ◄── GET /bytes/N, POST /sink ── HTTP/1.1, HTTP/2, with TLS or without ── fetch
//!                      delay: what lies between them, on one machine
//! ```
//! Nothing here is timed: whoever measures takes the stamps. A server never shares a thread with the client
//! that measures it. Every wait is bounded, and nothing stays behind on any way out.

#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
pub mod delay;
#[cfg(target_os = "linux")]
pub mod echo;
mod error;
pub mod fetch;
mod joined;
#[cfg(target_os = "linux")]
mod listen;
#[cfg(target_os = "linux")]
mod process;
pub mod serve;
#[cfg(target_os = "linux")]
mod serving;
#[cfg(target_os = "linux")]
pub mod sockets;
mod spec;
#[cfg(target_os = "linux")]
pub mod stream;

pub use error::NetError;
#[cfg(target_os = "linux")]
pub use process::end_with_the_parent;
#[cfg(target_os = "linux")]
pub use serving::Serving;
pub use spec::{PathSpec, Transport};
