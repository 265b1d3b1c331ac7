//! Thousands of connections that say nothing, and a client that knows the secret: one test, because it
//! measures the memory of the process.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use latlab_net::fetch::{Connection, Trust, Url, pass};
use latlab_net::serve::{Server, Settings, is_body};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

/// For answers that come: the threads may be kept from their CPU for long.
const BOUND: Duration = Duration::from_secs(30);
const SECRET: &[u8] = b"a secret of tests only";
const FLOOD: u64 = 5000;
/// What may wait at once, of one address or of all.
const MOST_WAITING: u64 = 2048;
/// A connection that says nothing takes less of this process's memory. Measured: 1.9 KiB, with its timer.
const MOST_BYTES_EACH: u64 = 4 << 10;

/// Memory that this process holds, bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("this process is described");
    let pages: u64 = text.split(' ').nth(1).expect("a second number").parse().expect("pages");
    pages * rustix::param::page_size() as u64
}

/// A connection from this address of the loopback.
fn connected(from: Ipv4Addr, to: SocketAddr) -> OwnedFd {
    let own = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&own, &SocketAddr::from((from, 0))).expect("an address of the loopback");
    connect(&own, &to).expect("the server accepts");
    own
}

/// Fetches a body as a client that knows the secret, which it has to prove.
fn is_served(server: &Server) -> bool {
    let address = server.listening().address;
    let deadline = Instant::now() + BOUND;
    let url = Url::parse(&format!("https://{address}/bytes/300000")).expect("a URL");
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    let pass = pass(&url, &trust, SECRET, deadline).expect("a challenge");
    let signed = pass.next("GET", &url.target);
    let mut connection = Connection::open(&url, &trust, deadline, &mut |_| {}).expect("a connection");
    let answer = connection.get(&url.target, Some(&signed), deadline, &mut |_| {}, &is_body);
    answer.expect("an answer").body_bytes == 300_000
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < BOUND, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn thousands_of_silent_connections_take_little_memory_and_nobodys_place() {
    let server = Server::start(&Settings {
        bind: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        secret: Some(SECRET.to_vec()),
        threads: 2,
        ..Settings::default()
    })
    .expect("the loopback can be listened on");
    // Starting it has raised the limit as far as it may be. Both ends of what waits are in this process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let free = limit.map_or(u64::MAX, |limit| limit.saturating_sub(200));
    let possible = (free / 2).max(free.saturating_sub(MOST_WAITING));
    let flood = possible.min(FLOOD);
    if flood < FLOOD {
        println!("{flood} silent connections instead of {FLOOD}: no more files may be open");
    }
    let waiting = flood.min(MOST_WAITING);
    let to = server.listening().address;
    assert_eq!(to.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert!(is_served(&server));
    for addresses in [1, 16] {
        let before = resident_bytes();
        let accepted = server.served().connections;
        let silent: Vec<OwnedFd> = (0..flood)
            .map(|number| {
                let last = u8::try_from(2 + number % addresses).expect("a small number");
                connected(Ipv4Addr::new(127, 0, 0, last), to)
            })
            .collect();
        wait_until("all are accepted, and all but so many are ended", || {
            let totals = server.served();
            totals.connections - accepted == flood && totals.open == waiting
        });
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < waiting * MOST_BYTES_EACH, "{} bytes each", grown / waiting);
        println!("{addresses} addresses: {} bytes each", grown / waiting);
        for _ in 0..20 {
            assert!(is_served(&server), "beside silent ones of {addresses} addresses");
        }
        // From the very address that the silent ones have, too.
        let mut own = TcpStream::from(connected(Ipv4Addr::new(127, 0, 0, 2), to));
        own.set_read_timeout(Some(BOUND)).expect("a time-out");
        std::io::Write::write_all(&mut own, b"GET /challenge HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut own, &mut head).expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 200");
        drop((own, silent));
        wait_until("nobody is left", || server.served().open == 0);
    }
}
