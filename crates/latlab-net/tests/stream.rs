//! Streams between threads of one process: what they prove, and how they end.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use latlab_net::NetError;
use latlab_net::echo::{Address, Transport};
use latlab_net::stream::{Arrivals, Fault, Received, Receivers, Senders, Sent, Sink, Source};

const PATIENCE: Duration = Duration::from_millis(300);

struct Flow {
    arrivals: Arrivals,
    receivers: Receivers,
    senders: Senders,
}

fn flow(transport: Transport, streams: usize, message: usize, fault: Option<Fault>) -> Flow {
    let arrivals = Arrivals::new().expect("shared memory");
    let theirs = Arrivals::inherited(arrivals.as_fd().as_raw_fd()).expect("the same");
    let sink = Sink {
        transport,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        streams,
        cpus: Vec::new(),
    };
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
    let source = Source {
        message,
        seed: 11,
        cpus: Vec::new(),
    };
    Flow {
        arrivals,
        receivers,
        senders: Senders::start(sockets, &source).expect("threads"),
    }
}

impl Flow {
    /// Sends for a while, twice, and ends.
    fn run(mut self) -> Result<(Vec<Sent>, Vec<Received>), NetError> {
        let streams = self.senders.len();
        let mut sent = Vec::new();
        for _ in 0..2 {
            self.senders.go()?;
            std::thread::sleep(Duration::from_millis(10));
            sent = self.senders.rest(PATIENCE)?;
        }
        let all: u64 = sent.iter().map(|sent| sent.amount.bytes).sum();
        let begun = Instant::now();
        while self.arrivals.sum(streams) < all && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.arrivals.sum(streams), all, "all that was sent arrives");
        drop(self.senders);
        Ok((sent, self.receivers.end()?))
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
            assert!(sent.amount.bytes > 0);
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
    let (sent, received) = flow(Transport::Tcp, 1, 64 << 10, Some(Fault::Spoils))
        .run()
        .expect("it goes");
    assert_eq!(sent[0].amount.bytes, received[0].amount.bytes);
    assert_ne!(sent[0].amount.digest, received[0].amount.digest);
}

#[test]
fn a_receiver_that_takes_no_more_is_not_waited_for() {
    let begun = Instant::now();
    let stuck = flow(Transport::Tcp, 2, 128 << 10, Some(Fault::Stops(1 << 20)));
    let error = stuck.run().expect_err("it stands");
    assert!(matches!(error, NetError::Silent { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "every wait is bounded");
}

#[test]
fn a_receiver_that_closes_is_named() {
    let error = flow(Transport::Tcp, 1, 128 << 10, Some(Fault::Closes(1 << 20)))
        .run()
        .expect_err("it closed");
    assert!(matches!(error, NetError::Reset), "{error}");
}

#[test]
fn receivers_to_whom_nobody_comes_end_when_they_are_told() {
    let begun = Instant::now();
    let sink = Sink {
        transport: Transport::Tcp,
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        streams: 1,
        cpus: Vec::new(),
    };
    let receivers =
        Receivers::start(sink, Arrivals::new().expect("shared memory"), None).expect("the loopback");
    assert!(receivers.end().expect("nothing went wrong").is_empty());
    assert!(begun.elapsed() < Duration::from_secs(2));
}
