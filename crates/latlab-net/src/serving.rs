//! What listens and serves in a thread of its own, until it is told to end.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{Shutdown, shutdown};

use crate::NetError;
use crate::joined::Joined;
use crate::listen::{Listening, listen};
use crate::sockets::{Address, Transport};

/// Whether a thread is to end, and what wakes it when it is asleep in a call.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: AtomicBool,
    /// Second descriptors of sockets, which are shut down then.
    sockets: Mutex<Vec<OwnedFd>>,
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Has this socket shut down too.
    pub(crate) fn shuts(&self, socket: &impl AsFd) -> Result<(), NetError> {
        let own = socket.as_fd().try_clone_to_owned();
        self.sockets().push(own.map_err(NetError::system("a second descriptor of a socket"))?);
        Ok(())
    }

    /// Gives the second descriptors up: only then is a socket closed that its owner closes.
    pub(crate) fn forget_sockets(&self) {
        self.sockets().clear();
    }

    fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        for socket in self.sockets().iter() {
            // It may have ended by itself. What has come can still be read.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What serves; dropping it ends it.
#[derive(Debug)]
pub struct Serving<T> {
    address: Address,
    stop: Arc<Stop>,
    thread: Joined<Result<T, NetError>>,
}

impl<T: Send + 'static> Serving<T> {
    /// Listens, and does this in a thread of that name; when this returns, it can be connected to.
    pub(crate) fn start(
        transport: Transport,
        ip: IpAddr,
        name: &str,
        work: impl FnOnce(Listening, &Stop) -> Result<T, NetError> + Send + 'static,
    ) -> Result<Self, NetError> {
        let (listening, address) = listen(transport, ip)?;
        let stop = Arc::new(Stop::default());
        let theirs = Arc::clone(&stop);
        let thread = Joined::start(name, move || work(listening, &theirs));
        let thread = thread.map_err(NetError::system(format!("starting the thread of {name}")))?;
        Ok(Self { address, stop, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Ends it; what it tells, or what made it end before.
    pub fn end(mut self) -> Result<T, NetError> {
        self.stop.set();
        self.thread.join().unwrap_or(Err(NetError::Died))
    }
}

impl<T> Drop for Serving<T> {
    fn drop(&mut self) {
        self.stop.set();
    }
}
