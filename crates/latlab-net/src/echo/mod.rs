//! Messages there and back over TCP, UDP or a Unix stream socket.
//!
//! ```text
//! Client::prepare  writes marks that only this request has          (untimed)
//! Client::exchange ──request──► Service: its answer changes each mark
//!                  ◄──answer───                                     (timed by the caller)
//! Client::check    every mark is the changed one of this request    (untimed)
//! ```
//! An answer that was lost, doubled, given too early or to another request fails the check: the marks come
//! from a seed that the server never learns. While a side blocks, no timer is set in its calls, because that
//! would be in the figure; a [`Watch`] breaks the connection off instead. A side that polls reads the clock
//! once in a while.

mod client;
mod marks;
mod server;
mod watch;
mod wire;

pub use client::Client;
pub use marks::answer;
pub use server::{Counts, Reply, Service};
pub use watch::Watch;
pub use wire::Waiting;
