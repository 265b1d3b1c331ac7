//! Every state in which a client can leave a connection, on a clock that only the test moves: open until its
//! time is up, and then ended.

use std::sync::mpsc::sync_channel;
use std::time::Instant;

use tokio::runtime::{Builder, Handle};
use tokio::task::yield_now;

use super::super::places::{ADMISSION, CHECK_EVERY, LEAST_BYTES, SILENCE};
use super::*;

/// As little before or after a deadline as tokio's timers tell apart, and a little more.
const JUST: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Longer than all buffers between a server and its client.
const LONG: &str = "/bytes/1000000000";

/// A server whose clock stands still until it is moved.
struct Frozen {
    runtime: Handle,
    address: SocketAddr,
    certificate: Vec<u8>,
    totals: Arc<Totals>,
}

fn with_a_frozen_clock(secret: Option<&[u8]>, test: impl FnOnce(&Frozen) + Send + 'static) {
    with_descriptors_for(u64::MAX, secret, test);
}

/// Calls `test` beside a server that can have so many connections open. While a blocking task runs, tokio's
/// clock does not move by itself.
fn with_descriptors_for(most: u64, secret: Option<&[u8]>, test: impl FnOnce(&Frozen) + Send + 'static) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    let settings = Settings { secret: secret.map(<[u8]>::to_vec), ..Settings::default() };
    let ended = runtime.block_on(async {
        let listener = listen(None).expect("the loopback");
        let (certificate, tls) = certificate::make(None).expect("a certificate");
        let totals = Arc::new(Totals::default());
        let state = Arc::new(State::new(&settings, Arc::clone(&totals)).expect("random numbers"));
        let frozen = Frozen {
            runtime: Handle::current(),
            address: listener.local_addr().expect("bound"),
            certificate,
            totals: Arc::clone(&totals),
        };
        let acceptor = TlsAcceptor::from(tls);
        let accepted = async || {
            if totals.open.load(Ordering::Acquire) >= most {
                return Err(rustix::io::Errno::MFILE.into());
            }
            listener.accept().await
        };
        tokio::select! {
            () = accept(accepted, &acceptor, &state) => unreachable!("it accepts for ever"),
            ended = tokio::task::spawn_blocking(move || test(&frozen)) => ended,
        }
    });
    if let Err(failed) = ended {
        std::panic::resume_unwind(failed.into_panic());
    }
}

impl Frozen {
    /// Moves the clock, with all that has to be done before and after.
    fn advance(&self, by: Duration) {
        /// Each yields to the tasks and looks at sockets and timers.
        const ROUNDS: usize = 50;
        let (tell, reported) = sync_channel(1);
        self.runtime.spawn(async move {
            for round in 0..2 * ROUNDS {
                if round == ROUNDS {
                    tokio::time::advance(by).await;
                }
                yield_now().await;
            }
            tell.send(()).expect("it is waited for");
        });
        reported.recv_timeout(BOUND).expect("the clock moves");
    }

    /// The same in steps, as timers that follow each other need it; calls this after each.
    fn advance_by_seconds(&self, time: Duration, each: &mut dyn FnMut()) {
        let mut rest = time;
        while rest > SECOND {
            self.advance(SECOND);
            each();
            rest -= SECOND;
        }
        self.advance(rest);
    }

    fn open(&self) -> u64 {
        self.totals.open.load(Ordering::Acquire)
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Totals) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.totals) {
            assert!(begun.elapsed() < BOUND, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn all_end(&self, what: &str) {
        self.wait_for(what, |totals| totals.open.load(Ordering::Acquire) == 0);
    }

    /// The only connection.
    fn connect(&self) -> TcpStream {
        let stream = self.connect_beside_others();
        self.wait_for("it is accepted", |totals| totals.open.load(Ordering::Acquire) == 1);
        stream
    }

    fn connect_beside_others(&self) -> TcpStream {
        connect_to(self.address)
    }

    fn tls(&self, protocol: &[u8]) -> ClientConnection {
        let name = ServerName::from(self.address.ip());
        ClientConnection::new(trusting(&self.certificate, protocol), name).expect("a client")
    }

    fn secured(&self, protocol: &[u8]) -> Secured {
        let mut stream = StreamOwned::new(self.tls(protocol), self.connect());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).expect("TLS");
        }
        stream
    }
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// A client's end, what it goes on sending each second, and the TLS that has to stay alive.
type Left = (TcpStream, &'static [u8], Option<Secured>);

/// A client that stops here.
fn silent(socket: TcpStream) -> Left {
    (socket, b"", None)
}

/// A client that sends this each second from now on.
fn going_on(socket: TcpStream, part: &'static [u8]) -> Left {
    (socket, part, None)
}

fn secured(stream: Secured) -> Left {
    (stream.sock.try_clone().expect("a second descriptor"), b"", Some(stream))
}

fn sent<S: Write>(mut socket: S, bytes: &[u8]) -> S {
    socket.write_all(bytes).expect("sent");
    socket
}

fn asked<S: Read + Write>(mut socket: S, path: &str, status: u16) -> S {
    assert_eq!(get(&mut socket, path).status, status);
    socket
}

/// Begins an upload; the server has asked for its body when this returns.
fn uploading<S: Read + Write>(mut socket: S) -> S {
    let head = "POST /sink HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\nExpect: 100-continue";
    assert_eq!(ask(&mut socket, head).status, 100);
    socket
}

/// Begins a download and reads its first byte.
fn downloading<S: Read + Write>(mut socket: S) -> S {
    let request = format!("GET {LONG} HTTP/1.1\r\nHost: test\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("sent");
    socket.read_exact(&mut [0]).expect("an answer");
    socket
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a short one");
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

/// The header block of a request (RFC 7541): method and scheme by their numbers in the static table, path and
/// host as they are.
fn block(method: u8, path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).expect("a short path");
    [&[method, 0x86, 0x01, 4], &b"test"[..], &[0x04, length], path.as_bytes()].concat()
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

fn http2(mut socket: TcpStream) -> TcpStream {
    socket.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).expect("sent");
    // Of the server's settings.
    socket.read_exact(&mut [0; 9]).expect("the server speaks HTTP/2");
    socket
}

fn asked_by_http2(frozen: &Frozen, method: u8, path: &str, flags: u8) -> TcpStream {
    let request = frame(HEADERS, flags, 1, &block(method, path));
    let socket = sent(http2(frozen.connect()), &request);
    frozen.wait_for("the request comes", |totals| totals.requests.load(Ordering::Acquire) == 1);
    socket
}

struct Case {
    name: &'static str,
    leave: fn(&Frozen) -> Left,
    secret: Option<&'static [u8]>,
    open_for: Duration,
    /// Later than just after that where the kernel's buffers may take more for a while.
    ended_after: Duration,
}

fn ends(name: &'static str, open_for: Duration, leave: fn(&Frozen) -> Left) -> Case {
    Case { name, leave, secret: None, open_for, ended_after: open_for }
}

fn waits(name: &'static str, leave: fn(&Frozen) -> Left) -> Case {
    ends(name, ADMISSION, leave)
}

fn waits_for_a_signature(name: &'static str, leave: fn(&Frozen) -> Left) -> Case {
    Case { secret: Some(SECRET), ..waits(name, leave) }
}

/// A download that nobody reads goes on until the kernel's buffers are full, which is not by this clock.
fn ends_once_buffers_are_full(name: &'static str, leave: fn(&Frozen) -> Left) -> Case {
    Case { ended_after: 10 * CHECK_EVERY, ..ends(name, CHECK_EVERY, leave) }
}

/// Of connections that are not admitted.
fn waiting() -> Vec<Case> {
    vec![
        waits("nothing sent", |server| silent(server.connect())),
        waits("the first byte of TLS", |server| silent(sent(server.connect(), &[0x16]))),
        waits("half of TLS's first message", |server| {
            let mut hello = Vec::new();
            server.tls(b"h2").write_tls(&mut hello).expect("written");
            silent(sent(server.connect(), &hello[..hello.len() / 2]))
        }),
        waits("TLS's first message, a byte each second", |server| {
            going_on(sent(server.connect(), &[0x16, 3, 1, 2, 0, 1, 0, 1]), b"x")
        }),
        waits("TLS and nothing", |server| secured(server.secured(b"http/1.1"))),
        waits("TLS for HTTP/2 and nothing", |server| secured(server.secured(b"h2"))),
        waits("TLS and half a request", |server| {
            secured(sent(server.secured(b"http/1.1"), b"GET /bytes/1 HT"))
        }),
        waits("one byte of a request", |server| silent(sent(server.connect(), b"G"))),
        waits("headers without an end", |server| {
            silent(sent(server.connect(), b"GET /bytes/1 HTTP/1.1\r\nHost: test\r\n"))
        }),
        waits("a header each second", |server| {
            going_on(sent(server.connect(), b"GET /bytes/1 HTTP/1.1\r\nHost: test\r\n"), b"A: b\r\n")
        }),
        waits("half of HTTP/2's preface", |server| silent(sent(server.connect(), &PREFACE[..12]))),
        waits("HTTP/2's preface", |server| silent(sent(server.connect(), PREFACE))),
        waits("HTTP/2's settings", |server| silent(http2(server.connect()))),
        waits("HTTP/2's settings and a ping each second", |server| going_on(http2(server.connect()), PING)),
        waits("HTTP/2's headers without an end", |server| {
            let part = frame(HEADERS, END_STREAM, 1, &block(GET, "/"));
            silent(sent(http2(server.connect()), &part))
        }),
        waits_for_a_signature("a challenge asked for", |server| {
            silent(asked(server.connect(), "/challenge", 200))
        }),
        waits_for_a_signature("a challenge each second", |server| {
            going_on(server.connect(), b"GET /challenge HTTP/1.1\r\nHost: test\r\n\r\n")
        }),
        waits_for_a_signature("an unsigned request", |server| {
            silent(asked(server.connect(), "/bytes/1", 401))
        }),
        waits_for_a_signature("an unsigned request by HTTP/2", |server| {
            silent(asked_by_http2(server, GET, "/", END_HEADERS | END_STREAM))
        }),
        waits_for_a_signature("an unsigned stream without data", |server| {
            silent(asked_by_http2(server, POST, "/sink", END_HEADERS))
        }),
    ]
}

fn admitted() -> Vec<Case> {
    vec![
        ends("kept and idle", SILENCE, |server| silent(asked(server.connect(), "/bytes/1000", 200))),
        ends("kept and idle with TLS", SILENCE, |server| {
            secured(asked(server.secured(b"http/1.1"), "/bytes/1000", 200))
        }),
        ends("kept, and a header each second", SILENCE, |server| {
            let socket = asked(server.connect(), "/bytes/1", 200);
            going_on(sent(socket, b"GET / HTTP/1.1\r\nHost: test\r\n"), b"A: b\r\n")
        }),
        ends("kept by HTTP/2, and a ping each second", SILENCE, |server| {
            going_on(asked_by_http2(server, GET, "/bytes/1", END_HEADERS | END_STREAM), PING)
        }),
        ends("an upload that stops", CHECK_EVERY, |server| silent(uploading(server.connect()))),
        ends("an upload that stops with TLS", CHECK_EVERY, |server| {
            secured(uploading(server.secured(b"http/1.1")))
        }),
        ends("an upload of a few bytes a second", CHECK_EVERY, |server| {
            going_on(uploading(server.connect()), b"hello")
        }),
        ends("a stream without data", CHECK_EVERY, |server| {
            silent(asked_by_http2(server, POST, "/sink", END_HEADERS))
        }),
        ends("a stream without data, and a ping each second", CHECK_EVERY, |server| {
            going_on(asked_by_http2(server, POST, "/sink", END_HEADERS), PING)
        }),
        ends_once_buffers_are_full("a download that is not read", |server| {
            silent(downloading(server.connect()))
        }),
        ends_once_buffers_are_full("a download that is not read with TLS", |server| {
            secured(downloading(server.secured(b"http/1.1")))
        }),
        ends_once_buffers_are_full("a download for which a stream has no window", |server| {
            silent(asked_by_http2(server, GET, LONG, END_HEADERS | END_STREAM))
        }),
    ]
}

#[test]
fn every_state_of_a_connection_ends_when_its_time_is_up_and_not_before() {
    for state in waiting().into_iter().chain(admitted()) {
        with_a_frozen_clock(state.secret, move |frozen| {
            let name = state.name;
            let (mut socket, part, _tls) = (state.leave)(frozen);
            // Who was ended may hear of it by an error.
            let mut goes_on = || drop((&socket).write_all(part));
            frozen.advance_by_seconds(state.open_for.saturating_sub(JUST), &mut goes_on);
            assert_eq!(frozen.open(), 1, "{name}: ended too early");
            let rest = state.ended_after.saturating_sub(state.open_for) + 2 * JUST;
            frozen.advance_by_seconds(rest, &mut goes_on);
            frozen.all_end(&format!("{name}: still open"));
            // The client hears of it: an end after what was sent before, or a reset.
            let mut room = vec![0; 1 << 20];
            let ended = loop {
                match socket.read(&mut room) {
                    Ok(0) => break true,
                    Ok(_) => {}
                    Err(error) => break error.kind() == std::io::ErrorKind::ConnectionReset,
                }
            };
            assert!(ended, "{name}: the client waits on");
        });
    }
}

#[test]
fn an_upload_that_goes_on_slowly_is_taken_in_for_as_long_as_it_does() {
    with_a_frozen_clock(None, |frozen| {
        let mut socket = uploading(frozen.connect());
        let part = vec![b'x'; usize::try_from(LEAST_BYTES).expect("small")];
        for count in 1..=20 {
            socket.write_all(&part).expect("sent");
            frozen.wait_for("it comes", |totals| {
                totals.received_bytes.load(Ordering::Acquire) == count * LEAST_BYTES
            });
            frozen.advance(CHECK_EVERY);
            assert_eq!(frozen.open(), 1, "after {count} checks");
        }
        frozen.advance(CHECK_EVERY);
        frozen.all_end("it stopped");
    });
}

#[test]
fn a_kept_connection_that_is_used_now_and_then_stays() {
    with_a_frozen_clock(None, |frozen| {
        let mut socket = frozen.connect();
        for _ in 0..20 {
            assert_eq!(get(&mut socket, "/bytes/1").status, 200);
            frozen.advance_by_seconds(SILENCE.saturating_sub(CHECK_EVERY), &mut || {});
        }
        assert_eq!(frozen.open(), 1);
    });
}

/// Sends a signed request.
fn is_served(socket: &mut TcpStream, challenge: &str) {
    let signed = Pass::new(SECRET, challenge).sign(0, "GET", "/bytes/7");
    let request = format!("GET /bytes/7 HTTP/1.1\r\nHost: test\r\nAuthorization: {signed}");
    assert_eq!(ask(socket, &request).body.len(), 7);
}

#[test]
fn a_signed_request_admits_its_connection_in_time() {
    with_a_frozen_clock(Some(SECRET), |frozen| {
        let mut socket = frozen.connect();
        let challenge = String::from_utf8(get(&mut socket, "/challenge").body).expect("text");
        frozen.advance(ADMISSION.saturating_sub(JUST));
        is_served(&mut socket, &challenge);
        frozen.advance_by_seconds(SILENCE.saturating_sub(JUST), &mut || {});
        assert_eq!(frozen.open(), 1);
        frozen.advance(2 * JUST);
        frozen.all_end("it is idle");
    });
}

#[test]
fn a_client_that_knows_the_secret_is_served_when_silent_connections_have_all_descriptors() {
    const MOST: usize = 5;
    with_descriptors_for(MOST as u64, Some(SECRET), |frozen| {
        let mut silent: Vec<TcpStream> = (0..3 * MOST).map(|_| frozen.connect_beside_others()).collect();
        // The clock stands still: nobody's time is up.
        let mut socket = frozen.connect_beside_others();
        let challenge = String::from_utf8(get(&mut socket, "/challenge").body).expect("text");
        is_served(&mut socket, &challenge);
        silent.extend((0..3 * MOST).map(|_| frozen.connect_beside_others()));
        frozen.wait_for("all are accepted", |totals| {
            totals.connections.load(Ordering::Acquire) == 6 * MOST as u64 + 1
        });
        assert_eq!(get(&mut socket, "/challenge").status, 200, "it is never ended for another");
        assert_eq!(silent[0].read(&mut [0]).expect("an end"), 0, "the oldest");
    });
}

#[test]
fn a_head_without_an_end_takes_no_more_memory_than_a_long_one() {
    with_a_frozen_clock(None, |frozen| {
        let mut socket = sent(frozen.connect(), b"GET /bytes/1 HTTP/1.1\r\nA: ");
        // Who is ended in the middle of it may hear of it by an error.
        let _ = socket.write_all(&vec![b'x'; 2 * LONGEST_HEAD]);
        frozen.all_end("it is ended");
    });
}
