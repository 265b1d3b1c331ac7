//! Sockets that wait for somebody, without waiting for ever.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{SocketFlags, accept_with};

use crate::NetError;
use crate::sockets::{Address, Transport};

/// What tells the time; tests have one that they move.
pub(crate) type Clock = dyn Fn() -> Instant + Send + Sync;

/// Between two checks whether to give up.
const CHECK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What can be connected to.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: OwnedFd,
    transport: Transport,
}

/// Listens at any free port of this address, or under a name of its own.
pub(crate) fn listen(transport: Transport, ip: IpAddr) -> Result<(Listening, Address), NetError> {
    let address = SocketAddr::new(ip, 0);
    let refused = || NetError::system(format!("listening on {ip}"));
    let (socket, address): (OwnedFd, _) = match transport {
        Transport::Tcp => {
            let listener = TcpListener::bind(address).map_err(refused())?;
            let bound = listener.local_addr().map_err(refused())?;
            (listener.into(), Address::Ip(bound))
        }
        Transport::Udp => {
            let socket = UdpSocket::bind(address).map_err(refused())?;
            let bound = socket.local_addr().map_err(refused())?;
            (socket.into(), Address::Ip(bound))
        }
        Transport::Unix => {
            // No file, so that nothing can stay behind.
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("latlab-{}-{number}", std::process::id());
            let listener = std::os::unix::net::SocketAddr::from_abstract_name(&name)
                .and_then(|address| UnixListener::bind_addr(&address))
                .map_err(NetError::system("listening on a Unix socket"))?;
            (listener.into(), Address::Unix(name))
        }
    };
    Ok((Listening { socket, transport }, address))
}

impl Listening {
    /// Waits for somebody to connect or, without connections, to send, until `give_up` says so. `message` is
    /// the size of what is sent without a connection.
    pub(crate) fn somebody(
        &self,
        give_up: &dyn Fn() -> bool,
        message: usize,
    ) -> Result<Option<OwnedFd>, NetError> {
        let what = || NetError::system("waiting for a connection");
        if !has_come(&self.socket, give_up).map_err(|error| what()(error.into()))? {
            return Ok(None);
        }
        if self.transport == Transport::Udp {
            let socket = UdpSocket::from(self.socket.try_clone().map_err(what())?);
            // Looked at, not taken: it is the first message.
            let (_, from) = socket.peek_from(&mut vec![0; message]).map_err(what())?;
            socket.connect(from).map_err(what())?;
            return Ok(Some(socket.into()));
        }
        let accept = || accept_with(&self.socket, SocketFlags::CLOEXEC);
        let socket = retry_on_intr(accept).map_err(|error| what()(error.into()))?;
        if self.transport == Transport::Tcp {
            set_tcp_nodelay(&socket, true).map_err(|error| what()(error.into()))?;
        }
        Ok(Some(socket))
    }
}

/// Waits until there is something to accept or to read, even if it is an end; false when `give_up` says so
/// before.
pub(crate) fn has_come(at: &impl AsFd, give_up: &dyn Fn() -> bool) -> rustix::io::Result<bool> {
    loop {
        if give_up() {
            return Ok(false);
        }
        match poll(&mut [PollFd::new(at, PollFlags::IN)], Some(&CHECK_EVERY)) {
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

    /// A clock that a test moves, and that counts how often it is read.
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

        /// Waits until whoever reads it has done what comes before and after a reading.
        pub(crate) fn is_read(&self) {
            /// The last one before somebody came, the one that says when, and two within the next wait.
            const READINGS: u64 = 4;
            let readings = || self.0[1].load(Ordering::Acquire);
            let (before, begun) = (readings(), Instant::now());
            while readings() < before + READINGS {
                assert!(begun.elapsed() < Duration::from_secs(30), "nobody reads the clock");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
