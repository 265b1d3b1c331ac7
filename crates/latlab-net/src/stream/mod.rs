//! Bytes one way, as many as will go, by one connection or several at once.
//!
//! ```text
//! Senders (a thread a stream) ──bytes──► Receivers (a thread a stream, in another process)
//!                                           │ counts what arrived, in memory that both processes see
//! whoever measures ◄──────── Arrivals ──────┘ and takes the time stamps
//! ```
//! Counted is what the receiving program has taken out of its sockets: bytes in some buffer have not arrived. Nobody waits for an
//! acknowledgement, so a long way costs nothing but its own delay. Both ends reduce what they sent and received to a [`Digest`], which must be
//! the same: the contents come from a seed that the receiver never learns.

mod arrivals;
mod contents;
mod facts;
mod receivers;
mod senders;

use serde::{Deserialize, Serialize};

pub use arrivals::Arrivals;
pub use contents::Digest;
pub use facts::TcpFacts;
pub use receivers::{Fault, Received, Receivers, Sink};
pub use senders::{Senders, Sent, Source};

/// Most streams at once.
pub const MOST_STREAMS: usize = 64;
/// Longest message, bytes.
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// What one end of one stream has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Of their contents.
    pub digest: u64,
}
