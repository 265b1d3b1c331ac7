//! Asks the kernel for all TCP sockets of this network namespace (`sock_diag(7)`): any user may.
//!
//! The request and its answer are written out, as `latlab-net` does for its paths: they are a few dozen
//! bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use crate::account::tcp::{Counters, Socket};

/// `SOCK_DIAG_BY_FAMILY` and `INET_DIAG_INFO` of `linux/sock_diag.h` and `linux/inet_diag.h`.
const BY_FAMILY: u16 = 20;
const INFO: u16 = 2;
const HEADER: usize = 16;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;
const LISTENS: u8 = 10;
/// Answers that are read; each has some hundred sockets.
const MOST_ANSWERS: usize = 64;
const BUFFER: usize = 32 << 10;

/// All of them that could be had, by the number of the socket (its inode); none where the kernel does not
/// tell.
pub(super) fn all() -> Vec<(u64, Socket)> {
    let mut found = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        // Whoever may not ask knows less.
        let _ = of_family(family, &mut found);
    }
    found
}

fn of_family(family: AddressFamily, found: &mut Vec<(u64, Socket)>) -> rustix::io::Result<()> {
    let socket: OwnedFd =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    send(&socket, &request(family), SendFlags::empty())?;
    let mut buffer = vec![0_u8; BUFFER];
    for _ in 0..MOST_ANSWERS {
        // The answer to a dump is there when it was asked for.
        let (length, _) = recv(&socket, &mut buffer, RecvFlags::DONTWAIT)?;
        if !messages(&buffer[..length], found) {
            break;
        }
    }
    Ok(())
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: all states, with `struct tcp_info`.
fn request(family: AddressFamily) -> Vec<u8> {
    const LENGTH: u32 = 72;
    /// `NLM_F_REQUEST`, `NLM_F_ROOT` and `NLM_F_MATCH`.
    const DUMP: u16 = 0x301;
    const TCP: u8 = 6;
    let family = u8::try_from(family.as_raw()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(LENGTH as usize);
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, TCP, 1 << (INFO - 1), 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.resize(LENGTH as usize, 0);
    bytes
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Where the next one begins: they are aligned to four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// The sockets of one answer; whether more is to come.
fn messages(mut bytes: &[u8], found: &mut Vec<(u64, Socket)>) -> bool {
    while let (Some(length), Some(kind)) = (word(bytes, 0), short(bytes, 4)) {
        let length = length as usize;
        let Some(message) = bytes.get(HEADER..length) else { return false };
        if kind != BY_FAMILY {
            // The end of the list, or an error.
            return false;
        }
        found.extend(socket(message));
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
    }
    true
}

/// Of a `struct inet_diag_msg` and what follows it; `None`: it has no number any more, or is no socket.
fn socket(message: &[u8]) -> Option<(u64, Socket)> {
    let (family, state) = (*message.first()?, *message.get(1)?);
    let address = |port: usize, at: usize| -> Option<SocketAddr> {
        let port = u16::from_be_bytes(message.get(port..port + 2)?.try_into().ok()?);
        let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
        let address = if i32::from(family) == libc::AF_INET {
            IpAddr::from(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
        } else {
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        };
        Some(SocketAddr::new(address, port))
    };
    let number = u64::from(word(message, 68)?);
    let info = attribute(message.get(MESSAGE..)?, INFO).unwrap_or(&[]);
    let of = |at: usize| u64::from(word(info, at).unwrap_or(0));
    // The number that opens a connection counts as a byte.
    let sent_bytes = long(info, 120).unwrap_or(0).saturating_sub(1);
    let socket = Socket {
        here: address(4, 8)?,
        there: if state == LISTENS { None } else { address(6, 24) },
        counters: Counters {
            sent_bytes,
            received_bytes: long(info, 128).unwrap_or(0),
            segments_sent: of(136),
            data_received: of(152),
            sent_again: of(100),
        },
        segment_bytes: word(info, 16).unwrap_or(0),
        round_trip_us: word(info, 68).unwrap_or(0),
    };
    (number > 0).then_some((number, socket))
}

/// What an attribute holds.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(short(bytes, 0)?), short(bytes, 2)?);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(aligned(length)..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, BorrowedFd};

    use super::*;

    fn number(socket: &impl AsRawFd) -> u64 {
        // SAFETY: borrowed for this call from a socket that is open.
        let socket = unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) };
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    #[test]
    fn a_connection_is_found_with_what_it_has_carried() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..5 {
            client.write_all(&[1; 200]).unwrap();
            server.read_exact(&mut [0; 200]).unwrap();
        }
        server.write_all(&[1; 70]).unwrap();
        client.read_exact(&mut [0; 70]).unwrap();
        let all = all();
        let of = |socket: u64| all.iter().find(|found| found.0 == socket).map(|found| found.1);
        let Some(found) = of(number(&client)) else {
            // An emulator of another CPU's programs knows nothing of this.
            assert_eq!(std::env::consts::ARCH, "aarch64", "Linux tells");
            return;
        };
        assert_eq!(found.here, client.local_addr().unwrap());
        assert_eq!(found.there, Some(client.peer_addr().unwrap()));
        assert_eq!((found.counters.sent_bytes, found.counters.received_bytes), (1000, 70));
        assert!(found.counters.segments_sent >= 5 && found.counters.data_received == 1, "{found:?}");
        let listening = of(number(&listener)).unwrap();
        assert_eq!((listening.here, listening.there), (listener.local_addr().unwrap(), None));
    }

    #[test]
    fn damaged_answers_are_read_as_far_as_they_go() {
        crate::watch::sample::fuzz(|random| {
            let mut bytes = request(AddressFamily::INET);
            bytes.resize(400, 7);
            bytes[..4].copy_from_slice(&400_u32.to_ne_bytes());
            random.change(&mut bytes);
            let mut found = Vec::new();
            messages(&bytes, &mut found);
            assert!(found.len() <= bytes.len() / MESSAGE);
        });
    }
}
