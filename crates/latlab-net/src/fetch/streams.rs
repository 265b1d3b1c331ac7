//! Many transfers at once on one connection: HTTP/2.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

use super::error::{FetchError, Phase};
use super::exchange::Answer;
use super::reach::reach;
use super::tls::{self, Trust};
use super::url::Url;

/// What the server may send before it is told that there is room again, bytes: more than any path here holds,
/// so that the transport and not this number is what is measured.
const WINDOW_BYTES: u32 = 16 << 20;

/// What is reported about each stream: which one, and what has ended.
pub type Ended<'a> = dyn FnMut(usize, Phase) + 'a;

/// A connection that carries many transfers. Its work is done by the thread that calls, while it calls.
#[derive(Debug)]
pub struct Streams {
    runtime: Runtime,
    sender: http2::SendRequest<Empty<Bytes>>,
    scheme_and_authority: String,
}

impl Streams {
    /// Resolves, connects and shakes hands, all by the deadline. Without TLS the server is taken to know
    /// HTTP/2. Errors: as [`Connection::open`](super::Connection::open); and when the server does not agree
    /// to HTTP/2.
    pub fn open(
        url: &Url,
        trust: &Trust,
        deadline: Instant,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Self, FetchError> {
        let socket = reach(url, deadline, ended)?;
        let system = FetchError::System;
        socket.set_nonblocking(true).map_err(system)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(system)?;
        let name = tls::name_of(&url.host);
        let config = trust.speaking(b"h2");
        let sender = runtime.block_on(by(deadline, Phase::Tls, async {
            let socket = tokio::net::TcpStream::from_std(socket).map_err(system)?;
            if !url.tls {
                return shake_hands(socket).await;
            }
            let stream = TlsConnector::from(config)
                .connect(name?, socket)
                .await
                .map_err(|error| FetchError::of(error, Phase::Tls))?;
            ended(Phase::Tls);
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(FetchError::Garbage("the server does not speak HTTP/2".to_owned()));
            }
            shake_hands(stream).await
        }))?;
        Ok(Self {
            runtime,
            sender,
            scheme_and_authority: format!("{}://{}", if url.tls { "https" } else { "http" }, url.authority()),
        })
    }

    /// Gets all targets at once, each on a stream of its own;
    /// `expected` is as in [`Connection::get`](super::Connection::get). Phases of a stream begin when this is
    /// called: those that the server's limit of streams makes wait, wait in their request.
    #[must_use]
    pub fn get_all(
        &mut self,
        targets: &[&str],
        deadline: Instant,
        ended: &mut Ended<'_>,
        expected: &dyn Fn(u64, &[u8]) -> bool,
    ) -> Vec<Result<Answer, FetchError>> {
        let ended = RefCell::new(ended);
        let transfers = targets.iter().enumerate().map(|(number, target)| {
            let request = Request::get(format!("{}{target}", self.scheme_and_authority)).body(Empty::new());
            let mut sender = self.sender.clone();
            let ended = &ended;
            let transfer = async move {
                let tell = |phase| (ended.borrow_mut())(number, phase);
                let request = request.map_err(|error| FetchError::Url(error.to_string()))?;
                let late = |error| of_hyper(&error, Phase::Request);
                sender.ready().await.map_err(late)?;
                let answer = sender.send_request(request);
                tell(Phase::Request);
                let answer = answer.await.map_err(|error| of_hyper(&error, Phase::FirstByte))?;
                tell(Phase::FirstByte);
                if answer.status() != hyper::StatusCode::OK {
                    return Err(FetchError::Status(answer.status().as_u16()));
                }
                let body_bytes = read(answer.into_body(), expected).await?;
                tell(Phase::LastByte);
                Ok(Answer { body_bytes, kept: true })
            };
            Box::pin(by(deadline, Phase::LastByte, transfer))
        });
        let transfers = transfers.collect();
        self.runtime.block_on(all(transfers))
    }
}

/// Work that ends by the deadline.
async fn by<T>(
    deadline: Instant,
    phase: Phase,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    tokio::time::timeout_at(deadline.into(), work).await.unwrap_or(Err(FetchError::TimedOut(phase)))
}

async fn shake_hands<S>(stream: S) -> Result<http2::SendRequest<Empty<Bytes>>, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| of_hyper(&error, Phase::Tls))?;
    tokio::spawn(async move {
        // Its error reaches each stream that waits.
        let _ = connection.await;
    });
    Ok(sender)
}

async fn read(mut body: Incoming, expected: &dyn Fn(u64, &[u8]) -> bool) -> Result<u64, FetchError> {
    let announced = body.size_hint().exact();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| of_hyper(&error, Phase::LastByte).after(bytes))?;
        let Some(data) = frame.data_ref() else { continue };
        if !expected(bytes, data) {
            return Err(FetchError::Garbage("the body differs from the expected one".to_owned()));
        }
        bytes += data.len() as u64;
    }
    if announced.is_some_and(|announced| announced != bytes) {
        return Err(FetchError::Truncated { got: bytes });
    }
    Ok(bytes)
}

/// Waits for all. Each is polled whenever one can go on: dozens of polls that cost nanoseconds.
async fn all<T>(work: Vec<Pin<Box<impl Future<Output = T>>>>) -> Vec<T> {
    let mut work: Vec<_> = work.into_iter().map(|work| (Some(work), None)).collect();
    poll_fn(|context: &mut Context<'_>| {
        for (waiting, done) in &mut work {
            if let Some(future) = waiting
                && let Poll::Ready(result) = future.as_mut().poll(context)
            {
                (*waiting, *done) = (None, Some(result));
            }
        }
        if work.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    work.into_iter().filter_map(|(_, done)| done).collect()
}

fn of_hyper(error: &hyper::Error, phase: Phase) -> FetchError {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return FetchError::of(io::Error::from(cause.kind()), phase);
        }
        source = cause.source();
    }
    if error.is_incomplete_message() {
        FetchError::Truncated { got: 0 }
    } else if error.is_closed() || error.is_canceled() {
        FetchError::Reset
    } else {
        let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        FetchError::Garbage(format!("{error}{cause}"))
    }
}
