//! The side that asks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::wire::{Fruitless, Wire};
use super::{Address, Transport, Waiting, marks};
use crate::NetError;

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
    /// Connects. `patience` bounds the connecting and each wait of a client that polls; a client that blocks needs a
    /// [`Watch`](super::Watch).
    ///
    /// # Errors
    /// When the system refuses, or nobody listens.
    pub fn connect(
        address: &Address,
        transport: Transport,
        waiting: Waiting,
        bytes: usize,
        seed: u64,
        patience: Duration,
    ) -> Result<Self, NetError> {
        let socket = connect(address, transport, patience)?;
        Ok(Self::over(socket, transport, waiting, bytes, seed, patience))
    }

    /// The same over a socket that is connected already.
    #[must_use]
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

    /// Sends the request and receives its answer whole.
    ///
    /// # Errors
    /// When either fails, the connection ends or, polling, the time is up.
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
    ///
    /// # Errors
    /// When it is not.
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
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.number
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.socket.as_fd()
    }
}

/// A socket that is connected to this address; TCP without Nagle's algorithm.
///
/// # Errors
/// When the system refuses, or nobody listens within `patience`.
pub fn connect(address: &Address, transport: Transport, patience: Duration) -> Result<OwnedFd, NetError> {
    Ok(match address {
        Address::Unix(name) => {
            let address =
                std::os::unix::net::SocketAddr::from_abstract_name(name).map_err(NetError::system(name))?;
            UnixStream::connect_addr(&address).map_err(refused("a Unix socket"))?.into()
        }
        Address::Ip(address) if transport == Transport::Udp => {
            let anywhere = match address.ip() {
                own if own.is_loopback() => own,
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((anywhere, 0)).map_err(refused(address.ip()))?;
            socket.connect(address).map_err(refused(address.ip()))?;
            socket.into()
        }
        Address::Ip(address) => {
            let stream = TcpStream::connect_timeout(address, patience).map_err(refused(address.ip()))?;
            stream.set_nodelay(true).map_err(refused("TCP_NODELAY"))?;
            stream.into()
        }
    })
}

fn refused(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> NetError {
    NetError::system(format!("connecting to {what}"))
}
