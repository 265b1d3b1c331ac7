//! A server that costs as little as a server can: bodies are slices of one buffer, nothing is read from a
//! disk and nothing kept.
//!
//! ```text
//! accepted ─► place ─► first byte ─┬─ a TLS record ─► rustls ─┬─► hyper (HTTP/1.1 or HTTP/2) ─► guard ─► answer ─► body
//!                                 └─ anything else ──────────┘
//! ```
//! One port serves all of it, so that what differs between two measurements is the protocol and not the
//! socket. A check of the first byte (one `recv` with `MSG_PEEK` a connection) tells TLS from plain text.

mod answer;
mod body;
mod certificate;
mod guard;
mod places;
mod system;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::joined::Joined;
use answer::State;
pub use body::is_body;
pub use guard::{LEAST_SECRET_BYTES, Pass};
use places::{Place, Places, counted};

/// Connections that may wait in the kernel's queue.
const QUEUE: u32 = 4096;
/// The longest head of a request by HTTP/1, bytes, and so what a connection without one can make the server
/// keep. Four times hyper's limit for HTTP/2.
const LONGEST_HEAD: usize = 64 << 10;
/// When no connection can be accepted, the next attempt waits so long.
const NEXT_ATTEMPT: Duration = Duration::from_millis(10);
/// What is under way when the server ends may take so long.
const PARTING: Duration = Duration::from_millis(200);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system answered.
        source: io::Error,
    },
    /// Beyond the loopback nobody is served without a challenge.
    #[error("{0} can be reached by others: listening there requires a shared secret")]
    Open(SocketAddr),
    /// A secret that can be guessed is none.
    #[error("the shared secret is {0} bytes long; it needs {LEAST_SECRET_BYTES} or more")]
    ShortSecret(usize),
    /// The certificate could not be made.
    #[error("the certificate could not be made: {0}")]
    Certificate(String),
    /// The system refused a thread or a timer.
    #[error("the server could not be started: {0}")]
    System(#[from] io::Error),
}

/// What is served, and where.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where to listen; port 0 lets the system choose. `None`: the loopback, by IPv4 or else by IPv6.
    pub bind: Option<SocketAddr>,
    /// What every request must prove to know; needed anywhere but on the loopback.
    pub secret: Option<Vec<u8>>,
    /// Nobody else can reach the address: it lies in a network namespace of ours.
    pub enclosed: bool,
    /// Threads that serve; one where none is asked for.
    pub threads: usize,
    /// Each answer waits so long, rounded up to milliseconds: all that is left of distance where no
    /// [path](crate::delay) can be had. It stands for one round trip, that of the request; those of
    /// connecting and of slow start are missing.
    pub answers_after: Duration,
}

/// Where a server listens.
#[derive(Debug, Clone, Serialize)]
pub struct Listening {
    /// The address with its port.
    pub address: SocketAddr,
    /// SHA-256 of the certificate (DER), in hexadecimal: self-signed and made anew at each start.
    pub certificate_sha256: String,
    /// Whether requests must answer a challenge.
    pub guarded: bool,
    /// The certificate (DER), which a client on the same machine may trust.
    #[serde(skip)]
    pub certificate: Vec<u8>,
    /// By what TCP decides how much may be under way on its connections, `cubic` or `bbr`; none where the
    /// system does not say.
    #[serde(skip)]
    pub congestion_control: Option<String>,
}

/// What a server has done so far.
#[derive(Debug, Default)]
struct Totals {
    connections: AtomicU64,
    open: AtomicU64,
    requests: AtomicU64,
    refused: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

/// What a server has done since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Connections accepted.
    pub connections: u64,
    /// Of these, open now.
    pub open: u64,
    /// Requests answered, those refused included.
    pub requests: u64,
    /// Requests refused for want of a right answer to the challenge.
    pub refused: u64,
    /// Bytes of bodies that were asked for and promised; what a client that went away never read is among
    /// them.
    pub sent_bytes: u64,
    /// Bytes of bodies taken in.
    pub received_bytes: u64,
}

/// A running server; ended, with all its connections, when this is dropped.
#[derive(Debug)]
pub struct Server {
    listening: Listening,
    totals: Arc<Totals>,
    /// Dropping it ends the server.
    _stop: oneshot::Sender<()>,
    _thread: Joined,
}

impl Server {
    /// Starts serving on threads of its own. Raises the process's limit of open files as far as it may. Fails
    /// when the address cannot be had, or when it can be reached by others and there is no secret to ask for.
    pub fn start(settings: &Settings) -> Result<Self, ServeError> {
        if let Some(secret) = &settings.secret
            && secret.len() < LEAST_SECRET_BYTES
        {
            return Err(ServeError::ShortSecret(secret.len()));
        }
        system::raise_open_files();
        let (certificate, tls) = certificate::make(settings.bind.map(|bind| bind.ip()))?;
        let totals = Arc::new(Totals::default());
        let state = Arc::new(State::new(settings, Arc::clone(&totals))?);
        let runtime = runtime(settings.threads)?;
        let listener = {
            let _entered = runtime.enter();
            listen(settings.bind)?
        };
        let address = listener.local_addr()?;
        let congestion_control = system::congestion_control(&listener);
        let guarded = settings.secret.is_some();
        if !guarded && !settings.enclosed && !address.ip().is_loopback() {
            return Err(ServeError::Open(address));
        }
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::sync_channel(1);
        let acceptor = TlsAcceptor::from(tls);
        let thread = Joined::start("latlab-serve", move || {
            runtime.block_on(async {
                // Whoever waits for this has gone only when the process is about to end.
                let _ = ready.send(());
                tokio::select! {
                    () = accept(async || listener.accept().await, &acceptor, &state) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(PARTING);
        })?;
        started.recv().map_err(|_| io::Error::other("its thread ended immediately"))?;
        Ok(Self {
            listening: Listening {
                address,
                certificate_sha256: certificate::fingerprint(&certificate),
                guarded,
                certificate,
                congestion_control,
            },
            totals,
            _stop: stop,
            _thread: thread,
        })
    }

    /// Where it listens.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// What it has done so far.
    pub fn served(&self) -> Served {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Served {
            connections: read(&self.totals.connections),
            open: read(&self.totals.open),
            requests: read(&self.totals.requests),
            refused: read(&self.totals.refused),
            sent_bytes: read(&self.totals.sent_bytes),
            received_bytes: read(&self.totals.received_bytes),
        }
    }
}

/// One thread serves from the thread that accepts; more share the connections.
fn runtime(threads: usize) -> io::Result<tokio::runtime::Runtime> {
    let mut builder = if threads <= 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("latlab-serve");
        builder
    };
    builder.enable_io().enable_time().build()
}

fn listen(bind: Option<SocketAddr>) -> Result<TcpListener, ServeError> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    match bind {
        Some(address) => listen_on(address),
        // The error of the usual one is the one to tell.
        None => listen_on(v4).or_else(|error| listen_on(v6).map_err(|_| error)),
    }
}

fn listen_on(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // On Windows the same option would let another program take the port away.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // All connections of a sweep may be opened at one moment.
        socket.listen(QUEUE)
    };
    open().map_err(|source| ServeError::Bind { address, source })
}

/// Accepts what comes next, for ever.
async fn accept(
    mut next: impl AsyncFnMut() -> io::Result<(TcpStream, SocketAddr)>,
    acceptor: &TlsAcceptor,
    state: &Arc<State>,
) {
    let places = Arc::new(Places::default());
    loop {
        let (stream, from) = match next().await {
            Ok(accepted) => accepted,
            Err(error) if system::is_out_of_descriptors(&error) && places.make_room().await => continue,
            Err(_) => {
                // A connection that was reset while it waited, or no descriptor left: the others go on.
                sleep(NEXT_ATTEMPT).await;
                continue;
            }
        };
        let Some((place, notice)) = places.enter(from.ip()) else { continue };
        let (acceptor, state) = (acceptor.clone(), Arc::clone(state));
        tokio::spawn(async move {
            let _open = Open::count(&state);
            tokio::select! {
                biased;
                // How a connection ends is its client's affair.
                _ = connection(stream, &acceptor, &state, &place) => {}
                () = place.overdue(notice) => {}
            }
        });
    }
}

/// One open connection in the totals.
struct Open(Arc<State>);

impl Open {
    fn count(state: &Arc<State>) -> Self {
        state.totals.connections.fetch_add(1, Ordering::Relaxed);
        state.totals.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.totals.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    state: &Arc<State>,
    place: &Arc<Place>,
) -> io::Result<()> {
    /// The type of a record that carries a handshake (RFC 8446, 5.1); no HTTP method begins with it.
    const TLS_HANDSHAKE: u8 = 0x16;
    // Small answers leave at once.
    stream.set_nodelay(true)?;
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Ok(());
    }
    // In memory of its own, so that who says nothing takes little.
    if first[0] == TLS_HANDSHAKE {
        Box::pin(async { http(acceptor.accept(stream).await?, state, place).await }).await
    } else {
        Box::pin(http(stream, state, place)).await
    }
}

async fn http<S>(stream: S, state: &Arc<State>, place: &Arc<Place>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The place looks after all times.
    builder.http1().header_read_timeout(None).max_buf_size(LONGEST_HEAD);
    let answers = service_fn(|request| {
        let (state, place) = (Arc::clone(state), Arc::clone(place));
        async move { state.answer(request, &place).await }
    });
    let stream = counted(stream, place);
    builder.serve_connection(TokioIo::new(stream), answers).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
