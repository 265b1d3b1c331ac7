//! The side that asks.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::marks;
use super::wire::{Fruitless, Waiting, Wire};
use crate::NetError;
use crate::sockets::Transport;

/// A connection with one message at a time on its way.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    request: Vec<u8>,
    answer: Vec<u8>,
    seed: u64,
    number: u64,
}

impl Client {
    /// Over a connected socket.
    /// `patience` bounds each wait of a client that polls; one that blocks needs a [`Watch`](super::Watch).
    pub fn over(
        socket: OwnedFd,
        transport: Transport,
        waiting: Waiting,
        bytes: usize,
        seed: u64,
        patience: Duration,
    ) -> Self {
        // Any bytes but zeros, and touched before anything is timed.
        let filled = vec![0xA5; bytes];
        Self {
            wire: Wire { socket, transport, waiting, patience },
            request: filled.clone(),
            answer: filled,
            seed,
            number: 0,
        }
    }

    /// Makes the next request; untimed.
    pub fn prepare(&mut self) {
        self.number += 1;
        marks::stamp(&mut self.request, self.seed, self.number);
    }

    /// Sends the request and receives its answer whole. Fails when either fails, the connection ends or,
    /// polling, the time is up.
    #[inline]
    pub fn exchange(&mut self) -> Result<(), NetError> {
        let never = || false;
        let mut got = 0;
        self.wire
            .send(&self.request, &never)
            .and_then(|()| self.wire.receive(&mut self.answer, &mut got, &never))
            .map_err(|fruitless| match fruitless {
                Fruitless::Late => NetError::Silent { seconds: self.wire.patience.as_secs_f64() },
                Fruitless::Gone => NetError::Closed { got, of: self.answer.len() },
                Fruitless::Failed(error) => error,
            })
    }

    /// Whether all that came is the answer to this request; untimed.
    pub fn check(&mut self) -> Result<(), NetError> {
        match marks::difference(&mut self.request, &self.answer) {
            None => Ok(()),
            Some(byte) => Err(NetError::Wrong {
                number: self.number,
                detail: format!("it differs from byte {byte} on"),
            }),
        }
    }

    /// Requests that were made.
    pub fn requests(&self) -> u64 {
        self.number
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.socket.as_fd()
    }
}
