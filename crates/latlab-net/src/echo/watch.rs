//! Bounds the waits of a side that blocks, without a timer in its calls, and those for a process that answers
//! on a pipe.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::NetError;
use crate::joined::Joined;

/// A thread that breaks a connection off, or kills a process, when it is not told in time that all went well.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    _thread: Joined,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Until when, and what is broken off then.
    armed: Option<(Instant, Target)>,
    fired: bool,
    ended: bool,
}

#[derive(Debug)]
enum Target {
    Socket(OwnedFd),
    Process(OwnedFd),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Starts the thread; it sleeps. Fails when the system refuses a thread.
    pub fn start() -> Result<Self, NetError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = Joined::start("watch", move || run(&theirs));
        let thread = thread.map_err(NetError::system("starting a thread that bounds waits"))?;
        Ok(Self { shared, _thread: thread })
    }

    /// From now on `patience` long. Fails when there are no descriptors left.
    pub fn arm(&self, socket: &impl AsFd, patience: Duration) -> Result<(), NetError> {
        let own = socket.as_fd().try_clone_to_owned().map_err(NetError::system("watching a socket"))?;
        self.set(Target::Socket(own), patience);
        Ok(())
    }

    /// The same for a child process of this one that was not waited for yet. Where the system has no handles
    /// of processes (Linux before 5.3) it is not bounded.
    pub fn arm_process(&self, id: u32, patience: Duration) {
        let own = i32::try_from(id)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        if let Some(own) = own {
            self.set(Target::Process(own), patience);
        }
    }

    fn set(&self, target: Target, patience: Duration) {
        let mut state = self.shared.state();
        state.armed = Some((Instant::now() + patience, target));
        state.fired = false;
        drop(state);
        self.shared.changed.notify_one();
    }

    /// All went well, or ended. Whether the connection had to be broken off.
    #[must_use]
    pub fn disarm(&self) -> bool {
        let mut state = self.shared.state();
        state.armed = None;
        std::mem::take(&mut state.fired)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared) {
    let mut state = shared.state();
    while !state.ended {
        let left = state.armed.as_ref().map(|(until, _)| until.saturating_duration_since(Instant::now()));
        state = match left {
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => {
                if let Some((_, target)) = state.armed.take() {
                    // It may have ended by itself.
                    let _ = match target {
                        Target::Socket(socket) => shutdown(&socket, Shutdown::Both),
                        Target::Process(process) => pidfd_send_signal(&process, Signal::KILL),
                    };
                    state.fired = true;
                }
                state
            }
            Some(left) => shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}
