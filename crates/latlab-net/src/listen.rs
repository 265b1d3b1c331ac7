//! Sockets that wait for somebody, without waiting for ever.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::NetError;
use crate::sockets::{Address, Transport};

/// What tells the time; tests have one that they move.
pub(crate) type Clock = dyn Fn() -> Instant + Send + Sync;

/// Between two looks at whether to give up.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Something that can be connected to.
#[derive(Debug)]
pub(crate) enum Listening {
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

/// Listens at any free port of this address, or under a name of its own.
pub(crate) fn listen(transport: Transport, ip: IpAddr) -> Result<(Listening, Address), NetError> {
    let address = SocketAddr::new(ip, 0);
    let refused = || NetError::system(format!("listening on {ip}"));
    Ok(match transport {
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
            let name = format!("latlab-{}-{number}", std::process::id());
            let listener = std::os::unix::net::SocketAddr::from_abstract_name(&name)
                .and_then(|address| UnixListener::bind_addr(&address))
                .map_err(NetError::system("listening on a Unix socket"))?;
            (Listening::Unix(listener), Address::Unix(name))
        }
    })
}

impl Listening {
    /// Waits for somebody to connect or, without connections, to send, until `give_up` says so. `message` is the size of what is sent
    /// without a connection.
    pub(crate) fn somebody(
        &self,
        give_up: &dyn Fn() -> bool,
        message: usize,
    ) -> Result<Option<OwnedFd>, NetError> {
        let what = || NetError::system("waiting for a connection");
        if !has_come(self, give_up).map_err(|error| what()(error.into()))? {
            return Ok(None);
        }
        Ok(Some(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().map_err(what())?;
                stream.set_nodelay(true).map_err(what())?;
                stream.into()
            }
            Self::Unix(listener) => listener.accept().map_err(what())?.0.into(),
            Self::Udp(socket) => {
                // Looked at, not taken: it is the first message.
                let (_, from) = socket.peek_from(&mut vec![0; message]).map_err(what())?;
                socket.connect(from).map_err(what())?;
                socket.try_clone().map_err(what())?.into()
            }
        }))
    }
}

/// Waits until there is something to accept or to read, even if it is an end; false when `give_up` says so before.
pub(crate) fn has_come(at: &impl AsFd, give_up: &dyn Fn() -> bool) -> rustix::io::Result<bool> {
    loop {
        if give_up() {
            return Ok(false);
        }
        match poll(&mut [PollFd::new(at, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    /// A clock that a test moves, and that counts how often it is looked at.
    #[derive(Debug, Default)]
    pub(crate) struct Moved(Arc<[AtomicU64; 2]>);

    impl Moved {
        pub(crate) fn clock(&self) -> impl Fn() -> Instant + Send + Sync + 'static {
            let (begun, shared) = (Instant::now(), Arc::clone(&self.0));
            move || {
                shared[1].fetch_add(1, Ordering::AcqRel);
                begun + Duration::from_millis(shared[0].load(Ordering::Acquire))
            }
        }

        pub(crate) fn forward(&self, by: Duration) {
            let by = u64::try_from(by.as_millis()).expect("a short time");
            self.0[0].fetch_add(by, Ordering::AcqRel);
        }

        /// Waits until whoever looks at it has done what comes before and after a look.
        pub(crate) fn is_looked_at(&self) {
            /// The last one before somebody came, the one that says when, and two within the next wait.
            const LOOKS: u64 = 4;
            let looks = || self.0[1].load(Ordering::Acquire);
            let (before, begun) = (looks(), Instant::now());
            while looks() < before + LOOKS {
                assert!(begun.elapsed() < Duration::from_secs(30), "nobody looks");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
