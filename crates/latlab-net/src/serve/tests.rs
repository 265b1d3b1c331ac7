//! The server as clients meet it: over sockets of the loopback, each wait bounded.

mod deadlines;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::*;
use crate::fetch::Trust;

/// No wait of these tests takes longer, even under emulation.
const BOUND: Duration = Duration::from_secs(30);
const SECRET: &[u8] = b"a secret of tests only";

fn server() -> Server {
    start(None, 2)
}

fn start(secret: Option<&[u8]>, threads: usize) -> Server {
    let settings = Settings { secret: secret.map(<[u8]>::to_vec), threads, ..Settings::default() };
    Server::start(&settings).expect("the loopback can be listened on")
}

fn connect(server: &Server) -> TcpStream {
    connect_to(server.listening().address)
}

fn connect_to(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, BOUND).expect("the server accepts");
    stream.set_read_timeout(Some(BOUND)).expect("a time-out");
    stream.set_write_timeout(Some(BOUND)).expect("a time-out");
    stream
}

/// An answer: its status line, its header lines in lower case, and its body.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

fn ask(stream: &mut (impl Read + Write), request: &str) -> Answer {
    stream.write_all(format!("{request}\r\n\r\n").as_bytes()).expect("the request is sent");
    answer(stream, request.starts_with("HEAD"))
}

fn answer(stream: &mut impl Read, without_body: bool) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer within the time");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text").to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; if without_body { 0 } else { length }];
    stream.read_exact(&mut body).expect("the body");
    let status = head[9..12].parse().expect("a status");
    Answer { status, head, body }
}

fn get(stream: &mut (impl Read + Write), path: &str) -> Answer {
    ask(stream, &format!("GET {path} HTTP/1.1\r\nHost: test"))
}

#[test]
fn as_many_bytes_as_were_asked_for_come_on_one_kept_connection() {
    let server = server();
    let mut stream = connect(&server);
    let whole = get(&mut stream, "/bytes/1000000");
    assert_eq!((whole.status, whole.body.len()), (200, 1_000_000));
    for count in [0, 1, 300_000] {
        let part = get(&mut stream, &format!("/bytes/{count}"));
        assert_eq!((part.status, part.body.len()), (200, count));
        assert!(part.head.contains(&format!("content-length: {count}\r\n")));
        assert_eq!(part.body[..], whole.body[..count], "the same bytes each time");
    }
    let head = ask(&mut stream, "HEAD /bytes/77 HTTP/1.1\r\nHost: test");
    assert!(head.head.contains("content-length: 77\r\n"));
    let totals = server.served();
    assert_eq!((totals.connections, totals.requests), (1, 5));
    assert_eq!(totals.sent_bytes, 1_300_001);
}

#[test]
fn a_sink_says_how_much_it_took_in() {
    let server = server();
    let mut stream = connect(&server);
    let body = "x".repeat(200_000);
    let request = format!("POST /sink HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((request + &body).as_bytes()).expect("sent");
    assert_eq!(answer(&mut stream, false).body, b"200000\n");
    let chunked = "POST /sink HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0";
    assert_eq!(ask(&mut stream, chunked).body, b"5\n");
    assert_eq!(server.served().received_bytes, 200_005);
}

#[test]
fn what_cannot_be_answered_is_refused_with_the_reason_and_the_connection_goes_on() {
    let server = server();
    let mut stream = connect(&server);
    for (request, status) in [
        ("GET /bytes/ HTTP/1.1", 400),
        ("GET /bytes/+5 HTTP/1.1", 400),
        ("GET /bytes/-5 HTTP/1.1", 400),
        ("GET /bytes/99999999999999999999999 HTTP/1.1", 400),
        ("GET /bytes/1099511627777 HTTP/1.1", 400),
        ("GET /etc/passwd HTTP/1.1", 404),
        ("GET /challenge HTTP/1.1", 404),
        ("GET /sink HTTP/1.1", 405),
        ("DELETE /bytes/5 HTTP/1.1", 405),
        ("GET / HTTP/1.1", 200),
    ] {
        let answer = ask(&mut stream, &format!("{request}\r\nHost: test"));
        assert_eq!(answer.status, status, "{request}");
        assert!(!answer.body.is_empty(), "{request}");
    }
}

#[test]
fn a_client_that_talks_garbage_harms_nobody_else() {
    let server = server();
    for garbage in [&b"\0\0\0\0\r\n\r\n"[..], b"\x16\x03\x01\x00\x02hi", b"GET", b""] {
        let mut stream = connect(&server);
        stream.write_all(garbage).expect("sent");
        stream.shutdown(Shutdown::Write).expect("said");
        let mut answer = Vec::new();
        // Refused, closed or reset: it ends.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    assert_eq!(get(&mut connect(&server), "/bytes/5").body.len(), 5);
}

/// What trusts this certificate and nothing else.
fn trusting(certificate: &[u8], protocol: &[u8]) -> Arc<ClientConfig> {
    Trust::only(certificate).expect("a certificate").speaking(protocol)
}

#[test]
fn two_thousand_connections_at_once_are_all_served() {
    let server = start(None, 1);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // Both ends are in this process, and so are the other tests.
    let possible = limit.map_or(u64::MAX, |limit| limit.saturating_sub(600) / 2);
    let count = usize::try_from(possible.min(2000)).expect("a number of connections");
    let mut streams: Vec<TcpStream> = (0..count).map(|_| connect(&server)).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /bytes/1000 HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    }
    for stream in &mut streams {
        assert_eq!(answer(stream, false).body.len(), 1000);
    }
    assert_eq!(server.served().open, count as u64);
    assert_eq!(server.served().requests, count as u64);
}

/// Memory that this process holds, bytes.
#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("this process is described");
    let pages: u64 = text.split(' ').nth(1).expect("a second number").parse().expect("pages");
    pages * rustix::param::page_size() as u64
}

#[test]
#[cfg(target_os = "linux")]
fn readers_that_do_not_read_hold_no_memory_and_nobody_up() {
    let server = server();
    let tls = trusting(&server.listening().certificate, b"http/1.1");
    drop(get(&mut connect(&server), "/bytes/1000000"));
    let before = resident_bytes();
    let mut plain = Vec::new();
    let mut secured = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(&server);
        stream.write_all(b"GET /bytes/1000000000 HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        plain.push(stream);
    }
    for _ in 0..20 {
        let name = ServerName::from(server.listening().address.ip());
        let connection = ClientConnection::new(Arc::clone(&tls), name).expect("a client");
        let mut stream = StreamOwned::new(connection, connect(&server));
        stream.write_all(b"GET /bytes/1000000000 HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        secured.push(stream);
    }
    for _ in 0..20 {
        assert_eq!(get(&mut connect(&server), "/bytes/100000").body.len(), 100_000);
    }
    // 120 GB were asked for. What other tests of this process hold, they hold for a moment.
    let begun = std::time::Instant::now();
    loop {
        let grown = resident_bytes().saturating_sub(before);
        if grown < 200 << 20 {
            break;
        }
        assert!(begun.elapsed() < BOUND, "{} MiB", grown >> 20);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn with_a_secret_only_signed_requests_are_served() {
    let server = start(Some(SECRET), 1);
    assert!(server.listening().guarded);
    assert_eq!(server.listening().certificate_sha256.len(), 64);
    let mut stream = connect(&server);
    let refused = get(&mut stream, "/bytes/10");
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("www-authenticate: latlab"));
    let challenge = get(&mut stream, "/challenge");
    assert_eq!(challenge.status, 200);
    let challenge = String::from_utf8(challenge.body).expect("a challenge is text");
    let pass = Pass::new(SECRET, &challenge);
    let mut signed = |number, path: &str| {
        let authorization = pass.sign(number, "GET", path);
        ask(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: {authorization}"))
    };
    assert_eq!(signed(0, "/bytes/10").body.len(), 10);
    assert_eq!(signed(1, "/bytes/20").body.len(), 20);
    assert_eq!(signed(1, "/bytes/20").status, 401, "a number is used once");
    assert_eq!(server.served().refused, 2);
}

#[test]
fn beyond_the_loopback_nobody_listens_without_a_secret() {
    let bind = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let open = Settings { bind, ..Settings::default() };
    assert!(matches!(Server::start(&open), Err(ServeError::Open(_))));
    let short = Settings { secret: Some(b"short".to_vec()), ..open.clone() };
    assert!(matches!(Server::start(&short), Err(ServeError::ShortSecret(5))));
    let guarded = Settings { secret: Some(SECRET.to_vec()), ..open };
    let server = Server::start(&guarded).expect("all addresses can be listened on");
    assert!(!server.listening().address.ip().is_loopback());
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = server();
    let same = Settings { bind: Some(server.listening().address), ..Settings::default() };
    let error = Server::start(&same).expect_err("it is taken");
    assert!(error.to_string().contains(&server.listening().address.to_string()), "{error}");
}

#[test]
fn a_server_that_is_dropped_takes_its_connections_along() {
    let server = server();
    let address = server.listening().address;
    let mut kept = connect(&server);
    assert_eq!(get(&mut kept, "/bytes/5").body.len(), 5);
    let mut busy = connect(&server);
    busy.write_all(b"GET /bytes/1000000000 HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    drop(server);
    // The end, or a reset.
    assert!(matches!(kept.read(&mut [0; 8]), Ok(0) | Err(_)));
    assert!(TcpStream::connect_timeout(&address, BOUND).is_err());
}

#[test]
fn answers_wait_as_long_as_they_are_told() {
    const WAIT: Duration = Duration::from_millis(200);
    let settings = Settings { answers_after: WAIT, ..Settings::default() };
    let server = Server::start(&settings).expect("the loopback");
    let begun = std::time::Instant::now();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /bytes/10 HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    }
    for stream in &mut streams {
        assert_eq!(answer(stream, false).body.len(), 10);
    }
    assert!(begun.elapsed() >= WAIT);
}
