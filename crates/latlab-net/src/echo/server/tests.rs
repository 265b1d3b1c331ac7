//! What a server does with a client that connects and sends no message, by a clock that the test moves.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::thread::JoinHandle;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::*;
use crate::listen::listen;
use crate::listen::tests::Moved;
use crate::sockets::{Address, connect};

const BOUND: Duration = Duration::from_secs(30);
const JUST: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
const BYTES: usize = 64;

/// A server on this clock, and its thread.
fn serving(
    transport: Transport,
    waiting: Waiting,
    clock: &Moved,
) -> (Address, JoinHandle<Result<Counts, NetError>>) {
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (listening, address) = listen(transport, ip).expect("the loopback");
    let service = Service { transport, bytes: BYTES, waiting, cpu: None };
    let clock = clock.clock();
    let thread =
        std::thread::spawn(move || run(service, listening, &Stop::default(), |_, _| Reply::Whole, &clock));
    (address, thread)
}

fn client(address: &Address, transport: Transport) -> std::fs::File {
    let socket = connect(address, transport, BOUND).expect("it listens");
    set_socket_timeout(&socket, Timeout::Recv, Some(BOUND)).expect("a time-out");
    socket.into()
}

#[test]
fn a_client_without_a_whole_message_is_ended_when_its_time_is_up_and_not_before() {
    let part = [0xA5; BYTES / 2];
    let cases: [(Transport, Waiting, &[u8], &[u8]); 7] = [
        (Transport::Tcp, Waiting::Blocking, b"", b""),
        (Transport::Tcp, Waiting::Blocking, &part, b""),
        (Transport::Tcp, Waiting::Blocking, b"", b"x"),
        (Transport::Tcp, Waiting::Polling, b"", b"x"),
        (Transport::Unix, Waiting::Blocking, b"", b""),
        (Transport::Unix, Waiting::Blocking, &part, b""),
        (Transport::Unix, Waiting::Polling, b"", b"x"),
    ];
    for (transport, waiting, first, each_second) in cases {
        let case =
            format!("{transport:?} {waiting:?}: {} bytes, {} a second", first.len(), each_second.len());
        let clock = Moved::default();
        let (address, thread) = serving(transport, waiting, &clock);
        let mut client = client(&address, transport);
        clock.is_read();
        client.write_all(first).expect("sent");
        for _ in 1..PATIENCE.as_secs() {
            clock.forward(SECOND);
            client.write_all(each_second).expect("sent");
        }
        clock.forward(SECOND.saturating_sub(JUST));
        clock.is_read();
        assert!(!thread.is_finished(), "{case}: ended too early");
        clock.forward(2 * JUST);
        // An end, or a reset where something had not been read.
        let ended = client.read(&mut [0]);
        assert!(
            matches!(&ended, Ok(0))
                || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset),
            "{case}"
        );
        let counts = thread.join().expect("no panic").expect("no failure");
        assert_eq!(counts.messages, 0, "{case}");
    }
}

#[test]
fn a_server_to_which_nothing_comes_ends_when_its_time_is_up_and_not_before() {
    for transport in [Transport::Tcp, Transport::Udp, Transport::Unix] {
        let clock = Moved::default();
        let (_, thread) = serving(transport, Waiting::Blocking, &clock);
        clock.is_read();
        clock.forward(PATIENCE.saturating_sub(JUST));
        clock.is_read();
        assert!(!thread.is_finished(), "{transport:?}: ended too early");
        clock.forward(2 * JUST);
        let counts = thread.join().expect("no panic").expect("no failure");
        assert_eq!(counts.messages, 0);
    }
}

#[test]
fn after_a_whole_message_a_server_that_blocks_waits_for_as_long_as_its_client_does() {
    for transport in [Transport::Tcp, Transport::Udp, Transport::Unix] {
        let clock = Moved::default();
        let (address, thread) = serving(transport, Waiting::Blocking, &clock);
        let mut client = client(&address, transport);
        for _ in 0..3 {
            client.write_all(&[7; BYTES]).expect("sent");
            client.read_exact(&mut [0; BYTES]).expect("an answer");
            clock.forward(360 * PATIENCE);
        }
        // One that is too short ends a server of datagrams, which have no end.
        if transport == Transport::Udp {
            client.write_all(&[7]).expect("sent");
            assert!(thread.join().expect("no panic").is_err());
        } else {
            drop(client);
            assert_eq!(thread.join().expect("no panic").expect("no failure").messages, 3);
        }
    }
}
