//! What receivers do with a sender that connects and sends nothing, by a clock that the test moves.

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::*;
use crate::listen::{listen, tests::Moved};
use crate::sockets::connect;

/// Longer than any wait, even under emulation.
const BOUND: Duration = Duration::from_secs(30);
const JUST: Duration = Duration::from_millis(10);

#[test]
fn a_stream_without_a_byte_is_ended_when_its_time_is_up_and_another_goes_on() {
    for transport in [Transport::Tcp, Transport::Unix] {
        let sink = Sink { transport, streams: 2, cpus: Vec::new() };
        let (listening, address) = listen(transport, Ipv4Addr::LOCALHOST.into()).expect("the loopback");
        let arrivals = Arrivals::new().expect("shared memory");
        let moved = Moved::default();
        let clock = moved.clock();
        let thread =
            std::thread::spawn(move || run(&sink, &listening, &Stop::default(), &arrivals, None, &clock));
        let opened = || {
            let socket = connect(&address, transport, BOUND).expect("they listen");
            set_socket_timeout(&socket, Timeout::Recv, Some(BOUND)).expect("a time-out");
            std::fs::File::from(socket)
        };
        let mut silent = opened();
        moved.is_read();
        let mut other = opened();
        moved.is_read();
        other.write_all(&[0; 800]).expect("sent");
        moved.forward(PATIENCE.saturating_sub(JUST));
        moved.is_read();
        let heard = recv(&silent, &mut [0; 1], RecvFlags::DONTWAIT);
        assert_eq!(heard, Err(Errno::AGAIN), "ended too early");
        moved.forward(2 * JUST);
        assert_eq!(silent.read(&mut [0]).expect("an end"), 0);
        moved.forward(360 * PATIENCE);
        other.write_all(&[0; 800]).expect("it is open");
        drop(other);
        let received = thread.join().expect("no panic").expect("no failure");
        let bytes: Vec<u64> = received.iter().map(|own| own.amount.bytes).collect();
        assert_eq!(bytes, [0, 1600]);
    }
}
