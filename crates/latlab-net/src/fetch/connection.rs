//! One transfer at a time, on a socket that blocks.

use std::io::{Read, Write};
use std::time::Instant;

use super::error::{FetchError, Phase};
use super::exchange::{Answer, Incoming, READ_BYTES, request};
use super::reach::reach;
use super::timed::Timed;
use super::tls::{self, Trust};
use super::url::Url;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: tls::Stream,
    authority: String,
    buffer: Vec<u8>,
}

impl Connection {
    /// Resolves, connects and shakes hands, all by the deadline.
    /// Errors: no name, no route, refused, reset, too late, or a certificate that is not trusted.
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

    /// Gets one answer with status 200 and reads its body to the end. After an error the connection is of no
    /// more use. `authorization` is that of [`Pass`](crate::serve::Pass); `expected` compares each part of
    /// the body and where it begins. Errors: reset, truncated, garbage, too late, or another status.
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
        let mut incoming = Incoming::new(expected);
        loop {
            let read = self
                .stream
                .read(&mut self.buffer)
                .map_err(|error| FetchError::of(error, incoming.phase()).after(incoming.came()))?;
            if read > 0 && incoming.is_unheard() {
                ended(Phase::FirstByte);
            }
            if let Some(answer) = incoming.take(&self.buffer[..read])? {
                ended(Phase::LastByte);
                return Ok(answer);
            }
        }
    }
}
