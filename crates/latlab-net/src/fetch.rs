//! A client whose every phase ends at a known moment: HTTP/1.1 on a blocking socket, with TLS or without; HTTP/2 ([`Streams`]); and many
//! requests under way on connections of their own, by one thread (`Pool`).
//!
//! ```text
//! resolve ─► connect ─► TLS ─► request ─► first byte ─► last byte
//! └────── Connection::open ───┘└────── Connection::get ──────────┘ (again and again on a kept connection)
//! ```
//! Whoever measures is called at the end of each phase and takes the stamp itself: no clock is hidden here. Every wait is bounded by one
//! deadline for the whole of it, and every failure says what it was.

mod body;
mod challenge;
mod error;
#[cfg(target_os = "linux")]
mod pool;
mod streams;
mod timed;
mod tls;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use challenge::pass;
pub use error::FetchError;
#[cfg(target_os = "linux")]
pub use pool::{Expected, Pool};
pub use streams::{Ended, Streams};
use timed::Timed;
pub use tls::Trust;

/// The longest head of an answer, bytes; as usual in clients.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// What is asked of the socket at once: as much as it usually has.
const READ_BYTES: usize = 256 << 10;

/// What has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The name has an address. An address that was given as one takes no time.
    Resolve,
    /// The connection is there: one round trip.
    Connect,
    /// The handshake is done; not told without TLS.
    Tls,
    /// The request was handed to the kernel.
    Request,
    /// The first bytes of the answer's head are here.
    FirstByte,
    /// The last byte of its body is here.
    LastByte,
}

/// What is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether by TLS.
    pub tls: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub target: String,
}

impl Url {
    /// Reads `http://host[:port][/target]` or `https://`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        let wrong = |what: &str| FetchError::Url(format!("{text:?}: {what}"));
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(wrong("begins neither with http:// nor with https://")),
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has a character that a URL cannot have"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        if authority.contains('@') {
            return Err(wrong("names a user; that is not supported"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => bracketed
                .split_once(']')
                .map(|(host, rest)| (host, rest.strip_prefix(':')))
                .ok_or_else(|| wrong("a bracket is not closed"))?,
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let usual = if tls { 443 } else { 80 };
        let port = port.map_or(Ok(usual), str::parse).map_err(|_| wrong("its port is none"))?;
        let target = match target.chars().next() {
            Some('/') => target.to_owned(),
            _ => format!("/{target}"),
        };
        Ok(Self { tls, host: host.to_owned(), port, target })
    }

    fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Whether the connection can be used again.
    pub kept: bool,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: tls::Stream,
    authority: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// Resolves, connects and shakes hands, all by the deadline.
    ///
    /// # Errors
    /// No name, no route, refused, reset, too late, or a certificate that is not trusted.
    pub fn open(
        url: &Url,
        trust: &Trust,
        deadline: Instant,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Self, FetchError> {
        let socket = reach(url, deadline, ended)?;
        let timed = Timed::new(socket, deadline);
        let stream = if url.tls {
            let stream = tls::shake_hands(timed, &url.host, trust)?;
            ended(Phase::Tls);
            stream
        } else {
            tls::Stream::Plain(timed)
        };
        Ok(Self { stream, authority: url.authority(), buffer: vec![0; READ_BYTES] })
    }

    /// Gets one answer with status 200 and reads its body to the end. After an error the connection is of no more use.
    /// `authorization` is that of [`Pass`](crate::serve::Pass); `expected` compares each part of the body and where it begins.
    ///
    /// # Errors
    /// Reset, truncated, garbage, too late, or another status.
    pub fn get(
        &mut self,
        target: &str,
        authorization: Option<&str>,
        deadline: Instant,
        ended: &mut dyn FnMut(Phase),
        expected: &dyn Fn(u64, &[u8]) -> bool,
    ) -> Result<Answer, FetchError> {
        self.stream.socket().bound(deadline);
        let request = request(&self.authority, target, authorization);
        self.stream
            .write_all(request.as_bytes())
            .and_then(|()| self.stream.flush())
            .map_err(|error| FetchError::of(error, Phase::Request))?;
        ended(Phase::Request);
        let (head, body_at, filled) = self.head(ended)?;
        if head.status != 200 {
            return Err(FetchError::Status(head.status));
        }
        let mut reader = body::Reader::new(head.length, expected);
        let mut done = reader.take(&self.buffer[body_at..filled])?;
        while !done {
            let read = self
                .stream
                .read(&mut self.buffer)
                .map_err(|error| FetchError::of(error, Phase::LastByte).after(reader.bytes()))?;
            done = if read == 0 {
                reader.ended()?;
                true
            } else {
                reader.take(&self.buffer[..read])?
            };
        }
        ended(Phase::LastByte);
        Ok(Answer { body_bytes: reader.bytes(), kept: head.kept && head.length != body::Length::UntilClosed })
    }

    /// Reads until the head is complete: what it says, where the body begins and where what was read ends.
    fn head(&mut self, ended: &mut dyn FnMut(Phase)) -> Result<(Head, usize, usize), FetchError> {
        let mut filled = 0;
        loop {
            let read = self
                .stream
                .read(&mut self.buffer[filled..])
                .map_err(|error| FetchError::of(error, Phase::FirstByte).after(filled as u64))?;
            if read == 0 {
                return Err(FetchError::Truncated { got: filled as u64 });
            }
            if filled == 0 {
                ended(Phase::FirstByte);
            }
            filled += read;
            if let Some((head, length)) = Head::parse(&self.buffer[..filled])? {
                return Ok((head, length, filled));
            }
            if filled > LONGEST_HEAD {
                return Err(FetchError::Garbage("a head without an end".to_owned()));
            }
        }
    }
}

/// The bytes of a request.
fn request(authority: &str, target: &str, authorization: Option<&str>) -> String {
    let authorization = authorization.map_or_else(String::new, |value| format!("Authorization: {value}\r\n"));
    format!(
        "GET {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: latlab/{}\r\nAccept: */*\r\n{authorization}\r\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// What a head says that matters here.
#[derive(Debug)]
struct Head {
    status: u16,
    length: body::Length,
    kept: bool,
}

impl Head {
    /// The head and its own length; none when it is not complete.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, FetchError> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        let length = match answer.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(FetchError::Garbage(format!("no answer of HTTP: {error}"))),
        };
        let named = |name: &str| {
            answer
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| header.value.trim_ascii())
        };
        let body_length = match (named("transfer-encoding"), named("content-length")) {
            (Some(encoding), _) if encoding.eq_ignore_ascii_case(b"chunked") => body::Length::Chunked,
            (Some(_), _) => return Err(FetchError::Garbage("an unknown transfer encoding".to_owned())),
            (None, Some(digits)) => std::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .map(body::Length::Bytes)
                .ok_or_else(|| FetchError::Garbage("a length that is no number".to_owned()))?,
            (None, None) => body::Length::UntilClosed,
        };
        let closing = named("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
        let head = Self {
            status: answer.code.unwrap_or_default(),
            length: body_length,
            kept: !closing && answer.version == Some(1),
        };
        Ok(Some((head, length)))
    }
}

/// A socket to the host, by the deadline.
fn reach(url: &Url, deadline: Instant, ended: &mut dyn FnMut(Phase)) -> Result<TcpStream, FetchError> {
    let addresses = resolve(url, deadline)?;
    ended(Phase::Resolve);
    let socket = connect(&addresses, deadline)?;
    ended(Phase::Connect);
    Ok(socket)
}

/// The addresses of a host. The system's resolver knows no time-out: it works in a thread that nobody waits for any longer when time is
/// up, and that ends when the resolver gives up. Its start, some ten microseconds, is part of the phase.
fn resolve(url: &Url, deadline: Instant) -> Result<Vec<SocketAddr>, FetchError> {
    if let Ok(address) = url.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, url.port)]);
    }
    let (tell, told) = mpsc::sync_channel(1);
    let asked = (url.host.clone(), url.port);
    std::thread::Builder::new()
        .name("latlab-resolve".to_owned())
        .spawn(move || {
            let found = asked.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            // Too late: nobody listens any more.
            let _ = tell.send(found);
        })
        .map_err(FetchError::System)?;
    match told.recv_timeout(left(deadline, Phase::Resolve)?) {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(_)) => Err(FetchError::NoName(url.host.clone())),
        Ok(Err(error)) => Err(FetchError::NoName(format!("{}: {error}", url.host))),
        Err(_) => Err(FetchError::TimedOut(Phase::Resolve)),
    }
}

/// The first that answers, in the resolver's order. The error is that of the first: the one that should have.
fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, FetchError> {
    let mut first = None;
    for address in addresses {
        let tried = TcpStream::connect_timeout(address, left(deadline, Phase::Connect)?)
            .and_then(|socket| socket.set_nodelay(true).map(|()| socket));
        match tried {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                first.get_or_insert(FetchError::of(error, Phase::Connect));
            }
        }
    }
    Err(first.unwrap_or(FetchError::TimedOut(Phase::Connect)))
}

/// Time until the deadline; an error when there is none.
fn left(deadline: Instant, phase: Phase) -> Result<Duration, FetchError> {
    deadline
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or(FetchError::TimedOut(phase))
}

#[cfg(test)]
mod tests;
