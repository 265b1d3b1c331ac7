//! What the kernel counts of each TCP connection: bytes and segments, both ways, exact and whatever the calls
//! were.
//!
//! Programs read and write sockets by a dozen calls, of which the counters of a process know two
//! (`read` and `write`, not `recv` and `send`). The connections themselves know what was sent and received. A
//! socket that several processes have is one connection, and counts once.

use std::collections::HashMap;
use std::net::SocketAddr;

/// More is handed to the network at once by no kernel.
const MOST_AT_ONCE: f64 = 65_536.0;
/// Connections that are followed; more are left out.
const MOST: usize = 8192;

/// Counters of a connection (`struct tcp_info` in `linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Bytes that the other end has confirmed.
    pub sent_bytes: u64,
    /// Bytes that came in order.
    pub received_bytes: u64,
    /// Segments sent, those without data too.
    pub segments_sent: u64,
    /// Segments received with data.
    pub data_received: u64,
    /// Segments that were sent again.
    pub sent_again: u64,
}

impl Counters {
    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            received_bytes: of(self.received_bytes, other.received_bytes),
            segments_sent: of(self.segments_sent, other.segments_sent),
            data_received: of(self.data_received, other.data_received),
            sent_again: of(self.sent_again, other.sent_again),
        }
    }
}

/// A TCP socket at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    /// This end.
    pub here: SocketAddr,
    /// The other one; absent of a socket that only listens.
    pub there: Option<SocketAddr>,
    /// Since the connection was made.
    pub counters: Counters,
    /// Bytes of its largest segments.
    pub segment_bytes: u32,
    /// Smoothed round trip; 0: none was measured.
    pub round_trip_us: u32,
}

impl Socket {
    /// As it is shown.
    pub(crate) fn name(&self) -> String {
        match self.there {
            Some(there) => format!("tcp {} to {there}", self.here),
            None => format!("tcp {}, listening", self.here),
        }
    }
}

/// All that a program has sent and received, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    /// Bytes, both ways.
    pub bytes: u64,
    /// Times that something was handed to the network, at least and at most: neighbouring segments go
    /// together where a network card takes them.
    pub sends: (f64, f64),
    /// Segments received with data.
    pub receives: u64,
}

impl Traffic {
    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.sends.0 += other.sends.0;
        self.sends.1 += other.sends.1;
        self.receives += other.receives;
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Connection {
    /// Its counters when it was first seen, if it was there before its program was watched.
    before: Counters,
    last: Socket,
}

impl Connection {
    fn since(&self) -> Counters {
        self.last.counters.with(&self.before, u64::saturating_sub)
    }

    fn traffic(&self) -> Traffic {
        let counters = self.since();
        let sends = counters.segments_sent as f64;
        let half = f64::from(self.last.segment_bytes) / 2.0;
        // Segments that are not nearly full were handed over one by one.
        let least = if (counters.sent_bytes as f64) < half * sends {
            sends
        } else {
            (counters.sent_bytes as f64 / MOST_AT_ONCE).min(sends)
        };
        Traffic {
            bytes: counters.sent_bytes + counters.received_bytes,
            sends: (least, sends),
            receives: counters.data_received,
        }
    }
}

/// Connections by the number of their socket (its inode).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Connections(HashMap<u64, Connection>);

impl Connections {
    /// A socket as it is now. `was_there`: before its program was watched, if it is first seen now.
    pub(crate) fn take(&mut self, number: u64, socket: Socket, was_there: bool) {
        if let Some(known) = self.0.get_mut(&number) {
            known.last = socket;
        } else if self.0.len() < MOST {
            let before = if was_there { socket.counters } else { Counters::default() };
            self.0.insert(number, Connection { before, last: socket });
        }
    }

    /// A socket as it was last seen, and what it has carried since its program was watched.
    pub(crate) fn of(&self, number: u64) -> Option<(&Socket, Counters)> {
        self.0.get(&number).map(|connection| (&connection.last, connection.since()))
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        self.0.values().for_each(|connection| sum.add(&connection.traffic()));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(sent_bytes: u64, segments_sent: u64) -> Socket {
        Socket {
            here: SocketAddr::from(([127, 0, 0, 1], 80)),
            there: Some(SocketAddr::from(([127, 0, 0, 1], 4711))),
            counters: Counters { sent_bytes, segments_sent, data_received: 3, ..Counters::default() },
            segment_bytes: 1448,
            round_trip_us: 0,
        }
    }

    #[test]
    fn what_a_connection_had_carried_before_is_not_the_programs() {
        let mut connections = Connections::default();
        connections.take(1, socket(1000, 10), true);
        connections.take(1, socket(1500, 15), true);
        connections.take(2, socket(700, 7), false);
        assert_eq!(connections.traffic().bytes, 500 + 700);
        assert_eq!(connections.traffic().sends, (12.0, 12.0));
        assert_eq!(connections.traffic().receives, 3);
        assert_eq!(connections.of(1).unwrap().1.sent_bytes, 500);
        assert_eq!(connections.of(3), None);
    }

    #[test]
    fn full_segments_may_have_been_handed_over_together() {
        let mut connections = Connections::default();
        connections.take(1, socket(65_536 * 10, 450), false);
        assert_eq!(connections.traffic().sends, (10.0, 450.0));
    }

    #[test]
    fn a_connection_is_named_by_both_of_its_ends() {
        assert_eq!(socket(0, 0).name(), "tcp 127.0.0.1:80 to 127.0.0.1:4711");
        assert_eq!(Socket { there: None, ..socket(0, 0) }.name(), "tcp 127.0.0.1:80, listening");
    }

    #[test]
    fn there_is_a_limit_to_connections() {
        let mut connections = Connections::default();
        for number in 0..2 * MOST as u64 {
            connections.take(number, socket(1, 1), false);
        }
        assert_eq!(connections.traffic().bytes, MOST as u64);
    }
}
