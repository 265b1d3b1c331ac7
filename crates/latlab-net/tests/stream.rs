//! Streams between threads of one process: what they prove, and how they end.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use latlab_net::NetError;
use latlab_net::sockets::{Address, Transport};
use latlab_net::stream::{Arrivals, Fault, Received, Receivers, Senders, Sent, Sink, Source};

/// For what goes on: any of the threads may be kept from its CPU for long.
const LONG: Duration = Duration::from_secs(30);
/// For what does not.
const SHORT: Duration = Duration::from_millis(300);

struct Flow {
    arrivals: Arrivals,
    receivers: Receivers,
    senders: Senders,
}

fn flow(transport: Transport, streams: usize, message: usize, fault: Option<Fault>) -> Flow {
    let arrivals = Arrivals::new().expect("shared memory");
    let theirs = Arrivals::inherited(arrivals.as_fd().as_raw_fd()).expect("the same");
    let sink = Sink { transport, ip: IpAddr::V4(Ipv4Addr::LOCALHOST), streams, cpus: Vec::new() };
    let receivers = Receivers::start(sink, theirs, fault).expect("the loopback");
    let sockets = (0..streams)
        .map(|_| -> OwnedFd {
            match receivers.address() {
                Address::Ip(address) => TcpStream::connect(address).expect("it listens").into(),
                Address::Unix(name) => {
                    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).expect("a name");
                    UnixStream::connect_addr(&address).expect("it listens").into()
                }
            }
        })
        .collect();
    let source = Source { message, seed: 11, cpus: Vec::new() };
    Flow { arrivals, receivers, senders: Senders::start(sockets, &source).expect("threads") }
}

impl Flow {
    /// Sends for a moment.
    fn send(&mut self, patience: Duration) -> Result<Vec<Sent>, NetError> {
        self.senders.go()?;
        std::thread::sleep(Duration::from_millis(10));
        self.senders.rest(patience)
    }

    /// Sends twice, and more often until every stream has had its turn, and ends.
    fn run(mut self) -> Result<(Vec<Sent>, Vec<Received>), NetError> {
        let streams = self.senders.len();
        self.send(LONG)?;
        let mut sent = self.send(LONG)?;
        while sent.iter().any(|sent| sent.amount.bytes == 0) {
            sent = self.send(LONG)?;
        }
        let all: u64 = sent.iter().map(|sent| sent.amount.bytes).sum();
        let begun = Instant::now();
        while self.arrivals.sum(streams) < all && begun.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.arrivals.sum(streams), all, "all that was sent arrives");
        drop(self.senders);
        Ok((sent, self.receivers.end()?))
    }

    /// Why it cannot go on: a slow machine sends no more than fits into the buffers in one go.
    fn fails(mut self, patience: Duration) -> NetError {
        let begun = Instant::now();
        loop {
            let went = self.send(patience);
            assert!(begun.elapsed() < LONG, "it is noticed, and every wait is bounded");
            if let Err(error) = went {
                return error;
            }
        }
    }
}

#[test]
fn both_ends_of_every_stream_agree_on_how_much_and_what() {
    for (transport, streams, message) in [
        (Transport::Tcp, 1, 128 << 10),
        (Transport::Tcp, 4, 1 << 10),
        (Transport::Unix, 2, 1 << 20),
        (Transport::Tcp, 1, 64),
    ] {
        let (sent, received) = flow(transport, streams, message, None).run().expect("it goes");
        assert_eq!((sent.len(), received.len()), (streams, streams));
        let mut left: Vec<_> = received.iter().map(|received| received.amount).collect();
        for sent in &sent {
            // The emulator of another CPU's programs hands on nothing of what TCP knows.
            let told = transport == Transport::Tcp && std::env::consts::ARCH == "x86_64";
            assert!(sent.tcp.is_some() || !told);
            assert!(sent.tcp.is_none() || transport == Transport::Tcp);
            let same = left.iter().position(|amount| *amount == sent.amount);
            left.remove(same.expect("the other end says the same"));
        }
    }
}

#[test]
fn what_was_spoilt_on_its_way_is_noticed() {
    let (sent, received) = flow(Transport::Tcp, 1, 64 << 10, Some(Fault::Spoils)).run().expect("it goes");
    assert_eq!(sent[0].amount.bytes, received[0].amount.bytes);
    assert_ne!(sent[0].amount.digest, received[0].amount.digest);
}

#[test]
fn a_receiver_that_takes_no_more_is_not_waited_for() {
    let stuck = flow(Transport::Tcp, 2, 128 << 10, Some(Fault::Stops(1 << 20)));
    let error = stuck.fails(SHORT);
    assert!(matches!(error, NetError::Silent { .. }), "{error}");
}

#[test]
fn a_receiver_that_closes_is_named() {
    let closed = flow(Transport::Tcp, 1, 128 << 10, Some(Fault::Closes(1 << 20)));
    let error = closed.fails(LONG);
    assert!(matches!(error, NetError::Reset), "{error}");
}

#[test]
fn receivers_to_whom_nobody_comes_end_when_they_are_told() {
    let begun = Instant::now();
    let sink =
        Sink { transport: Transport::Tcp, ip: IpAddr::V4(Ipv4Addr::LOCALHOST), streams: 1, cpus: Vec::new() };
    let receivers =
        Receivers::start(sink, Arrivals::new().expect("shared memory"), None).expect("the loopback");
    assert!(receivers.end().expect("nothing went wrong").is_empty());
    // Who waits for somebody to come gives up after ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(8));
}
