//! Whole messages through a socket, and sockets to be had.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use serde::{Deserialize, Serialize};

use crate::NetError;
use crate::listen::has_come;
use crate::sockets::Transport;

/// Fruitless polls between two clock reads: some milliseconds' worth.
const READ_EVERY: u32 = 1 << 12;

/// How both sides wait for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// Asleep in the call.
    Blocking,
    /// By asking again and again.
    Polling,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) socket: OwnedFd,
    pub(super) transport: Transport,
    pub(super) waiting: Waiting,
    /// Longest wait of a side that polls.
    pub(super) patience: Duration,
}

/// How a wait ended that brought nothing.
pub(super) enum Fruitless {
    /// The time is up.
    Late,
    /// The other side is gone.
    Gone,
    Failed(NetError),
}

impl Wire {
    /// Sends all of it. `give_up` is asked now and then while polling.
    pub(super) fn send(&self, message: &[u8], give_up: &dyn Fn() -> bool) -> Result<(), Fruitless> {
        let mut flags = SendFlags::NOSIGNAL;
        if self.waiting == Waiting::Polling {
            flags |= SendFlags::DONTWAIT;
        }
        let mut sent = 0;
        let mut polls = Polls::default();
        while sent < message.len() {
            match send(&self.socket, &message[sent..], flags) {
                Ok(more) => sent += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => polls.again(self.patience, give_up)?,
                Err(error) => return Err(failed("sending a message", error)),
            }
        }
        Ok(())
    }

    /// Receives a whole message. What came before a connection ended is in the error.
    pub(super) fn receive(
        &self,
        message: &mut [u8],
        got: &mut usize,
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), Fruitless> {
        let mut flags = RecvFlags::empty();
        if self.waiting == Waiting::Polling {
            flags |= RecvFlags::DONTWAIT;
        }
        let mut polls = Polls::default();
        self.receive_with(flags, message, got, || polls.again(self.patience, give_up))
    }

    /// The same for a message that may never come, or a byte now and then: however this side waits otherwise,
    /// it sleeps, and looks at whether to give up.
    pub(super) fn receive_or_give_up(
        &self,
        message: &mut [u8],
        got: &mut usize,
        give_up: &dyn Fn() -> bool,
    ) -> Result<(), Fruitless> {
        self.receive_with(RecvFlags::DONTWAIT, message, got, || match has_come(&self.socket, give_up) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fruitless::Late),
            Err(error) => Err(failed("waiting for a message", error)),
        })
    }

    #[inline]
    fn receive_with(
        &self,
        mut flags: RecvFlags,
        message: &mut [u8],
        got: &mut usize,
        mut again: impl FnMut() -> Result<(), Fruitless>,
    ) -> Result<(), Fruitless> {
        let datagrams = self.transport == Transport::Udp;
        if datagrams {
            // The length of a datagram that is too long is reported, not cut.
            flags |= RecvFlags::TRUNC;
        }
        let of = message.len();
        *got = 0;
        while *got < of {
            match recv(&self.socket, &mut message[*got..], flags) {
                Ok((_, 0)) => return Err(Fruitless::Gone),
                Ok((_, length)) if datagrams && length != of => {
                    return Err(Fruitless::Failed(NetError::Length { got: length, of }));
                }
                Ok((_, more)) => *got += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => again()?,
                Err(error) => return Err(failed("receiving a message", error)),
            }
        }
        Ok(())
    }
}

/// A wait without sleeping.
#[derive(Default)]
struct Polls {
    made: u32,
    begun: Option<Instant>,
}

impl Polls {
    #[inline]
    fn again(&mut self, patience: Duration, give_up: &dyn Fn() -> bool) -> Result<(), Fruitless> {
        self.made = self.made.wrapping_add(1);
        if self.made.is_multiple_of(READ_EVERY) {
            let begun = *self.begun.get_or_insert_with(Instant::now);
            if give_up() || begun.elapsed() > patience {
                return Err(Fruitless::Late);
            }
        }
        // No pause of the CPU: the call itself takes longer, and the pause would be part of the figure.
        Ok(())
    }
}

fn failed(what: &str, error: Errno) -> Fruitless {
    match error {
        Errno::CONNRESET | Errno::PIPE | Errno::CONNREFUSED => Fruitless::Failed(NetError::Reset),
        error => Fruitless::Failed(NetError::system(what)(error)),
    }
}
