//! A request by HTTP/1.1 and its answer, whoever reads the socket.

use super::body;
use super::error::{FetchError, Phase};

/// The longest head of an answer, bytes; as usual in clients.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// What is asked of the socket at once: as much as it usually has.
pub(super) const READ_BYTES: usize = 256 << 10;

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Whether the connection can be used again.
    pub kept: bool,
}

/// The bytes of a request.
pub(super) fn request(authority: &str, target: &str, authorization: Option<&str>) -> String {
    let authorization = authorization.map_or_else(String::new, |value| format!("Authorization: {value}\r\n"));
    format!(
        "GET {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: latlab/{}\r\nAccept: */*\r\n{authorization}\r\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// An answer as it comes in.
pub(super) struct Incoming<'a> {
    /// Its head, as long as that is not complete.
    head: Vec<u8>,
    body: Option<(body::Reader<'a>, bool)>,
    expected: &'a dyn Fn(u64, &[u8]) -> bool,
}

impl<'a> Incoming<'a> {
    /// Nothing has come; `expected` compares each part of the body and where it begins.
    pub(super) fn new(expected: &'a dyn Fn(u64, &[u8]) -> bool) -> Self {
        Self { head: Vec::new(), body: None, expected }
    }

    /// Whether nothing of it has come.
    pub(super) fn is_unheard(&self) -> bool {
        self.head.is_empty() && self.body.is_none()
    }

    /// What ends next, as far as sockets are asked to read.
    pub(super) fn phase(&self) -> Phase {
        if self.body.is_some() { Phase::LastByte } else { Phase::FirstByte }
    }

    /// Bytes of the body so far, or of the head while that is not complete.
    pub(super) fn came(&self) -> u64 {
        self.body.as_ref().map_or(self.head.len() as u64, |(body, _)| body.bytes())
    }

    /// Takes in what was read; returns the answer once that was its end. Nothing read is the end of the
    /// connection.
    pub(super) fn take(&mut self, read: &[u8]) -> Result<Option<Answer>, FetchError> {
        let ended = match &mut self.body {
            Some((body, _)) if read.is_empty() => body.ended().map(|()| true)?,
            Some((body, _)) => body.take(read)?,
            None if read.is_empty() => return Err(FetchError::Truncated { got: self.came() }),
            None => self.take_head(read)?,
        };
        Ok(self
            .body
            .as_ref()
            .filter(|_| ended)
            .map(|(body, kept)| Answer { body_bytes: body.bytes(), kept: *kept }))
    }

    /// Returns whether that was the end of all. A head that comes whole is read where it is.
    fn take_head(&mut self, read: &[u8]) -> Result<bool, FetchError> {
        if !self.head.is_empty() {
            self.head.extend_from_slice(read);
        }
        let so_far = if self.head.is_empty() { read } else { &self.head };
        let Some((head, length)) = Head::parse(so_far)? else {
            if so_far.len() > LONGEST_HEAD {
                return Err(FetchError::Garbage("the response header has no end".to_owned()));
            }
            if self.head.is_empty() {
                self.head.extend_from_slice(read);
            }
            return Ok(false);
        };
        if head.status != 200 {
            return Err(FetchError::Status(head.status));
        }
        let kept = head.kept && head.length != body::Length::UntilClosed;
        let (body, _) = self.body.insert((body::Reader::new(head.length, self.expected), kept));
        body.take(&so_far[length..])
    }
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
            Err(error) => return Err(FetchError::Garbage(format!("not an HTTP response: {error}"))),
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
                .ok_or_else(|| FetchError::Garbage("a length is not a number".to_owned()))?,
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
