//! Streams between threads of one process: what they prove, and how they end. What goes wrong on the way is
//! tested with the probes.
#![cfg(target_os = "linux")]

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use latlab_net::sockets::{Transport, connect};
use latlab_net::stream::{Arrivals, Received, Senders, Sent, Sink, Source};
use latlab_net::{NetError, Serving};

/// For what goes on: any of the threads may be kept from its CPU for long.
const LONG: Duration = Duration::from_secs(30);

fn receive(
    transport: Transport,
    streams: usize,
    arrivals: Arrivals,
) -> Result<Serving<Vec<Received>>, NetError> {
    Sink { transport, streams, cpus: Vec::new() }.start(Ipv4Addr::LOCALHOST.into(), arrivals, None)
}

/// Sends twice, and more often until every stream has had its turn, and ends.
fn run(transport: Transport, streams: usize, message: usize) -> Result<(Vec<Sent>, Vec<Received>), NetError> {
    let arrivals = Arrivals::new()?;
    let theirs = Arrivals::inherited(arrivals.as_fd().as_raw_fd())?;
    let receivers = receive(transport, streams, theirs)?;
    let sockets =
        (0..streams).map(|_| connect(receivers.address(), transport, LONG)).collect::<Result<_, _>>()?;
    let mut senders = Senders::start(sockets, &Source { message, seed: 11, cpus: Vec::new() })?;
    let mut sent: Vec<Sent> = Vec::new();
    let mut turns = 0;
    while turns < 2 || sent.iter().any(|sent| sent.amount.bytes == 0) {
        senders.go()?;
        std::thread::sleep(Duration::from_millis(10));
        sent = senders.rest(LONG)?;
        turns += 1;
    }
    let all: u64 = sent.iter().map(|sent| sent.amount.bytes).sum();
    let begun = Instant::now();
    while arrivals.sum(streams) < all && begun.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(arrivals.sum(streams), all, "all that was sent arrives");
    drop(senders);
    Ok((sent, receivers.end()?))
}

#[test]
fn both_ends_of_every_stream_agree_on_how_much_and_what() {
    for (transport, streams, message) in [
        (Transport::Tcp, 1, 128 << 10),
        (Transport::Tcp, 4, 1 << 10),
        (Transport::Unix, 2, 1 << 20),
        (Transport::Tcp, 1, 64),
    ] {
        let (sent, received) = run(transport, streams, message).expect("it goes");
        assert_eq!((sent.len(), received.len()), (streams, streams));
        let mut left: Vec<_> = received.iter().map(|received| received.amount).collect();
        for sent in &sent {
            // The emulator of another CPU's programs hands on nothing of what TCP knows.
            let reported = transport == Transport::Tcp && std::env::consts::ARCH == "x86_64";
            assert!(sent.tcp.is_some() || !reported);
            assert!(sent.tcp.is_none() || transport == Transport::Tcp);
            let same = left.iter().position(|amount| *amount == sent.amount);
            left.remove(same.expect("the other end says the same"));
        }
    }
}

#[test]
fn receivers_to_whom_nobody_comes_end_when_they_are_told() {
    let begun = Instant::now();
    let arrivals = Arrivals::new().expect("shared memory");
    let receivers = receive(Transport::Tcp, 1, arrivals).expect("the loopback");
    assert!(receivers.end().expect("nothing went wrong").is_empty());
    // Who waits for somebody to come gives up after ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(8));
}
