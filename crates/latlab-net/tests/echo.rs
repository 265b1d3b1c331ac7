//! Answers that are right, and servers that do wrong: one test, because it counts the descriptors and threads
//! of the process.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use latlab_net::NetError;
use latlab_net::echo::{Client, Counts, Reply, Service, Waiting, Watch, answer};
use latlab_net::sockets::{Transport, connect};

/// For answers that come: any of the threads may be kept from its CPU for long.
const LONG: Duration = Duration::from_secs(30);
/// For those that never do.
const SHORT: Duration = Duration::from_millis(150);
const SEED: u64 = 42;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn service(transport: Transport, waiting: Waiting, bytes: usize) -> Service {
    Service { transport, bytes, waiting, cpu: None }
}

/// So many round trips, each waited for so long; what the server counted.
fn trips(
    service: Service,
    patience: Duration,
    count: u64,
    reply: impl FnMut(u64, &mut [u8]) -> Reply + Send + 'static,
) -> Result<Counts, NetError> {
    let server = service.start(LOOPBACK, reply)?;
    let socket = connect(server.address(), service.transport, patience)?;
    let mut client = Client::over(socket, service.transport, service.waiting, service.bytes, SEED, patience);
    let watch = Watch::start()?;
    for _ in 0..count {
        client.prepare();
        watch.arm(&client, patience)?;
        let exchanged = client.exchange();
        let broken_off = watch.disarm();
        if broken_off {
            return Err(NetError::Silent { seconds: patience.as_secs_f64() });
        }
        exchanged?;
        client.check()?;
    }
    drop(client);
    server.end()
}

fn right(_: u64, message: &mut [u8]) -> Reply {
    answer(message);
    Reply::Whole
}

/// Right twice, then the fault.
fn then(fault: Reply) -> impl FnMut(u64, &mut [u8]) -> Reply + Send + 'static {
    move |number, message| {
        answer(message);
        if number < 3 { Reply::Whole } else { fault }
    }
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// A thread that was joined may still be listed for a moment; what it has opened is closed when it is not.
fn only_these_threads_stay(count: usize) {
    let begun = Instant::now();
    while entries("/proc/self/task") != count {
        assert!(begun.elapsed() < LONG, "{count} threads before, {} now", entries("/proc/self/task"));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn answers_are_right_faults_are_named_within_their_time_and_nothing_stays() {
    // What the first use of anything opens stays open, its threads do not.
    let threads = entries("/proc/self/task");
    trips(service(Transport::Tcp, Waiting::Blocking, 64), LONG, 1, right).expect("an echo");
    only_these_threads_stay(threads);
    let descriptors = entries("/proc/self/fd");

    let transports = [Transport::Tcp, Transport::Udp, Transport::Unix];
    let ways =
        transports.map(|transport| [Waiting::Blocking, Waiting::Polling].map(|waiting| (transport, waiting)));
    for (transport, waiting) in ways.into_iter().flatten() {
        for bytes in [16, 64, 4096, 60_000, 65_536] {
            if transport == Transport::Udp && bytes > 60_000 {
                continue;
            }
            let counts = trips(service(transport, waiting, bytes), LONG, 8, right)
                .unwrap_or_else(|error| panic!("{transport:?} {waiting:?} {bytes}: {error}"));
            assert_eq!((counts.messages, counts.bytes), (8, 8 * bytes as u64));
            assert!(counts.kept_to_its_cpu);
        }
        let begun = Instant::now();
        let failed = |fault, patience, expected: &str| {
            let error = trips(service(transport, waiting, 64), patience, 5, then(fault))
                .expect_err("a fault")
                .to_string();
            assert!(error.contains(expected), "{transport:?} {waiting:?}: {error}");
        };
        failed(Reply::Nothing, SHORT, "no answer came within 0.15 s");
        failed(Reply::Twice, LONG, "answer 4 does not match its request");
        if transport == Transport::Udp {
            failed(Reply::Part(40), LONG, "an answer of 40 bytes came to a message of 64");
        } else {
            failed(Reply::Part(40), SHORT, "no answer came");
            failed(Reply::Close, LONG, "closed the connection after 0 of 64 bytes");
        }
        if transport == Transport::Tcp {
            failed(Reply::Reset, LONG, "reset the connection");
        }
        let unchanged = trips(service(transport, waiting, 64), LONG, 1, |_, _| Reply::Whole);
        assert!(matches!(unchanged, Err(NetError::Wrong { number: 1, .. })), "{unchanged:?}");
        assert!(begun.elapsed() < LONG, "nothing that fails is waited for so long");
    }

    // A server to which nobody comes can be ended, and a client whose server is gone is told so.
    let server = service(Transport::Tcp, Waiting::Blocking, 64).start(LOOPBACK, right).expect("a server");
    let address = server.address().clone();
    assert_eq!(server.end().expect("ended").messages, 0);
    let refused = connect(&address, Transport::Tcp, LONG);
    assert!(refused.expect_err("nobody there").to_string().contains("connecting to 127.0.0.1"));
    let elsewhere = Service { cpu: Some(1_000_000), ..service(Transport::Tcp, Waiting::Blocking, 64) };
    assert!(trips(elsewhere, LONG, 1, right).is_err(), "a CPU that does not exist");
    only_these_threads_stay(threads);
    assert_eq!(entries("/proc/self/fd"), descriptors, "no descriptor stays open");
}
