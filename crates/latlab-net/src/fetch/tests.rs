//! Each way in which a server can fail, with one that does; every wait and every count is bounded.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::timed::Timed;
use super::*;
use crate::serve::{Pass, Server, Settings};

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

/// A server for one connection: reads a request's first bytes, says this, and does that with the connection.
fn server(says: &'static [u8], then: fn(TcpStream)) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(BOUND)).expect("a time-out");
        let _ = stream.read(&mut [0; 4096]);
        // A client that has gone is no failure of the server's.
        let _ = stream.write_all(says);
        then(stream);
    });
    (format!("http://{address}/file"), serving)
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

#[test]
fn phases_end_in_their_order_each_once() {
    let (url, serving) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", drop);
    let (result, phases) = fetch(&url, &nobody(), BOUND);
    assert_eq!(result.expect("an answer"), Answer { body_bytes: 5, kept: true });
    let order = [Phase::Resolve, Phase::Connect, Phase::Request, Phase::FirstByte, Phase::LastByte];
    assert_eq!(phases, order);
    serving.join().expect("the server");
}

#[test]
fn nobody_who_listens_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let (error, phases) = failure(&format!("http://{address}/"), BOUND);
    assert!(matches!(error, FetchError::Refused), "{error:?}");
    assert_eq!(phases, [Phase::Resolve]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_reset_is_told_from_an_end() {
    let (url, serving) = server(b"", reset);
    let (error, _) = failure(&url, BOUND);
    assert!(matches!(error, FetchError::Reset), "{error:?}");
    serving.join().expect("the server");
}

#[test]
fn an_answer_that_ends_too_early_is_truncated() {
    for (says, expected) in [
        (&b""[..], 0),
        (b"HTTP/1.1 200 OK\r\nConte", 22),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 5),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello", 5),
    ] {
        let (url, serving) = server(says, drop);
        let (error, phases) = failure(&url, BOUND);
        assert!(matches!(error, FetchError::Truncated { got } if got == expected), "{error:?}");
        assert!(!phases.contains(&Phase::LastByte));
        serving.join().expect("the server");
    }
}

#[test]
fn garbage_is_called_so() {
    static ENDLESS: [u8; 200_000] = [b'a'; 200_000];
    for says in [
        &b"220 ftp.example.org ready\r\n"[..],
        b"\0\x01\x02\x03",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello",
        &ENDLESS,
    ] {
        let (url, serving) = server(says, wait);
        let (error, _) = failure(&url, BOUND);
        assert!(matches!(error, FetchError::Garbage(_)), "{error:?}");
        serving.join().expect("the server");
    }
}

#[test]
fn another_status_is_no_transfer() {
    let (url, serving) = server(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", drop);
    let (error, _) = failure(&url, BOUND);
    assert!(matches!(error, FetchError::Status(503)), "{error:?}");
    serving.join().expect("the server");
}

#[test]
fn a_server_that_never_answers_costs_its_time_out_and_the_phase_is_named() {
    for (says, phase) in [
        (&b""[..], Phase::FirstByte),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", Phase::LastByte),
    ] {
        times_out_in(phase, |limit| {
            let (url, serving) = server(says, wait);
            let (error, _) = failure(&url, limit);
            serving.join().expect("the server");
            error
        });
    }
}

#[test]
fn a_byte_now_and_then_wins_no_time() {
    fn drips(mut stream: TcpStream) {
        for _ in 0..1000 {
            if stream.write_all(b"x").is_err() {
                return;
            }
            std::thread::sleep(SHORT / 10);
        }
    }
    times_out_in(Phase::LastByte, |limit| {
        let (url, serving) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", drips);
        let (error, _) = failure(&url, limit);
        serving.join().expect("the server");
        error
    });
}

#[test]
fn a_handshake_that_is_none_ends_within_its_time() {
    let (url, serving) = server(b"HTTP/1.1 400 Bad Request\r\n\r\n", drop);
    let (error, _) = failure(&url.replace("http:", "https:"), BOUND);
    assert!(matches!(error, FetchError::Garbage(_)), "{error:?}");
    serving.join().expect("the server");
    times_out_in(Phase::Tls, |limit| {
        let (url, serving) = server(b"", wait);
        let (error, _) = failure(&url.replace("http:", "https:"), limit);
        serving.join().expect("the server");
        error
    });
}

pub(super) fn ours(secret: Option<&[u8]>) -> Server {
    let settings = Settings { secret: secret.map(<[u8]>::to_vec), ..Settings::default() };
    Server::start(&settings).expect("the loopback")
}

#[test]
fn a_certificate_of_nobodys_is_bad_and_the_right_one_is_good() {
    let server = ours(None);
    let url = format!("https://{}/bytes/100000", server.listening().address);
    let (error, phases) = failure(&url, BOUND);
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
    assert_eq!(phases, [Phase::Resolve, Phase::Connect]);
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    let (result, phases) = fetch(&url, &trust, BOUND);
    assert_eq!(result.expect("an answer").body_bytes, 100_000);
    assert_eq!(phases.len(), 6);
    // The same certificate, for a name that it was not made for.
    let other = Url { host: "localhost.localdomain".to_owned(), ..Url::parse(&url).expect("a URL") };
    let socket = TcpStream::connect(server.listening().address).expect("a connection");
    let error = tls::shake_hands(Timed::new(socket, soon()), &other.host, &trust).expect_err("another name");
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
    assert!(Trust::only(b"no certificate").is_err());
}

/// The way to a server, cut off after so many bytes of its answers.
fn cut_off(server: &Server, after: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let address = listener.local_addr().expect("an address");
    let there = server.listening().address;
    let relaying = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let server = TcpStream::connect(there).expect("a server");
        let (mut asked, mut asking) =
            (client.try_clone().expect("a descriptor"), server.try_clone().expect("a descriptor"));
        let requests = std::thread::spawn(move || io::copy(&mut asked, &mut asking));
        let mut answers = server.try_clone().expect("a descriptor").take(after as u64);
        let _ = io::copy(&mut answers, &mut client);
        // An end, and no reset: what the client has sent is read first.
        let _ = client.shutdown(std::net::Shutdown::Write);
        let _ = server.shutdown(std::net::Shutdown::Both);
        let _ = requests.join();
    });
    (format!("https://{address}/bytes/1000000"), relaying)
}

#[test]
fn a_body_by_tls_that_ends_without_a_word_says_how_much_of_it_came() {
    let server = ours(None);
    let trust = Trust::only(&server.listening().certificate).expect("a certificate");
    let (url, relaying) = cut_off(&server, 200_000);
    let (result, phases) = fetch(&url, &trust, BOUND);
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
    let server = ours(None);
    let url = Url::parse(&format!("http://{}/", server.listening().address)).expect("a URL");
    let mut connection = Connection::open(&url, &nobody(), soon(), &mut |_| {}).expect("a connection");
    for count in [0, 1, 1_000_000] {
        let answer = connection
            .get(&format!("/bytes/{count}"), None, soon(), &mut |_| {}, &crate::serve::is_body)
            .expect("an answer");
        assert_eq!(answer.body_bytes, count);
        assert!(answer.kept);
    }
    assert_eq!(server.served().connections, 1);
    let (url, serving) = self::server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", drop);
    let url = Url::parse(&url).expect("a URL");
    let mut connection = Connection::open(&url, &nobody(), soon(), &mut |_| {}).expect("a connection");
    let error =
        connection.get("/", None, soon(), &mut |_| {}, &crate::serve::is_body).expect_err("other bytes");
    assert!(matches!(error, FetchError::Garbage(_)), "{error:?}");
    serving.join().expect("the server");
}

#[test]
fn signed_requests_are_served_by_a_guarded_server() {
    let secret = b"a secret of tests only";
    let server = ours(Some(secret));
    let url = Url::parse(&format!("http://{}/", server.listening().address)).expect("a URL");
    let mut connection = Connection::open(&url, &nobody(), soon(), &mut |_| {}).expect("a connection");
    let challenge = std::cell::RefCell::new(Vec::new());
    connection
        .get("/challenge", None, soon(), &mut |_| {}, &|_, part| {
            challenge.borrow_mut().extend_from_slice(part);
            true
        })
        .expect("a challenge");
    let challenge = String::from_utf8(challenge.into_inner()).expect("text");
    let pass = Pass::new(secret, &challenge);
    for number in 0..3 {
        let authorization = pass.sign(number, "GET", "/bytes/10");
        let answer =
            connection.get("/bytes/10", Some(&authorization), soon(), &mut |_| {}, &any).expect("served");
        assert_eq!(answer.body_bytes, 10);
    }
    let error = connection.get("/bytes/10", None, soon(), &mut |_| {}, &any).expect_err("unsigned");
    assert!(matches!(error, FetchError::Status(401)), "{error:?}");
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
        ("http://h:99999/", "its port is none"),
        ("http://h:/", "its port is none"),
        ("http://h:http/", "its port is none"),
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
        let (url, serving) = server(says, then);
        let error = streams(&url, limit).expect_err("no HTTP/2");
        assert!(
            matches!(
                error,
                FetchError::Garbage(_)
                    | FetchError::Truncated { .. }
                    | FetchError::Reset
                    | FetchError::TimedOut(_)
            ),
            "{error:?}"
        );
        serving.join().expect("the server");
    }
    let ours = ours(None);
    let error = streams(&format!("https://{}/", ours.listening().address), BOUND).expect_err("no trust");
    assert!(matches!(error, FetchError::BadCertificate(_)), "{error:?}");
}
