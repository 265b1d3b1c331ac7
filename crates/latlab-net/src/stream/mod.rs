//! Bytes one way, as many as will go, by one connection or several at once.
//!
//! ```text
//! Senders (a thread a stream) ──bytes──► Sink (a thread a stream, in another process)
//!                                           │ counts what arrived, in memory that both processes see
//! whoever measures ◄──────── Arrivals ──────┘ and takes the time stamps
//! ```
//! Counted is what the receiving program has taken out of its sockets: bytes in some buffer have not arrived.
//! Nobody waits for an acknowledgement, so a long way costs nothing but its own delay. Both ends reduce what
//! they sent and received to a [`Digest`], which must be the same: the contents come from a seed that the
//! receiver never learns.

mod arrivals;
mod contents;
mod facts;
mod receivers;
mod senders;

pub use arrivals::{Arrivals, MOST_STREAMS};
pub use contents::{Amount, Digest};
pub use facts::TcpFacts;
pub use receivers::{Fault, Received, Sink};
pub use senders::{LONGEST_MESSAGE, Senders, Sent, Source};
