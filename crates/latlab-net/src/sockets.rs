//! Connected sockets, also from a process that is elsewhere: in a network namespace that this one cannot
//! enter, because it has threads.
//!
//! A socket stays in the namespace in which it was made, whoever uses it. So a child goes there, connects,
//! and hands the sockets over.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::NetError;
pub use crate::spec::Transport;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Address {
    /// TCP or UDP.
    Ip(SocketAddr),
    /// The name of a Unix socket in the abstract namespace.
    Unix(String),
}

impl Address {
    /// That of an interface; a Unix socket has none.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip()),
            Self::Unix(_) => None,
        }
    }
}

/// A socket that is connected to this address; TCP without Nagle's algorithm.
/// Fails when the system refuses, or nobody listens within `patience`.
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

/// Starts a child that gets this descriptor too, under the same number. Fails when there is no such
/// descriptor.
pub fn handed_down<T>(descriptor: BorrowedFd<'_>, start: impl FnOnce() -> T) -> Result<T, NetError> {
    let refused = |error: rustix::io::Errno| NetError::system("handing a descriptor to a child")(error);
    let flags = fcntl_getfd(descriptor).map_err(refused)?;
    fcntl_setfd(descriptor, flags - FdFlags::CLOEXEC).map_err(refused)?;
    let started = start();
    fcntl_setfd(descriptor, flags).map_err(refused)?;
    Ok(started)
}

/// The parent's descriptor of this number, as one of our own.
pub(crate) fn inherited(number: RawFd) -> Result<OwnedFd, NetError> {
    let what = "a descriptor of the parent";
    if number < 0 {
        return Err(NetError::system(what)(rustix::io::Errno::BADF));
    }
    // SAFETY: only duplicated, and only for as long as that takes; a number that is not open is refused by
    // the system.
    let parents = unsafe { BorrowedFd::borrow_raw(number) };
    parents.try_clone_to_owned().map_err(NetError::system(what))
}

/// Where sockets come out of a child.
#[derive(Debug)]
pub struct Hatch {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Hatch {
    /// Nothing comes yet. Fails when the system refuses a pair of sockets.
    pub fn new() -> Result<Self, NetError> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(NetError::system("a pair of sockets"))?;
        Ok(Self { ours, theirs })
    }

    /// What the child needs, to be [handed down](handed_down).
    pub fn theirs(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    /// What the child knows it by.
    pub fn number(&self) -> RawFd {
        self.theirs.as_raw_fd()
    }

    /// One that the child has said to have sent. Fails when there is none.
    pub fn take(&self) -> Result<OwnedFd, NetError> {
        let refused = || NetError::system("a socket from a child");
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut room = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(
            &self.ours,
            &mut [IoSliceMut::new(&mut byte)],
            &mut room,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        )
        .map_err(|error| refused()(error))?;
        room.drain()
            .find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
                _ => None,
            })
            .ok_or_else(|| refused()(rustix::io::Errno::BADF))
    }
}

/// The child's side: connects, and sends the socket to the hatch of this number.
/// Fails when it cannot be connected to, or the hatch is gone.
pub fn hand_over(
    hatch: RawFd,
    address: &Address,
    transport: Transport,
    patience: Duration,
) -> Result<(), NetError> {
    let hatch = inherited(hatch)?;
    let socket = connect(address, transport, patience)?;
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut room = SendAncillaryBuffer::new(&mut space);
    room.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(&hatch, &[IoSlice::new(&[1])], &mut room, SendFlags::NOSIGNAL)
        .map(|_| ())
        .map_err(NetError::system("handing a socket over"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_socket_that_was_handed_over_is_connected() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback");
        let address = Address::Ip(listener.local_addr().expect("bound"));
        let hatch = Hatch::new().expect("a pair");
        let connected = || hand_over(hatch.number(), &address, Transport::Tcp, Duration::from_secs(30));
        handed_down(hatch.theirs(), connected).expect("handed down").expect("connected");
        let mut ours = TcpStream::from(hatch.take().expect("it was sent"));
        let (mut theirs, _) = listener.accept().expect("somebody");
        ours.write_all(b"7").expect("written");
        let mut byte = [0];
        theirs.read_exact(&mut byte).expect("read");
        assert_eq!(&byte, b"7");
        assert!(hatch.take().is_err(), "there is no other, and nobody waits for one");
    }
}
