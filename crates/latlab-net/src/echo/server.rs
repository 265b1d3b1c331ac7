//! The side that answers: one thread, one connection, one message size.

use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::wire::{Fruitless, Wire, loopback};
use super::{Address, Service, Transport};
use crate::NetError;

/// A server to which nobody comes, and one that polls and is asked nothing, ends after so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at whether it shall end, while it waits for somebody to come.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// What is sent for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The message as it is now.
    Whole,
    /// The same twice.
    Twice,
    /// So many bytes of it.
    Part(usize),
    /// Nothing.
    Nothing,
    /// The connection is ended.
    Close,
    /// The connection is reset.
    Reset,
}

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages that came whole.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Switches away from its thread meanwhile; `None` where they are not counted.
    pub switches: Option<u64>,
    /// Whether its thread could run on its own CPU only, to the end.
    pub kept_to_its_cpu: bool,
}

/// A server at work; dropping it ends it.
#[derive(Debug)]
pub struct Server {
    address: Address,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Counts, NetError>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// What a thread asleep in a call is woken by.
    session: Mutex<Option<OwnedFd>>,
}

impl Server {
    /// Listens on the loopback interface; when this returns, a client can connect. `reply` turns a message into its answer: the number of
    /// the message from 1, and its bytes.
    ///
    /// # Errors
    /// When the system refuses a socket or a thread, or there is no such address.
    pub fn start(
        service: Service,
        reply: impl FnMut(u64, &mut [u8]) -> Reply + Send + 'static,
    ) -> Result<Self, NetError> {
        let (listening, address) = listen(service)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("echo".to_owned())
            .spawn(move || run(service, listening, &theirs, reply))
            .map_err(NetError::system("starting a thread that serves"))?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Ends it.
    ///
    /// # Errors
    /// What made it end before.
    pub fn end(mut self) -> Result<Counts, NetError> {
        self.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(counts)) => counts,
            _ => Err(NetError::Died),
        }
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let session = self.shared.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = session.as_ref() {
            // It may have ended by itself.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

enum Listening {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Unix(UnixListener),
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

fn listen(service: Service) -> Result<(Listening, Address), NetError> {
    let address = loopback(service.family);
    let refused = || NetError::system(format!("listening on {}", address.ip()));
    Ok(match service.transport {
        Transport::Tcp => {
            let listener = TcpListener::bind(address).map_err(refused())?;
            let bound = listener.local_addr().map_err(refused())?;
            (Listening::Tcp(listener), Address::Ip(bound))
        }
        Transport::Udp => {
            let socket = UdpSocket::bind(address).map_err(refused())?;
            let bound = socket.local_addr().map_err(refused())?;
            (Listening::Udp(socket), Address::Ip(bound))
        }
        Transport::Unix => {
            // No file, so that nothing can stay behind.
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("latlab-echo-{}-{number}", std::process::id());
            let listener = std::os::unix::net::SocketAddr::from_abstract_name(&name)
                .and_then(|address| UnixListener::bind_addr(&address))
                .map_err(NetError::system("listening on a Unix socket"))?;
            (Listening::Unix(listener), Address::Unix(name))
        }
    })
}

fn run(
    service: Service,
    listening: Listening,
    shared: &Shared,
    reply: impl FnMut(u64, &mut [u8]) -> Reply,
) -> Result<Counts, NetError> {
    let counts = serve(service, listening, shared, reply);
    // The last descriptor: the other side is not left waiting.
    *shared.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    counts
}

fn serve(
    service: Service,
    listening: Listening,
    shared: &Shared,
    mut reply: impl FnMut(u64, &mut [u8]) -> Reply,
) -> Result<Counts, NetError> {
    if let Some(cpu) = service.cpu {
        keep_to(cpu)?;
    }
    let mut message = vec![0xA5; service.bytes];
    let mut counts = Counts::default();
    let Some(socket) = somebody(listening, service, shared)? else {
        return Ok(counts);
    };
    let own = socket
        .try_clone()
        .map_err(NetError::system("a second descriptor of a socket"))?;
    *shared.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
    let wire = Wire {
        socket,
        transport: service.transport,
        waiting: service.waiting,
        patience: PATIENCE,
    };
    let before = switches();
    let stopped = || shared.stop.load(Ordering::Acquire);
    while !stopped() {
        let mut got = 0;
        match wire.receive(&mut message, &mut got, &stopped) {
            Ok(()) => {}
            // Nobody asks any more: an idle server that polls must not take a CPU from others for ever.
            Err(Fruitless::Gone | Fruitless::Late | Fruitless::Failed(NetError::Reset)) => break,
            Err(Fruitless::Failed(error)) => return Err(error),
        }
        counts.messages += 1;
        counts.bytes += got as u64;
        let answer = match reply(counts.messages, &mut message) {
            Reply::Whole => wire.send(&message, &stopped),
            Reply::Twice => wire
                .send(&message, &stopped)
                .and_then(|()| wire.send(&message, &stopped)),
            Reply::Part(bytes) => wire.send(&message[..bytes.min(message.len())], &stopped),
            Reply::Nothing => Ok(()),
            Reply::Close => break,
            Reply::Reset => {
                // Closing it now sends a reset instead of the rest.
                let _ = rustix::net::sockopt::set_socket_linger(&wire.socket, Some(Duration::ZERO));
                break;
            }
        };
        if answer.is_err() {
            break;
        }
    }
    counts.switches = before
        .zip(switches())
        .map(|(before, after)| after.saturating_sub(before));
    counts.kept_to_its_cpu = service.cpu.is_none_or(is_kept_to);
    Ok(counts)
}

/// Waits for somebody to connect or, without connections, to send; bounded.
fn somebody(listening: Listening, service: Service, shared: &Shared) -> Result<Option<OwnedFd>, NetError> {
    let what = || NetError::system("waiting for a connection");
    let begun = Instant::now();
    loop {
        if shared.stop.load(Ordering::Acquire) || begun.elapsed() > PATIENCE {
            return Ok(None);
        }
        let mut asked = [PollFd::new(&listening, PollFlags::IN)];
        match poll(&mut asked, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => {
                return Err(NetError::System {
                    what: "waiting for a connection".to_owned(),
                    source: error.into(),
                });
            }
        }
    }
    let socket = match listening {
        Listening::Tcp(listener) => {
            let (stream, _) = listener.accept().map_err(what())?;
            stream.set_nodelay(true).map_err(what())?;
            stream.into()
        }
        Listening::Unix(listener) => OwnedFd::from(listener.accept().map_err(what())?.0),
        Listening::Udp(socket) => {
            // Looked at, not taken: it is the first message.
            let (_, from) = socket.peek_from(&mut vec![0; service.bytes]).map_err(what())?;
            socket.connect(from).map_err(what())?;
            socket.into()
        }
    };
    Ok(Some(socket))
}

fn keep_to(cpu: u32) -> Result<(), NetError> {
    let what = || NetError::system(format!("keeping a thread on CPU {cpu}"));
    let only = only(cpu).ok_or_else(|| what()(rustix::io::Errno::INVAL))?;
    sched_setaffinity(None, &only).map_err(|error| what()(error))
}

fn is_kept_to(cpu: u32) -> bool {
    let set = sched_getaffinity(None).ok();
    set.is_some() && set == only(cpu)
}

fn only(cpu: u32) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    let index = cpu as usize;
    (index < CpuSet::MAX_CPU).then(|| set.set(index))?;
    Some(set)
}

/// Switches of the calling thread so far, asked for or forced.
fn switches() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage of ours, which the call fills when it returns 0.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: all-zero is a valid rusage, and the call only ever writes valid fields.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_nvcsw + usage.ru_nivcsw).ok()
}
