//! What TCP itself says of a connection.

use std::os::fd::{AsFd, AsRawFd};

use serde::{Deserialize, Serialize};

/// More than any kernel has to say so far.
const ROOM: usize = 256;
/// What every kernel since 2.6 says. An emulator that hands on less has said nothing.
const LEAST: usize = 104;

/// From `TCP_INFO` (tcp(7), `struct tcp_info` in `linux/tcp.h`), at the sender. What an older kernel does not
/// tell is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFacts {
    /// Smoothed round trip, us.
    pub rtt_us: u32,
    /// Shortest round trip of the last minutes, us.
    pub min_rtt_us: u32,
    /// Segments that may be under way.
    pub congestion_window: u32,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Segments that were sent again, since the connection was made.
    pub retransmits: u32,
    /// What TCP reckons to deliver, bytes a second.
    pub delivery_bytes_per_s: u64,
    /// Time in which there was something to send, us.
    pub busy_us: u64,
    /// Of it: waiting for room at the receiver.
    pub receiver_limited_us: u64,
    /// Of it: waiting for room in the sender's buffer.
    pub buffer_limited_us: u64,
}

impl TcpFacts {
    /// Of this socket; none when it is no TCP socket, or the system does not tell.
    pub fn of(socket: &impl AsFd) -> Option<Self> {
        tcp_info(socket).map(|info| Self::read(&info))
    }

    /// The structure only ever grows at its end.
    fn read(info: &[u8; ROOM]) -> Self {
        let short = |at: usize| {
            let mut own = [0; 4];
            own.copy_from_slice(&info[at..at + 4]);
            u32::from_ne_bytes(own)
        };
        let long = |at: usize| {
            let mut own = [0; 8];
            own.copy_from_slice(&info[at..at + 8]);
            u64::from_ne_bytes(own)
        };
        Self {
            segment_bytes: short(16),
            rtt_us: short(68),
            congestion_window: short(80),
            retransmits: short(100),
            min_rtt_us: match short(148) {
                // Nothing measured yet.
                u32::MAX => 0,
                known => known,
            },
            delivery_bytes_per_s: long(160),
            busy_us: long(168),
            receiver_limited_us: long(176),
            buffer_limited_us: long(184),
        }
    }
}

fn tcp_info(socket: &impl AsFd) -> Option<[u8; ROOM]> {
    let mut info = [0_u8; ROOM];
    #[expect(clippy::cast_possible_truncation, reason = "256")]
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the buffer is as long as is said, and the kernel writes no more than that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (status == 0 && length as usize >= LEAST).then_some(info)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_that_carried_something_has_a_round_trip_and_segments() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut server, _) = listener.accept().expect("somebody");
        client.write_all(&[1; 1000]).expect("written");
        server.read_exact(&mut [0; 1000]).expect("read");
        server.write_all(&[1]).expect("written");
        client.read_exact(&mut [0]).expect("read");
        let Some(facts) = TcpFacts::of(&client) else {
            // The emulator of another CPU's programs hands on four bytes.
            assert_eq!(std::env::consts::ARCH, "aarch64", "Linux tells");
            return;
        };
        assert!(facts.segment_bytes > 500 && facts.congestion_window > 0, "{facts:?}");
    }

    #[test]
    fn other_sockets_have_none() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(TcpFacts::of(&one), None);
    }
}
