//! Each way in which a server can fail, with one that does; every wait and every count is bounded.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::timed::Timed;
use super::*;
use crate::serve::{Server, Settings};

/// Long enough for any answer on the loopback, even under emulation.
pub(super) const BOUND: Duration = Duration::from_secs(30);
/// For servers that never answer.
const SHORT: Duration = Duration::from_millis(200);

pub(super) fn any(_: u64, _: &[u8]) -> bool {
    true
}

fn soon() -> Instant {
    Instant::now() + BOUND
}

fn nobody() -> Trust {
    Trust::nobody().expect("TLS")
}

/// One transfer and the phases that ended.
fn fetch(url: &str, trust: &Trust, limit: Duration) -> (Result<Answer, FetchError>, Vec<Phase>) {
    let mut phases = Vec::new();
    let deadline = Instant::now() + limit;
    let result = Url::parse(url).and_then(|url| {
        let mut connection = Connection::open(&url, trust, deadline, &mut |phase| phases.push(phase))?;
        connection.get(&url.target, None, deadline, &mut |phase| phases.push(phase), &any)
    });
    (result, phases)
}

fn failure(url: &str, limit: Duration) -> (FetchError, Vec<Phase>) {
    let (result, phases) = fetch(url, &nobody(), limit);
    (result.expect_err("no server answers so"), phases)
}

/// Asserts that whoever is given so long runs out of time in this phase.
pub(super) fn times_out_in(phase: Phase, attempt: impl FnOnce(Duration) -> FetchError) {
    // Far longer than a busy machine takes for the phases before it.
    let limit = 10 * SHORT;
    let begun = Instant::now();
    let error = attempt(limit);
    assert!(matches!(error, FetchError::TimedOut(at) if at == phase), "{error:?}");
    assert!(begun.elapsed() >= limit);
}

/// A server that does this with each of its connections, one after the other, until `most` have come.
pub(super) fn serving(
    most: usize,
    serve: impl Fn(TcpStream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        for _ in 0..most {
            let (stream, _) = listener.accept().expect("a client");
            stream.set_read_timeout(Some(BOUND)).expect("a time-out");
            serve(stream);
        }
    });
    (address, serving)
}

/// A server for one connection: reads a request's first bytes, says this, and does that with the connection.
fn server(says: &'static [u8], then: fn(TcpStream)) -> (SocketAddr, JoinHandle<()>) {
    serving(1, move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        // A client that has gone is no failure of the server's.
        let _ = stream.write_all(says);
        then(stream);
    })
}

/// Why such a server's answer is none, and the phases that ended.
fn reported(
    scheme: &str,
    says: &'static [u8],
    then: fn(TcpStream),
    limit: Duration,
) -> (FetchError, Vec<Phase>) {
    let (address, serving) = server(says, then);
    let failed = failure(&format!("{scheme}://{address}/file"), limit);
    serving.join().expect("the server");
    failed
}

/// Waits until the client has gone.
fn wait(mut stream: TcpStream) {
    let _ = stream.read(&mut [0]);
}

/// Ends the connection with a reset.
#[cfg(target_os = "linux")]
fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
    drop(stream);
}

/// Sends a byte now and then.
fn drip(mut stream: TcpStream) {
    while stream.write_all(b"x").is_ok() {
        std::thread::sleep(SHORT / 10);
    }
}

pub(super) const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nhello";

#[test]
fn phases_end_in_their_order_each_once() {
    let (address, serving) = server(HELLO, drop);
    let (result, phases) = fetch(&format!("http://{address}/"), &nobody(), BOUND);
    assert_eq!(result.expect("an answer"), Answer { body_bytes: 5, kept: true });
    let order = [Phase::Resolve, Phase::Connect, Phase::Request, Phase::FirstByte, Phase::LastByte];
    assert_eq!(phases, order);
    serving.join().expect("the server");
    let (error, phases) = failure(&format!("http://{address}/"), BOUND);
    assert!(matches!(error, FetchError::Refused), "nobody listens any more: {error:?}");
    assert_eq!(phases, [Phase::Resolve]);
}

#[test]
fn an_answer_that_is_none_is_called_what_it_is() {
    static ENDLESS: [u8; 200_000] = [b'a'; 200_000];
    for (scheme, says, then, expected) in [
        ("http", &b""[..], drop as fn(TcpStream), "Truncated { got: 0 }"),
        ("http", b"HTTP/1.1 200 OK\r\nConte", drop, "Truncated { got: 22 }"),
        ("http", HALF, drop, "Truncated { got: 5 }"),
        (
            "http",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
            drop,
            "Truncated { got: 5 }",
        ),
        #[cfg(target_os = "linux")]
        ("http", b"", reset, "Reset"),
        ("http", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", drop, "Status(503)"),
        ("http", b"220 ftp.example.org ready\r\n", wait, "Garbage"),
        ("http", b"\0\x01\x02\x03", wait, "Garbage"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", wait, "Garbage"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", wait, "Garbage"),
        ("http", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n", wait, "Garbage"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", wait, "Garbage"),
        ("http", &ENDLESS, wait, "Garbage"),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", drop, "Garbage"),
    ] {
        let (error, phases) = reported(scheme, says, then, BOUND);
        assert!(format!("{error:?}").starts_with(expected), "{error:?} instead of {expected}");
        assert!(!phases.contains(&Phase::LastByte));
    }
}

#[test]
fn a_server_that_never_ends_its_answer_costs_its_time_out_and_the_phase_is_named() {
    for (scheme, says, then, phase) in [
        ("http", &b""[..], wait as fn(TcpStream), Phase::FirstByte),
        ("http", HALF, wait, Phase::LastByte),
        ("http", HALF, drip, Phase::LastByte),
        ("https", b"", wait, Phase::Tls),
    ] {
        times_out_in(phase, |limit| reported(scheme, says, then, limit).0);
    }
}

pub(super) fn ours(secret: Option<&[u8]>) -> Server {
    let settings = Settings { secret: secret.map(<[u8]>::to_vec), ..Settings::default() };
    Server::start(&settings).expect("the loopback")
}

#[test]
fn a_certificate_of_nobodys_is_bad_and_the_right_one_is_good_for_its_names() {
    let server = ours(None);
    let address = server.listening().address;
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    let url = format!("https://{address}/bytes/100000");
    let (error, phases) = failure(&url, BOUND);
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
    assert_eq!(phases, [Phase::Resolve, Phase::Connect]);
    for url in [url, format!("https://localhost:{}/bytes/100000", address.port())] {
        let (result, phases) = fetch(&url, &trust, BOUND);
        assert_eq!(result.expect("an answer").body_bytes, 100_000);
        assert_eq!(phases.len(), 6);
    }
    let socket = TcpStream::connect(address).expect("a connection");
    let other = tls::shake_hands(Timed::new(socket, soon()), "localhost.localdomain", &trust);
    let error = other.expect_err("another name");
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
    assert!(Trust::only(b"no certificate").is_err());
}

#[test]
fn a_body_by_tls_that_ends_without_a_word_says_how_much_of_it_came() {
    let server = ours(None);
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    let there = server.listening().address;
    // The way to the server, cut off after so many bytes of its answers.
    let (address, relaying) = serving(1, move |mut client| {
        let server = TcpStream::connect(there).expect("a server");
        let second = |socket: &TcpStream| socket.try_clone().expect("a descriptor");
        let (mut asked, mut asking) = (second(&client), second(&server));
        let requests = std::thread::spawn(move || io::copy(&mut asked, &mut asking));
        let _ = io::copy(&mut second(&server).take(200_000), &mut client);
        // An end, and no reset: what the client has sent is read first.
        let _ = client.shutdown(Shutdown::Write);
        let _ = server.shutdown(Shutdown::Both);
        let _ = requests.join();
    });
    let (result, phases) = fetch(&format!("https://{address}/bytes/1000000"), &trust, BOUND);
    let error = result.expect_err("a fifth of the body");
    assert!(matches!(error, FetchError::Truncated { got } if (100_000..200_000).contains(&got)), "{error:?}");
    assert_eq!(phases.last(), Some(&Phase::FirstByte));
    relaying.join().expect("the relay");
}

#[test]
fn a_name_that_nobody_has_is_said_within_the_time() {
    let begun = Instant::now();
    let (error, phases) = failure("http://no-such-name.invalid/", Duration::from_secs(2));
    assert!(matches!(error, FetchError::NoName(_) | FetchError::TimedOut(Phase::Resolve)), "{error:?}");
    assert_eq!(phases, []);
    assert!(begun.elapsed() < BOUND);
}

#[test]
fn an_address_that_no_route_leads_to_is_said_within_the_time() {
    // The discard prefix (RFC 6666): no network forwards it.
    let (error, phases) = failure("http://[100::1]/", 5 * SHORT);
    assert!(matches!(error, FetchError::NoRoute | FetchError::TimedOut(Phase::Connect)), "{error:?}");
    assert_eq!(phases, [Phase::Resolve]);
    for kind in
        [io::ErrorKind::NetworkUnreachable, io::ErrorKind::HostUnreachable, io::ErrorKind::AddrNotAvailable]
    {
        assert!(matches!(FetchError::of(kind.into(), Phase::Connect), FetchError::NoRoute));
    }
}

#[test]
fn one_connection_is_used_again_and_the_bodies_are_compared() {
    let open = |address: SocketAddr| {
        let url = Url::parse(&format!("http://{address}/")).expect("a URL");
        Connection::open(&url, &nobody(), soon(), &mut |_| {}).expect("a connection")
    };
    let get = |connection: &mut Connection, target: &str| {
        connection.get(target, None, soon(), &mut |_| {}, &crate::serve::is_body)
    };
    let server = ours(None);
    let mut connection = open(server.listening().address);
    for count in [0, 1, 1_000_000] {
        let answer = get(&mut connection, &format!("/bytes/{count}")).expect("an answer");
        assert_eq!(answer, Answer { body_bytes: count, kept: true });
    }
    assert_eq!(server.served().connections, 1);
    let (address, serving) = self::server(HELLO, drop);
    let error = get(&mut open(address), "/").expect_err("other bytes");
    assert!(matches!(error, FetchError::Garbage(_)), "{error:?}");
    serving.join().expect("the server");
}

#[test]
fn urls_are_read_as_they_are_written() {
    for (text, tls, host, port, target, authority) in [
        ("http://example.org", false, "example.org", 80, "/", "example.org"),
        ("https://example.org:8443/a?b=c#d", true, "example.org", 8443, "/a?b=c", "example.org:8443"),
        ("http://[::1]:80?q", false, "::1", 80, "/?q", "[::1]"),
        ("http://10.0.0.1:81#d", false, "10.0.0.1", 81, "/", "10.0.0.1:81"),
        (
            "http://h/%C3%A9~(x);y=z|{w}?a=[1]&b={c}|d",
            false,
            "h",
            80,
            "/%C3%A9~(x);y=z|{w}?a=[1]&b={c}|d",
            "h",
        ),
    ] {
        let url = Url::parse(text).expect(text);
        assert_eq!(url.authority(), authority);
        assert_eq!(url, Url { tls, host: host.to_owned(), port, target: target.to_owned() });
    }
}

#[test]
fn what_is_wrong_with_a_url_is_said_in_one_line() {
    for (text, why) in [
        ("", "neither with http:// nor with https://"),
        ("example.org", "neither with http:// nor with https://"),
        ("ftp://example.org", "neither with http:// nor with https://"),
        ("http://", "no host"),
        ("http:///file", "no host"),
        ("http://:80/", "no host"),
        ("http://h:99999/", "its port is invalid"),
        ("http://h:/", "its port is invalid"),
        ("http://h:http/", "its port is invalid"),
        ("http://[::1/", "invalid authority"),
        ("http://user@h/", "names a user"),
        ("http://h/a b", "a character that a URL cannot have"),
        ("http://h/\r\nX: y", "a character that a URL cannot have"),
        ("http://h/\u{fc}", "a character that a URL cannot have"),
        ("http://[]/", "no host"),
    ] {
        let said = Url::parse(text).expect_err(text).to_string();
        assert!(said.contains(&format!("{text:?}: ")) && said.contains(why), "{said}");
        assert_eq!(said.lines().count(), 1);
    }
}

#[test]
fn streams_share_one_connection_and_each_has_its_phases() {
    let server = ours(None);
    let address = server.listening().address;
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    for (scheme, before) in [("http", 2), ("https", 3)] {
        let url = Url::parse(&format!("{scheme}://{address}/")).expect("a URL");
        let mut opened = Vec::new();
        let mut streams =
            Streams::open(&url, &trust, soon(), &mut |phase| opened.push(phase)).expect("a connection");
        assert_eq!(opened.len(), before);
        let mut phases = vec![Vec::new(); 20];
        let targets = ["/bytes/300000"; 20];
        let answers = streams.get_all(
            &targets,
            soon(),
            &mut |stream, phase| phases[stream].push(phase),
            &crate::serve::is_body,
        );
        assert_eq!(answers.len(), 20);
        for (answer, phases) in answers.into_iter().zip(phases) {
            assert_eq!(answer.expect("an answer").body_bytes, 300_000);
            assert_eq!(phases, [Phase::Request, Phase::FirstByte, Phase::LastByte]);
        }
        let answers = streams.get_all(&["/nothing", "/bytes/5"], soon(), &mut |_, _| {}, &any);
        assert!(matches!(answers[0], Err(FetchError::Status(404))), "{answers:?}");
        assert!(answers[1].is_ok(), "one that fails harms no other: {answers:?}");
    }
    assert_eq!(server.served().connections, 2);
}

#[test]
fn streams_end_with_a_reason_when_the_server_does_not_play_along() {
    let streams = |url: &str, limit| {
        let deadline = Instant::now() + limit;
        let mut streams = Streams::open(&Url::parse(url)?, &nobody(), deadline, &mut |_| {})?;
        streams.get_all(&["/"], deadline, &mut |_, _| {}, &any).remove(0)
    };
    for (says, then, limit) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], drop as fn(TcpStream), BOUND),
        (b"", drop, BOUND),
        (b"", wait, SHORT),
    ] {
        let (address, serving) = server(says, then);
        let error = streams(&format!("http://{address}/"), limit).expect_err("no HTTP/2");
        let kinds = ["Garbage", "Truncated", "Reset", "TimedOut"];
        assert!(kinds.iter().any(|kind| format!("{error:?}").starts_with(kind)), "{error:?}");
        serving.join().expect("the server");
    }
    let ours = ours(None);
    let error = streams(&format!("https://{}/", ours.listening().address), BOUND).expect_err("no trust");
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
}
